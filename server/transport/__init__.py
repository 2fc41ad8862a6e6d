"""How the engine reaches a scheduler: sockets, and the same without any."""
