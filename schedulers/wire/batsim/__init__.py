"""Schedulers that serve Batsim, or a server in its dialect."""
