"""Compute Maui's job priorities and the terms that add up to them."""
