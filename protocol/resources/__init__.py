"""Amounts of resources: what nodes have, what jobs request, and what jobs take on nodes."""
