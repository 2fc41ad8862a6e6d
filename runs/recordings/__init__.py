"""Recordings of a real slurmctld, and how close the scheduler ``slurm`` comes to them."""
