"""Fill shared GPU nodes with pods from a list, and measure how many GPUs are allocated."""
