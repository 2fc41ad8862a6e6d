"""Pipistrelle's cli."""
