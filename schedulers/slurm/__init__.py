"""Slurm: the decisions of slurmctld as a policy."""
