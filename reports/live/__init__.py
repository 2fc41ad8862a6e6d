"""Show a run while it is in progress."""
