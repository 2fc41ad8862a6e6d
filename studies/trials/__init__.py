"""Studies of many runs: descriptions, trials, their metrics, the table of results."""
