"""Pipistrelle's studies."""
