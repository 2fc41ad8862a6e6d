"""What is written of a run, and the figures in it."""
