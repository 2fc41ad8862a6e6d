"""Jobs on nodes that fail: attempts, checkpoints, restarts, and how the time of each attempt was spent."""
