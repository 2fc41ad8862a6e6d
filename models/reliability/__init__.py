"""The reliability of nodes, and the reliability that jobs need.

The formulas for classes of jobs follow S. Umamaheshwaran, Reliability Guided Resource Allocation for Large-scale
Supercomputing Systems, Purdue 2014. Some of its printed equations and tables cannot be right; then a function's name
says which form it computes.
"""

from typing import Final

#: models that `pipistrelle.models.reliability.fits` can fit; ``auto`` takes the better one
MODELS: Final = ("auto", "exponential", "weibull")
