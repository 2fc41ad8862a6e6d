"""What all crews of workers have: trials go in, outcomes come out, as lines of JSON."""

import traceback
from typing import Final, Protocol, Self

import msgspec
from msgspec import Struct

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.protocol.fields import package_version
from pipistrelle.studies.trials.axes import StudyError
from pipistrelle.studies.trials.trial import Outcome, Trial, carry_out

#: a trial whose workers have died so often is given up
MOST_DEATHS: Final = 3


class TrialFailed(StudyError):
    """A trial that cannot be carried out ends its study; what others have done stays."""


class TrialAnswer(Struct, frozen=True, omit_defaults=True):
    """What a worker of a ``version`` says of a trial: what came out, what was wrong, or a ``bug``'s traceback."""

    point: int
    replica: int
    outcome: Outcome | None = None
    error: str | None = None
    bug: str | None = None
    version: str = ""


class Crew(Protocol):
    """Workers that carry out trials; use it as a context manager."""

    def __enter__(self) -> Self:
        """Return it."""

    def __exit__(self, *_: object) -> None:
        """End the work; trials that have not ended are lost."""

    @property
    def free(self) -> int:
        """How many more trials it would take now."""

    @property
    def busy(self) -> int:
        """How many trials it has that have not ended."""

    def start(self, trial: Trial) -> None:
        """Take a trial."""

    def ended(self, patience: float) -> list[Outcome]:
        """Return what came out of trials that have ended, after so long (s) at the latest, which may be none.

        Raises
        ------
        StudyError
            when a trial failed, or its workers died again and again.
        """


_encoder: Final = msgspec.json.Encoder()
_trials: Final = msgspec.json.Decoder(Trial)
_answers: Final = msgspec.json.Decoder(TrialAnswer)


def asked(trial: Trial) -> bytes:
    """Return the line that asks a worker for a trial."""
    return _encoder.encode(trial)


def respond(line: bytes) -> bytes:
    """Carry out the trial that a line asks for, and return the line that answers it; whatever fails is told."""
    trial = _trials.decode(line)
    try:
        answer = TrialAnswer(trial.point, trial.replica, carry_out(trial), version=package_version())
    except PipistrelleError as error:
        answer = TrialAnswer(trial.point, trial.replica, error=str(error))
    except Exception:  # the coordinator tells of it
        answer = TrialAnswer(trial.point, trial.replica, bug=traceback.format_exc())
    return _encoder.encode(answer)


def outcome_of(line: bytes) -> Outcome:
    """Return what a worker's line says came out.

    Raises
    ------
    TrialFailed
        when the trial failed; RuntimeError if that is a bug.
    """
    answer = _answers.decode(line)
    name = f"trial {answer.point}.{answer.replica}"
    if answer.bug is not None:
        raise RuntimeError(f"{name}: {answer.bug}")
    if answer.outcome is None:
        raise TrialFailed(f"{name} failed: {answer.error}")
    if answer.version != package_version():
        raise TrialFailed(
            f"{name} was carried out by another version of Pipistrelle",
            expected=package_version(),
            found=answer.version,
            hint="Install the same on all workers.",
        )
    return answer.outcome
