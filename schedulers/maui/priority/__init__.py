"""Maui's priorities and their terms."""
