"""What can end a run before its time, each with its exit code; and decisions that must not be carried out."""

from typing import Final

from pipistrelle.protocol.base.errors import PipistrelleError, legible
from pipistrelle.protocol.decisions import Decision, Malformed
from pipistrelle.protocol.events import DecisionRejected, DecisionRejectedData
from pipistrelle.protocol.fields import EndReason, RejectionCode

#: characters of what is said of an illegal decision: it quotes the scheduler, whose texts may be of any length
_SAID: Final = 500


class SetupError(PipistrelleError):
    """Platform, workload and what may happen to them that do not go together."""


class RunError(PipistrelleError):
    """Base of all that ends a run early; outputs so far are kept."""

    reason: EndReason = "error"


class DecisionRefused(RunError):
    """An illegal decision, with ``strict``."""

    exit_code = 3
    reason = "strict"


class SchedulerFailed(RunError):
    """The scheduler never came, or it left, died, fell silent, failed or broke the protocol, as ``reason`` says."""

    exit_code = 4

    def __init__(self, what: str, *, reason: EndReason = "protocol_error", **more: str | None) -> None:
        self.reason = reason
        super().__init__(what, **more)


class Stalled(RunError):
    """Nothing can happen any more although jobs wait."""

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
    """The server cannot listen where it was told to."""


class Illegal(Exception):
    """A decision that must not be carried out: a code of the protocol, and a text that can be shown."""

    def __init__(self, code: RejectionCode, message: str) -> None:
        self.code: RejectionCode = code
        super().__init__(legible(message, _SAID))

    def event(self, now: float, decision: Decision, reply_to: int, index: int) -> DecisionRejected:
        """Return the event that tells the scheduler."""
        if isinstance(decision, Malformed):
            name, job_id = decision.decision, ""
        else:
            name = str(decision.__struct_config__.tag)
            job_id = getattr(getattr(decision, "data", None), "job_id", "")
        return DecisionRejected(now, DecisionRejectedData(self.code, str(self), reply_to, index, name, job_id))
