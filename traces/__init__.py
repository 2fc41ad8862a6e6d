"""Workloads: read, clean, describe, change, generate and write the jobs of SWF, Batsim and resource-manager logs."""
