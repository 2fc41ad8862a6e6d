"""Names, numbers, units and places of nodes."""
