"""Planned maintenance: which nodes are down, when, and since when that is known."""
