"""Changes of workloads: cut, join, scale, new arrivals. Pure functions."""
