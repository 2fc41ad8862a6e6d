"""What can end a run before its time, each with its exit code."""

from typing import ClassVar

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.protocol.fields import EndReason


class SetupError(PipistrelleError):
    """Platform, workload and what may happen to them that do not go together."""


class RunError(PipistrelleError):
    """Base of all that ends a run early; outputs so far are kept."""

    reason: ClassVar[EndReason] = "error"


class DecisionRefused(RunError):
    """An illegal decision, with ``strict``."""

    exit_code = 3
    reason: ClassVar[EndReason] = "strict"


class SchedulerFailed(RunError):
    """The scheduler never came, died, fell silent, or broke the protocol."""

    exit_code = 4
    reason: ClassVar[EndReason] = "protocol_error"


class Stalled(RunError):
    """Nothing can happen any more although jobs wait."""

    exit_code = 5
    reason: ClassVar[EndReason] = "stalled"


class OutputFailed(RunError):
    """An output cannot be written."""

    exit_code = 6


class Interrupted(RunError):
    """The user pressed Ctrl-C, or the process was asked to terminate."""

    exit_code = 130
    reason: ClassVar[EndReason] = "interrupted"


class EndpointError(PipistrelleError):
    """The server cannot listen where it was told to."""
