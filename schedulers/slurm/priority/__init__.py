"""Priorities of jobs, with fairshare and the decay of usage."""
