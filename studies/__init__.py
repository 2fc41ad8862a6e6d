"""Whole runs from one description, platforms and workloads by name; studies of many runs: `run` and `Study`."""

from importlib import import_module
from typing import Any, Final

#: {name of the public API: its module}; imported when it is asked for, as that takes a while
_HOMES: Final = {
    "run": "workers.campaign",
    "estimate": "workers.campaign",
    "Study": "trials.study",
    "Results": "trials.results",
}


def __getattr__(name: str) -> Any:
    """Return what a notebook needs of studies."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
