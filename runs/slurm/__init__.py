"""The files of a Slurm cluster: its machine, jobs fitted to it, and scheduler settings."""
