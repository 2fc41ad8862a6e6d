"""Output from finished runs.

This is reports, pages, explanations, estimates and golden results.
"""
