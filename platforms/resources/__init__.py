"""The resources of shared nodes (cores, memory, GPUs).

Also how much of them is free.
"""
