"""Pipistrelle, a scheduler-in-the-loop emulator for HPC clusters: see its packages, and ``pipistrelle help``."""

from typing import Any


def __getattr__(name: str) -> Any:
    """Return the version: it is looked up when it is asked for, which is seldom and takes a while."""
    if name == "__version__":
        from pipistrelle.protocol.fields import package_version

        return package_version()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
