"""How reliable nodes are, and how reliable they must be.

Failure models are fitted to logs. How many nodes classes of jobs need follows S. Umamaheshwaran, Reliability Guided
Resource Allocation for Large-scale Supercomputing Systems, Purdue 2014. Where an equation or table of it cannot be
right as printed, both the printed and the right form are here, each under its name.
"""

from typing import Final

#: what `pipistrelle.models.reliability.fits.fit_failures` can fit; ``auto`` takes what fits better
MODELS: Final = ("auto", "exponential", "weibull")
