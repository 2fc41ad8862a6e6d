"""Amounts of resources, and what a job requests of the nodes."""
