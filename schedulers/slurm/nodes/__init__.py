"""Choose the nodes that a job gets now, and find the earliest time at which it can start."""
