"""Workers that run trials; their number and order do not change the results."""
