"""Studies of many runs: descriptions, trials, their metrics, the results' table."""
