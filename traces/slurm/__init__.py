"""Slurm: its accounting, read and written, options of sbatch, and files of events."""
