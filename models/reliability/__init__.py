"""The reliability of nodes, and the reliability that jobs need.

The formulas for classes of jobs follow S. Umamaheshwaran, Reliability Guided Resource Allocation for Large-scale
Supercomputing Systems, Purdue 2014. Some of its printed equations and tables contain errors. If a formula has several
forms, the function's name says which one it computes.
"""

from typing import Final

#: models that `pipistrelle.models.reliability.fits` can fit; ``auto`` takes the better one
MODELS: Final = ("auto", "exponential", "weibull")
