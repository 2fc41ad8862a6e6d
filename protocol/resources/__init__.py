"""Amounts of resources.

They are what nodes have, what jobs request, and what jobs take on nodes.
"""
