"""Jobs on nodes that fail: attempts, dumps, restarts, and how time was spent."""
