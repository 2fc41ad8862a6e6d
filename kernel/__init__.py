"""The study kernel: the subset of runs that Monte Carlo studies need, compiled, with the reference engine's results."""
