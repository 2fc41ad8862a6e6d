"""The settings of a Slurm cluster that the scheduler reads, as plain values."""
