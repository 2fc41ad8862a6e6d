"""Workers on many machines, through Dask: a cluster that is there, or one that Slurm is asked for."""

import logging
import signal
import socket
from collections.abc import Mapping, Sequence
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, Final, Self
from urllib.parse import urlsplit

from pipistrelle.protocol.base.errors import did_you_mean, printable
from pipistrelle.studies.trials.axes import StudyError
from pipistrelle.studies.trials.trial import Outcome, Trial
from pipistrelle.studies.workers.crew import TrialFailed, asked, outcome_of, respond

#: how long to wait for a scheduler that does not answer (s)
_TIMEOUT_S: Final = 10.0
#: trials that a thread of a worker is given beside the one that it carries out
_AHEAD: Final = 1
#: how long what is known of the workers is believed (s)
_KNOWN_S: Final = 2.0
#: what can be said of Slurm's jobs: {key: the argument of dask-jobqueue's cluster}
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
    """The workers of a Dask cluster; one that dies is Dask's to replace, its trial is repeated.

    Parameters
    ----------
    address
        of its scheduler, as ``tcp://host:8786``, or a cluster of Dask's.

    Raises
    ------
    StudyError
        when Dask is not installed, or no scheduler answers there.
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
        """Let go of all trials that have not ended: they are lost."""
        self._client.cancel(list(self._futures), force=True)
        self._client.close(timeout=_TIMEOUT_S)

    @property
    def free(self) -> int:
        """How many more trials it would take now."""
        if monotonic() >= self._known:
            self._known = monotonic() + _KNOWN_S
            self._threads = max(sum(self._client.nthreads().values()), 1)
        return (1 + _AHEAD) * self._threads - len(self._futures)

    @property
    def busy(self) -> int:
        """How many trials it has that have not ended."""
        return len(self._futures)

    def start(self, trial: Trial) -> None:
        """Hand a trial to Dask."""
        future = self._client.submit(respond, asked(trial), pure=False)
        self._futures.add(future)
        future.add_done_callback(self._done.put)

    def ended(self, patience: float) -> list[Outcome]:
        """Return what came out of trials that have ended, after so long (s) at the latest, which may be none.

        Raises
        ------
        StudyError
            when a trial failed, or the scheduler is gone.
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
            raise StudyError("the Dask scheduler is gone", hint="Run the same command again to go on.")
        return found

    def _outcome(self, future: Any) -> Outcome:
        if future.status == "finished":
            return outcome_of(future.result())
        if future.status == "error":
            error = future.exception()
            raise TrialFailed(
                f"Dask could not carry out a trial ({type(error).__name__}: {printable(str(error))[:200]})",
                hint="Is the same version of Pipistrelle installed on all workers, and memory enough?",
            )
        raise StudyError("the Dask scheduler is gone", hint="Run the same command again to go on.")


class SlurmCrew(DaskCrew):
    """Workers that run as jobs of Slurm, one trial at a time each; they end with the study.

    Parameters
    ----------
    jobs
        how many.
    options
        ``KEY=VALUE`` of `SLURM_KEYS`; what is not said is as dask-jobqueue's own configuration has it.

    Raises
    ------
    StudyError
        when dask-jobqueue is not installed, an option is none, or a job cannot be submitted.
    """

    def __init__(self, jobs: int, options: Sequence[str] = ()) -> None:
        jobqueue = _import("dask_jobqueue")
        told: dict[str, Any] = {"cores": 1, "processes": 1, "memory": "2GB", **_slurm_options(options)}
        try:
            self._cluster = jobqueue.SLURMCluster(**told)
            self._cluster.scale(jobs=jobs)
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            raise StudyError("Slurm cannot be asked for workers", found=printable(str(error))[:200]) from None
        super().__init__(self._cluster)

    def __exit__(self, *failed: object) -> None:
        """End the jobs."""
        super().__exit__(*failed)
        self._cluster.close()


def _knock(address: str) -> None:
    """Raise StudyError unless something listens at an address: Dask itself tries on for long."""
    try:
        place = urlsplit(address)
        if not place.hostname or place.port is None:
            raise ValueError("this is no address")
        socket.create_connection((place.hostname, place.port), _TIMEOUT_S).close()
    except (OSError, ValueError) as error:
        raise _unreachable(address, error) from None


def _unreachable(address: str, error: Exception) -> StudyError:
    return StudyError(
        "no Dask scheduler answers there",
        where=printable(address),
        expected="the address that 'dask scheduler' prints, as tcp://host:8786",
        found=printable(str(error))[:120],
    )


def _slurm_options(options: Sequence[str]) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    for text in options:
        key, sign, value = text.partition("=")
        if key not in SLURM_KEYS or not sign or not value:
            raise StudyError(
                "an option of Slurm's jobs cannot be read",
                where="--slurm-option",
                expected="KEY=VALUE, as queue=batch",
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
            f"many machines need Dask ({module})", hint="Install it with: pip install 'pipistrelle[dask]'"
        ) from None
    finally:  # dask-jobqueue ends the process at Ctrl-C from its import on: what was computed would not be kept
        if before is not None and signal.getsignal(signal.SIGINT) is not before:
            signal.signal(signal.SIGINT, before)
