"""Crews of workers: trials go in, outcomes come out, as lines of JSON."""

import traceback
from typing import Final, Protocol, Self

import msgspec
from msgspec import Struct

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.protocol.fields import package_version
from pipistrelle.studies.trials.axes import StudyError
from pipistrelle.studies.trials.trial import Outcome, Trial, carry_out

#: how many workers may die in a trial before it is given up
MOST_DEATHS: Final = 3


class TrialFailed(StudyError):
    """A trial failed, which ends its study; the results of others are kept."""


class TrialAnswer(Struct, frozen=True, omit_defaults=True):
    """A worker's answer: a trial's outcome, error, or traceback, and its version."""

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
        """End the work; unfinished trials are lost."""

    @property
    def free(self) -> int:
        """The number of further trials that it takes now."""

    @property
    def busy(self) -> int:
        """The number of its trials that have not ended."""

    def start(self, trial: Trial) -> None:
        """Take a trial."""

    def ended(self, patience: float) -> list[Outcome]:
        """Return outcomes of ended trials, after at most ``patience`` (s); maybe none.

        Raises:
            StudyError: a trial failed, or its workers died repeatedly.
        """


_encoder: Final = msgspec.json.Encoder()
_trials: Final = msgspec.json.Decoder(Trial)
_answers: Final = msgspec.json.Decoder(TrialAnswer)


def asked(trial: Trial) -> bytes:
    """Return the line that requests a trial from a worker."""
    return _encoder.encode(trial)


def respond(line: bytes) -> bytes:
    """Carry out the trial that a line requests, and return the answering line."""
    trial = _trials.decode(line)
    try:
        answer = TrialAnswer(trial.point, trial.replica, carry_out(trial), version=package_version())
    except PipistrelleError as error:
        answer = TrialAnswer(trial.point, trial.replica, error=str(error))
    except Exception:  # the coordinator reports it
        answer = TrialAnswer(trial.point, trial.replica, bug=traceback.format_exc())
    return _encoder.encode(answer)


def outcome_of(line: bytes) -> Outcome:
    """Return the outcome in a worker's line.

    Raises:
        TrialFailed: the trial failed.
        RuntimeError: the trial failed because of a bug.
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
            hint="Install the same version on all workers.",
        )
    return answer.outcome
