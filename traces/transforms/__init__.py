"""Change workloads: cut, join, scale, redraw arrivals. Pure functions."""
