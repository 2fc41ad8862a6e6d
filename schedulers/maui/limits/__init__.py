"""Limits on the running and waiting jobs of each credential."""
