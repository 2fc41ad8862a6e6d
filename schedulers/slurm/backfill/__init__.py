"""Passes of sched/backfill: start jobs that do not delay the expected starts of earlier jobs."""
