"""Pipistrelle's protocol."""
