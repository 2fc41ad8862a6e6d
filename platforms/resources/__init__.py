"""The resources of shared nodes (cores, memory, GPUs), and how much of them is free."""
