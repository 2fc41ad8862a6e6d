"""Pipistrelle, a scheduler-in-the-loop simulator of HPC clusters."""

from typing import Any


def __getattr__(name: str) -> Any:
    """Return ``__version__``, which is read from the package's metadata only when it is asked for."""
    if name == "__version__":
        from pipistrelle.protocol.fields import package_version

        return package_version()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
