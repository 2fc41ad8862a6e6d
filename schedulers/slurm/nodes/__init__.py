"""Choose the nodes on which a job starts now, and find a job's expected start."""
