"""Schedulers that serve a Batsim, or a server in its dialect."""
