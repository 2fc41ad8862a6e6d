"""The error of this layer, and how text from a file is shown in it."""

from pipistrelle.protocol.base.errors import PipistrelleError

_SHOWN = 60  # characters: a message stays one line, whatever the file holds


class TraceError(PipistrelleError):
    """A workload file cannot be read or written, or a request about workloads makes no sense."""


class TraceOutputError(TraceError):
    """A workload cannot be written."""

    exit_code = 6


def shown(text: object) -> str:
    """Return text from a file for a message: printable, quoted, and cut if it is long."""
    quoted = repr(str(text))
    return quoted if len(quoted) <= _SHOWN else f"{quoted[:_SHOWN]}...'"


def counted(count: int, thing: str) -> str:
    """Return a count with its noun: ``1 job``, ``2,000 jobs``."""
    return f"{count:,} {thing}" + ("" if count == 1 else "s")
