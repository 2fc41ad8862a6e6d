"""The errors of this layer."""

from pipistrelle.protocol.base.errors import PipistrelleError


class TraceError(PipistrelleError):
    """A workload file cannot be read or written, or a request about workloads makes no sense."""


class TraceOutputError(TraceError):
    """A workload cannot be written."""

    exit_code = 6


def counted(count: int, thing: str) -> str:
    """Return a count with its noun: ``1 job``, ``2,000 jobs``."""
    return f"{count:,} {thing}" + ("" if count == 1 else "s")
