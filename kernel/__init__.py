"""The compiled kernel runs Monte Carlo trials with the same results as the reference engine."""
