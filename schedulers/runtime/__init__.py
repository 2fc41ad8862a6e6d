"""Run a policy: update its view from the server's events, call it, and return its decisions."""
