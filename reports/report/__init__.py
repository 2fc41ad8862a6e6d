"""Compare runs with each other, and with the log of the real machine."""
