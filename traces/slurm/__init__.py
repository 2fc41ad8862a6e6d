"""The accounting of Slurm, read and written."""
