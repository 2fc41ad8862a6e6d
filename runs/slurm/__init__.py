"""The files of a Slurm cluster.

They give its machine, jobs fitted to it, and scheduler settings.
"""
