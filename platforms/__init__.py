"""Pipistrelle's platforms."""
