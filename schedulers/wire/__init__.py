"""Schedulers behind a socket, in either dialect."""
