"""Pipistrelle's schedulers."""
