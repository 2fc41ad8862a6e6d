"""Whole runs from one description, and platforms and workloads by name."""
