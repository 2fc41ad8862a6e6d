"""Preemption: which jobs are preempted for which waiting jobs."""
