"""The compiled kernel: runs trials of Monte Carlo studies, with the same results as the engine."""
