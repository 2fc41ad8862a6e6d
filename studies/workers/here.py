"""The worker that runs trials one after the other in this process."""

from typing import Self

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.studies.trials.objects import Objects
from pipistrelle.studies.trials.trial import Outcome, Trial, carry_out
from pipistrelle.studies.workers.crew import TrialFailed


class HereCrew:
    """This process as the only worker of a study that has Python objects.

    Args:
        objects: the objects of the study.
    """

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._trial: Trial | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Drop the accepted trial if it has not begun."""
        self._trial = None

    @property
    def free(self) -> int:
        """Return how many more trials this process accepts now: one, or none."""
        return int(self._trial is None)

    @property
    def busy(self) -> int:
        """Return the number of trials that have not ended."""
        return 1 - self.free

    def start(self, trial: Trial) -> None:
        """Accept a trial, which `ended` carries out."""
        self._trial = trial

    def ended(self, patience: float) -> list[Outcome]:
        """Carry out the accepted trial and return its outcome, however long it takes.

        Raises:
            TrialFailed: the trial failed.
        """
        trial = self._trial
        if trial is None:
            return []
        try:
            found = carry_out(trial, self._objects)
        except PipistrelleError as error:
            raise TrialFailed(f"{trial.name} failed: {error}") from error
        self._trial = None
        return [found]
