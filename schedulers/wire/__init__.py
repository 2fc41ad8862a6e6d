"""Schedulers that reach the server through a socket, in either protocol dialect."""
