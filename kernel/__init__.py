"""The compiled kernel: the runs of Monte Carlo studies, with the engine's results."""
