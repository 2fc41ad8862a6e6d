"""Studies: many simulations of one design, and the statistics of their results."""

from importlib import import_module
from typing import Any, Final

#: {name of the public API: its module}; modules are imported on first use, because that is slow
_HOMES: Final = {
    "run": "workers.campaign",
    "estimate": "workers.campaign",
    "Study": "trials.study",
    "Results": "trials.results",
}


def __getattr__(name: str) -> Any:
    """Import a name of the public API when it is first used, and return it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
