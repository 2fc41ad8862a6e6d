"""The runtime: updates the view from the server's events and calls the policy."""
