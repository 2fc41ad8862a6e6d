"""Compare runs with each other and with their logs."""
