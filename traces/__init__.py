"""Read, describe, change, generate and write workloads in all supported formats."""
