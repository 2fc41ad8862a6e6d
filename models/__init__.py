"""Workload models, fits of failures, the mathematics of reliability, and statistics."""
