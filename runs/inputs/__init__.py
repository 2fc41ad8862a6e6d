"""User inputs as values: platforms, workloads and steps, outages, keys."""
