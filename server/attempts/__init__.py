"""Attempts of jobs on nodes that fail, their checkpoints, and their use of time."""
