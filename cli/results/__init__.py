"""Commands that analyse the outputs of runs."""
