"""Fill shared GPU nodes with pods from a list.

Measure how many GPUs are allocated.
"""
