"""Compute Maui's job priorities and the terms of which they consist."""
