"""Amounts of resources: whole numbers in one base unit for each resource."""

from typing import Final

#: the resources that every node may have; other resources have names of their own
CORES: Final = "cores"
MEMORY: Final = "memory"
#: base units of one core and of one GPU
MILLI: Final = 1000
#: the largest amount; sums over the largest machine stay exact in 64 bits
MOST: Final = 2**42
