"""Logs of jobs: SWF, sacct, Haizea's leases, and what all readers share."""
