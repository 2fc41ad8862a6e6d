"""Accounts, users and QOS of Slurm: their usage, and the limits that keep their jobs waiting."""
