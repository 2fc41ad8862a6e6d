"""Slurm's logs: accounting, options of sbatch, and files of events."""
