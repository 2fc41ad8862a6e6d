"""The passes of slurmctld over the queue: main loop and backfill.

This package also has the tests that the passes apply.
"""
