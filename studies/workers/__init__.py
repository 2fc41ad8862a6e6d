"""Workers that carry out trials; their number and order do not change the results."""
