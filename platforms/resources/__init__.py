"""What shared nodes have and what of it is free."""
