"""Errors of schedulers."""

from pipistrelle.protocol.base.errors import PipistrelleError


class SchedulerError(PipistrelleError):
    """The scheduler cannot continue; exit code 4."""

    exit_code = 4


class ServerGone(SchedulerError):
    """The server refused the connection, stopped replying or disconnected."""


class PolicyFailed(SchedulerError):
    """A policy raised an exception, or the server rejected its decision."""


class FormulaError(PipistrelleError):
    """A text is not a valid formula."""


class PolicyError(PipistrelleError):
    """A scheduler or a part of one cannot be created, or its state cannot be saved."""
