"""``pipistrelle workload`` and its commands."""
