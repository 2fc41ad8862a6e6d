"""The errors of reading, writing and changing workloads."""

from pipistrelle.protocol.base.errors import PipistrelleError, quoted


class TraceError(PipistrelleError):
    """A workload file is invalid, or an operation on a workload is not possible.

    Readers raise it, with line and field, for files that are unreadable or violate their format. Functions that change
    workloads raise it for arguments out of range.
    """


class TraceOutputError(TraceError):
    """A workload cannot be written."""

    exit_code = 6


def line_fault(
    where: str, what: str, expected: str, found: object, hint: str = "Correct or remove the line."
) -> TraceError:
    """Return the error for an unreadable line or field; the message quotes `found`."""
    return TraceError(what, where=where, expected=expected, found=quoted(found), hint=hint)


def out_of_range(what: str, where: str, expected: str, found: str, hint: str | None = None) -> TraceError:
    """Return the error for a number called `what` that is too small or too large."""
    return TraceError(f"the {what} is out of range", where=where, expected=expected, found=found, hint=hint)


def counted(count: int, thing: str) -> str:
    """Return a count with its noun: ``1 job``, ``2,000 jobs``."""
    return f"{count:,} {thing}" + ("" if count == 1 else "s")
