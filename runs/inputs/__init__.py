"""Load what users name as input: platforms, workloads, steps, outages and keys."""
