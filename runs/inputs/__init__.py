"""What a user names, as values: platforms, workloads and what is done with them, outages, reliability."""
