"""What an application gets of its allocations while nodes fail."""
