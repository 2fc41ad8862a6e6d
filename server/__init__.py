"""Pipistrelle's server."""
