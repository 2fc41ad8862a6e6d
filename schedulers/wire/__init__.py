"""Connect a scheduler to a server through a socket, in either protocol dialect."""
