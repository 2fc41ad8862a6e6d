"""What `fit_failures` can fit."""

from typing import Final

#: ``auto`` takes what fits better
MODELS: Final = ("auto", "exponential", "weibull")
