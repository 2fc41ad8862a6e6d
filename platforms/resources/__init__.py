"""The resources of shared nodes (cores, memory, GPUs), and their free amounts."""
