"""Placements for nodes that several requests share."""
