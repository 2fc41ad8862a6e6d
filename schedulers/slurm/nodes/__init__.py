"""The choice of nodes: which ones a job gets now, and when it can start at the earliest."""
