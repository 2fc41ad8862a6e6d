"""Maui's traces: workloads and machines."""
