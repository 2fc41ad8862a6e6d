"""Priorities of jobs: their factors, the fairshare of associations, and the decay of usage."""
