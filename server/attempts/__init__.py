"""How a job lives on nodes that fail: attempts, dumps, restarts, what its time was spent on."""
