"""The settings of Slurm that the scheduler reads, as values."""
