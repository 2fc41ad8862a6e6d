"""Studies of many runs: trials, what came out of each as a table of jobs, and its metrics."""
