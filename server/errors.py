"""Errors that end a run early, with their exit codes, and illegal decisions."""

from typing import Final

from pipistrelle.protocol.base.errors import PipistrelleError, legible
from pipistrelle.protocol.decisions import Decision, Malformed
from pipistrelle.protocol.events import DecisionRejected, DecisionRejectedData
from pipistrelle.protocol.fields import EndReason, RejectionCode

#: longest message of a rejection, in characters: it quotes the scheduler's texts, which have no limit
_SAID: Final = 500


class SetupError(PipistrelleError):
    """Platform, workload, failures or options do not fit together."""


class RunError(PipistrelleError):
    """Base class of errors that end a run early; outputs written so far are kept."""

    reason: EndReason = "error"


class DecisionRefused(RunError):
    """An illegal decision in a strict run."""

    exit_code = 3
    reason = "strict"


class SchedulerFailed(RunError):
    """The scheduler did not connect, left, timed out or broke the protocol."""

    exit_code = 4

    def __init__(self, what: str, *, reason: EndReason = "protocol_error", **more: str | None) -> None:
        self.reason = reason
        super().__init__(what, **more)


class Stalled(RunError):
    """The run would never end, for example because jobs wait and no event is left."""

    exit_code = 5
    reason = "stalled"


class OutputFailed(RunError):
    """An output cannot be written."""

    exit_code = 6


class Interrupted(RunError):
    """The user pressed Ctrl-C, or the process was asked to terminate."""

    exit_code = 130
    reason = "interrupted"


class EndpointError(PipistrelleError):
    """The server cannot listen at the given endpoint."""


class Illegal(Exception):
    """An illegal decision, with the protocol's rejection code and a message."""

    def __init__(self, code: RejectionCode, message: str) -> None:
        self.code: RejectionCode = code
        super().__init__(legible(message, _SAID))

    def event(self, now: float, decision: Decision, reply_to: int, index: int) -> DecisionRejected:
        """Return the event that reports the rejection to the scheduler."""
        if isinstance(decision, Malformed):
            name, job_id = decision.decision, ""
        else:
            name = str(decision.__struct_config__.tag)
            job_id = getattr(getattr(decision, "data", None), "job_id", "")
        return DecisionRejected(now, DecisionRejectedData(self.code, str(self), reply_to, index, name, job_id))
