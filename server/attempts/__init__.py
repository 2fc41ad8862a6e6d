"""Attempts of jobs on nodes that fail, their checkpoints, and how each attempt spent its time."""
