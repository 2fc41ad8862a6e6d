"""Cases: runs whose results are known, replayed to see whether they are still the same."""
