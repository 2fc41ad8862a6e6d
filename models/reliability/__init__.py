"""The reliability of nodes, and the reliability that jobs need.

The nodes that classes of jobs need follow S. Umamaheshwaran, Reliability Guided Resource Allocation for Large-scale
Supercomputing Systems, Purdue 2014. If a printed equation or table there cannot be right, the names say which form a
function has.
"""

from typing import Final

#: models that `pipistrelle.models.reliability.fits` can fit; ``auto`` takes the better one
MODELS: Final = ("auto", "exponential", "weibull")
