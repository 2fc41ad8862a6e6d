"""Submissions to Slurm: options of sbatch, and files of events."""
