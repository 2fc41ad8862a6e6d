"""Studies of many runs: descriptions, trials, metrics, the table of results."""
