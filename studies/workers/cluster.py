"""Workers on many machines, through Dask: an existing cluster, or Slurm jobs."""

import logging
import signal
import socket
from collections.abc import Mapping, Sequence
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, Final, Self
from urllib.parse import urlsplit

from pipistrelle.protocol.base.errors import did_you_mean, printable
from pipistrelle.studies.errors import StudyError
from pipistrelle.studies.trials.trial import Outcome, Trial
from pipistrelle.studies.workers.crew import TrialFailed, asked, outcome_of, respond

#: how long to wait for an answer of the Dask scheduler (s)
_TIMEOUT_S: Final = 10.0
#: number of trials queued per worker thread, besides the running one
_AHEAD: Final = 1
#: how long the number of workers is cached (s)
_KNOWN_S: Final = 2.0
#: {key of --slurm-option: argument of dask-jobqueue's cluster class}
SLURM_KEYS: Final = {
    "queue": "queue",
    "account": "account",
    "memory": "memory",
    "walltime": "walltime",
    "interface": "interface",
    "python": "python",
    "directive": "job_extra_directives",
    "prologue": "job_script_prologue",
}
_LISTS: Final = ("directive", "prologue")


class DaskCrew:
    """Workers of a Dask cluster; Dask replaces dead workers and repeats their trials.

    Args:
        address: address of the Dask scheduler, such as ``tcp://host:8786``, or a Dask cluster object.

    Raises:
        StudyError: Dask is not installed, or no scheduler answers.
    """

    def __init__(self, address: Any) -> None:
        distributed = _import("distributed")
        if isinstance(address, str):
            _knock(address)
        logging.getLogger("distributed").setLevel(logging.ERROR)
        try:
            self._client = distributed.Client(address, timeout=_TIMEOUT_S, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            raise _unreachable(str(address), error) from None
        self._done: SimpleQueue[Any] = SimpleQueue()
        self._futures: set[Any] = set()
        self._threads, self._known = 1, 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Cancel all unfinished trials of this study."""
        self._client.cancel(list(self._futures), force=True)
        self._client.close(timeout=_TIMEOUT_S)

    @property
    def free(self) -> int:
        """Return how many more trials the workers accept now."""
        if monotonic() >= self._known:
            self._known = monotonic() + _KNOWN_S
            self._threads = max(sum(self._client.nthreads().values()), 1)
        return (1 + _AHEAD) * self._threads - len(self._futures)

    @property
    def busy(self) -> int:
        """Return the number of started trials that have not ended."""
        return len(self._futures)

    def start(self, trial: Trial) -> None:
        """Submit a trial to Dask."""
        future = self._client.submit(respond, asked(trial), pure=False)
        self._futures.add(future)
        future.add_done_callback(self._done.put)

    def ended(self, patience: float) -> list[Outcome]:
        """Return the outcomes of ended trials; wait at most ``patience`` (s) for one.

        Raises:
            StudyError: a trial failed, or the Dask scheduler does not answer any more.
        """
        found: list[Outcome] = []
        try:
            future = self._done.get(timeout=patience)
            while True:
                self._futures.discard(future)
                found.append(self._outcome(future))
                future = self._done.get_nowait()
        except Empty:
            pass
        if self._client.status != "running":
            raise StudyError("the Dask scheduler is gone", hint="Repeat the command to continue.")
        return found

    def _outcome(self, future: Any) -> Outcome:
        if future.status == "finished":
            return outcome_of(future.result())
        if future.status == "error":
            error = future.exception()
            raise TrialFailed(
                f"Dask could not carry out a trial ({type(error).__name__}: {printable(str(error))[:200]})",
                hint="Do all workers have the same version of Pipistrelle, and enough memory?",
            )
        raise StudyError("the Dask scheduler is gone", hint="Repeat the command to continue.")


class SlurmCrew(DaskCrew):
    """Workers that run as Slurm jobs, one trial at a time; they end with the study.

    Args:
        jobs: number of Slurm jobs.
        options: ``KEY=VALUE`` with keys of `SLURM_KEYS`; dask-jobqueue's configuration has the defaults.

    Raises:
        StudyError: dask-jobqueue is not installed, an option is malformed, or a job cannot be submitted.
    """

    def __init__(self, jobs: int, options: Sequence[str] = ()) -> None:
        jobqueue = _import("dask_jobqueue")
        told: dict[str, Any] = {"cores": 1, "processes": 1, "memory": "2GB", **_slurm_options(options)}
        try:
            self._cluster = jobqueue.SLURMCluster(**told)
            self._cluster.scale(jobs=jobs)
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            raise StudyError("cannot start workers with Slurm", found=printable(str(error))[:200]) from None
        super().__init__(self._cluster)

    def __exit__(self, *failed: object) -> None:
        """End the Slurm jobs."""
        super().__exit__(*failed)
        self._cluster.close()


def _knock(address: str) -> None:
    """Raise StudyError if nothing accepts connections at the address.

    (Dask itself would retry for a long time.)
    """
    try:
        place = urlsplit(address)
        if not place.hostname or place.port is None:
            raise ValueError("this is not an address")
        socket.create_connection((place.hostname, place.port), _TIMEOUT_S).close()
    except (OSError, ValueError) as error:
        raise _unreachable(address, error) from None


def _unreachable(address: str, error: Exception) -> StudyError:
    return StudyError(
        "no Dask scheduler answers at this address",
        where=printable(address),
        expected="the address that 'dask scheduler' prints, such as tcp://host:8786",
        found=printable(str(error))[:120],
    )


def _slurm_options(options: Sequence[str]) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    for text in options:
        key, sign, value = text.partition("=")
        if key not in SLURM_KEYS or not sign or not value:
            raise StudyError(
                "an option of Slurm's jobs is malformed",
                where="--slurm-option",
                expected="KEY=VALUE, such as queue=batch",
                found=f"'{text}'",
                hint=did_you_mean(key, list(SLURM_KEYS)),
            )
        if key in _LISTS:
            found.setdefault(SLURM_KEYS[key], []).append(value)
        else:
            found[SLURM_KEYS[key]] = value
    return found


def _import(module: str) -> Any:
    from importlib import import_module

    before = signal.getsignal(signal.SIGINT)
    try:
        return import_module(module)
    except ImportError:
        raise StudyError(
            f"workers on other machines need Dask ({module})", hint="Install it: pip install 'pipistrelle[dask]'."
        ) from None
    finally:  # once imported, dask-jobqueue makes Ctrl-C end the process, which would lose results
        if before is not None and signal.getsignal(signal.SIGINT) is not before:
            signal.signal(signal.SIGINT, before)
