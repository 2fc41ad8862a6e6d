"""Cases: runs with known results, replayed to check that these stay the same."""
