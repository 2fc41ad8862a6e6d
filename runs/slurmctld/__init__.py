"""Unmodified programs, such as Slurm's daemons, in virtual time."""
