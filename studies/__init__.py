"""Whole runs from one call, and platforms and workloads by name."""
