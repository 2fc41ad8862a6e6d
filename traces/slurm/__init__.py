"""Slurm's logs: read and write its accounting, parse options of sbatch, read files of events."""
