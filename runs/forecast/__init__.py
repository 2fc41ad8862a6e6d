"""Forecast when the pending jobs of a live Slurm cluster start."""
