"""Run a policy: pass it the server's events, and return its decisions."""
