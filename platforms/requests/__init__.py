"""The requirements of a job on its nodes.

They are constraints, units per node, and whole nodes.
"""
