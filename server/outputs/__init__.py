"""Output files of a run, and the figures in them."""
