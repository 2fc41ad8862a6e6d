"""Choose nodes: which nodes a job gets now, and the earliest time at which it can start."""
