"""The interface of a group of workers.

This module also has the JSON lines that are exchanged with the workers.
"""

import traceback
from typing import Final, Protocol, Self

import msgspec
from msgspec import Struct

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.protocol.fields import package_version
from pipistrelle.studies.errors import StudyError
from pipistrelle.studies.trials.objects import NO_OBJECTS, Objects
from pipistrelle.studies.trials.trial import Outcome, Trial, carry_out

#: number of workers that may die in a trial before the study gives up
MOST_DEATHS: Final = 3


class TrialFailed(StudyError):
    """A trial failed, which ends its study; the results of other trials are kept."""


class TrialAnswer(Struct, frozen=True, omit_defaults=True):
    """A worker's answer: its version, and a trial's outcome, error or traceback."""

    point: int
    replica: int
    outcome: Outcome | None = None
    error: str | None = None
    bug: str | None = None
    version: str = ""


class Crew(Protocol):
    """A group of workers that run trials; use it as a context manager."""

    def __enter__(self) -> Self:
        """Return this group of workers."""

    def __exit__(self, *_: object) -> None:
        """End all workers; unfinished trials are lost."""

    @property
    def free(self) -> int:
        """Return how many more trials the workers accept now."""

    @property
    def busy(self) -> int:
        """Return the number of started trials that have not ended."""

    def start(self, trial: Trial) -> None:
        """Start a trial on a worker."""

    def ended(self, patience: float) -> list[Outcome]:
        """Return the outcomes of ended trials; wait at most ``patience`` (s) for one.

        Raises:
            StudyError: a trial failed, or its workers died repeatedly.
        """


_encoder: Final = msgspec.json.Encoder()
_trials: Final = msgspec.json.Decoder(Trial)
_answers: Final = msgspec.json.Decoder(TrialAnswer)


def asked(trial: Trial) -> bytes:
    """Return the line of JSON that asks a worker to run a trial."""
    return _encoder.encode(trial)


def respond(line: bytes, objects: Objects = NO_OBJECTS) -> bytes:
    """Run the trial that a line of JSON requests.

    Return the worker's answer as a line.
    """
    trial = _trials.decode(line)
    try:
        answer = TrialAnswer(trial.point, trial.replica, carry_out(trial, objects), version=package_version())
    except PipistrelleError as error:
        answer = TrialAnswer(trial.point, trial.replica, error=str(error))
    except Exception:  # the coordinator reports it
        answer = TrialAnswer(trial.point, trial.replica, bug=traceback.format_exc())
    return _encoder.encode(answer)


def outcome_of(line: bytes) -> Outcome:
    """Return the outcome in a worker's answer.

    Raises:
        TrialFailed: the trial failed, or another version of Pipistrelle carried it out.
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
