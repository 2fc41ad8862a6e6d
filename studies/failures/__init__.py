"""Failures studied: logs of them, models fitted to these, and what applications get of their nodes while they fail."""

from typing import Final

#: what `pipistrelle.studies.failures.fits.fit_failures` can fit; ``auto`` takes what fits better
MODELS: Final = ("auto", "exponential", "weibull")
