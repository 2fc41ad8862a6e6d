"""Models fitted to observed failures, and what logs of them are like."""

from typing import Final

#: what `pipistrelle.studies.fits.failures.fit_failures` can fit; ``auto`` takes what fits better
MODELS: Final = ("auto", "exponential", "weibull")
