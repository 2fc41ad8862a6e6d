"""What a user names, as values: platforms, workloads, outages, reliability."""
