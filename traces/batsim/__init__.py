"""Batsim's files: workloads, profiles and external events."""
