"""Read Slurm's files into the settings of the scheduler."""
