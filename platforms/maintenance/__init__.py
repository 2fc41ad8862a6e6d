"""Planned maintenance: which nodes are down, when, and when it is announced."""
