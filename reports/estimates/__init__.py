"""Estimate the start times of the jobs that were queued at some time of a run."""
