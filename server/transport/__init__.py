"""How the engine reaches a scheduler: over sockets or in process."""
