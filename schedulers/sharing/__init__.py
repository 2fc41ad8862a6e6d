"""Placements for nodes that requests share."""
