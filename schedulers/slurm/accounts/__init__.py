"""Accounts, users and QOS of Slurm: their usage, and limits on their jobs."""
