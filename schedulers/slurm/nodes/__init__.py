"""Choose the nodes that a job gets now, and find a job's expected start."""
