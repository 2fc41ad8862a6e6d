"""When nodes go and come back, and what is told of it."""
