"""Pipistrelle's traces."""
