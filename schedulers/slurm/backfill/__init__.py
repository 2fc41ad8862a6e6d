"""Passes of sched/backfill: start jobs that delay no earlier job's expected start."""
