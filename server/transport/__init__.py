"""Connections between the server and a scheduler: over sockets or in process."""
