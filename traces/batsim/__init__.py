"""Batsim's files: workloads and their profiles, external events."""
