"""Read the files of a Slurm cluster: the machine, the jobs fitted to it, and the scheduler's settings."""
