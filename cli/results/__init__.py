"""Commands that look at the outputs of runs."""
