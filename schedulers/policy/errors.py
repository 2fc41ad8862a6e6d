"""What can go wrong with a scheduler: it cannot be had, or its process ends before its time."""

from pipistrelle.protocol.base.errors import PipistrelleError


class SchedulerError(PipistrelleError):
    """The scheduler cannot go on; exit code 4, as for a server that its scheduler leaves."""

    exit_code = 4


class ServerGone(SchedulerError):
    """The server never came, refused, fell silent or disconnected."""


class PolicyFailed(SchedulerError):
    """A policy raised an exception, or took a decision that the server rejected."""


class FormulaError(PipistrelleError):
    """A text is no formula."""


class PolicyError(PipistrelleError):
    """A scheduler, or a part of one, that cannot be had, or whose state cannot."""
