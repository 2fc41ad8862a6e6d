"""Workers that are processes on this machine."""

import os
import selectors
import signal
import subprocess
import sys
from collections import Counter, deque
from contextlib import suppress
from typing import Final, Self

from pipistrelle.protocol.base.log import logger
from pipistrelle.studies.errors import StudyError
from pipistrelle.studies.trials.objects import Objects
from pipistrelle.studies.trials.trial import Outcome, Trial
from pipistrelle.studies.workers.crew import MOST_DEATHS, TrialFailed, asked, outcome_of, respond
from pipistrelle.studies.workers.fork import Fork

_COMMAND: Final = (sys.executable, "-m", "pipistrelle.cli.study.worker")
#: how long a worker may take to end after its input is closed (s)
_GRACE_S: Final = 2.0
_CHUNK: Final = 1 << 16


def _started() -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(  # noqa: S603 - our own program
            _COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"OPENBLAS_NUM_THREADS": "1", **os.environ},
            start_new_session=True,
        )
    except OSError as error:
        raise StudyError(f"cannot start a worker ({error.strerror or error})", where=_COMMAND[0]) from None


class _Worker:
    def __init__(self, process: subprocess.Popen[bytes] | Fork) -> None:
        self.process = process
        assert process.stdin is not None
        assert process.stdout is not None
        self.asks, self.answers = process.stdin, process.stdout
        self.fd = self.answers.fileno()
        self.trial: Trial | None = None
        self.read = b""

    def ask(self, trial: Trial) -> None:
        self.trial = trial
        with suppress(BrokenPipeError):  # the worker is dead, which is noticed when its output is read
            self.asks.write(asked(trial) + b"\n")
            self.asks.flush()

    def end(self) -> None:
        for pipe in (self.asks, self.answers):
            with suppress(OSError):
                pipe.close()
        if isinstance(self.process, Fork) and self.trial is not None:
            self.process.kill()  # it notices the closed input only after its trial
        try:
            self.process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class LocalCrew:
    """Worker processes on this machine.

    If a worker dies, another worker replaces it and repeats its trial. Workers are started when they are needed. They
    never outlive this process.

    Args:
        jobs: maximum number of workers.
        objects: the Python objects of the study. With objects, workers are forks of this process, because forks
            inherit the objects. None: workers are new processes.
    """

    def __init__(self, jobs: int, objects: Objects | None = None) -> None:
        self._jobs = jobs
        self._objects = objects
        self._workers: dict[int, _Worker] = {}
        self._selector = selectors.DefaultSelector()
        #: trials to repeat because their worker died; the number of workers that died in each trial
        self._again: deque[Trial] = deque()
        self._deaths: Counter[tuple[int, int]] = Counter()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End all workers at once; unfinished trials are lost."""
        for worker in self._workers.values():
            with suppress(OSError):
                worker.asks.close()
        while self._workers:
            self._workers.popitem()[1].end()
        self._selector.close()

    @property
    def processes(self) -> list[int]:
        """Return the process ids of the workers."""
        return [worker.process.pid for worker in self._workers.values()]

    @property
    def free(self) -> int:
        """Return how many more trials the workers accept now."""
        return self._jobs - self.busy

    @property
    def busy(self) -> int:
        """Return the number of started trials that have not ended."""
        return len(self._again) + sum(worker.trial is not None for worker in self._workers.values())

    def start(self, trial: Trial) -> None:
        """Give a trial to an idle worker, or to a new one."""
        idle = next((worker for worker in self._workers.values() if worker.trial is None), None)
        if idle is None:
            idle = self._worker()
            self._workers[idle.fd] = idle
            self._selector.register(idle.fd, selectors.EVENT_READ)
        idle.ask(trial)

    def _worker(self) -> _Worker:
        if self._objects is None:
            return _Worker(_started())
        objects = self._objects
        others = [pipe.fileno() for one in self._workers.values() for pipe in (one.asks, one.answers)]
        return _Worker(Fork(lambda line: respond(line, objects), others))

    def ended(self, patience: float) -> list[Outcome]:
        """Return the outcomes of ended trials; wait at most ``patience`` (s) for one.

        Raises:
            StudyError: a trial failed, or its workers died repeatedly.
        """
        found: list[Outcome] = []
        for key, _ in self._selector.select(patience):
            worker = self._workers[key.fd]
            chunk = os.read(key.fd, _CHUNK)
            if not chunk:
                self._bury(worker)
                continue
            worker.read += chunk
            while (end := worker.read.find(b"\n")) >= 0:
                line, worker.read = worker.read[:end], worker.read[end + 1 :]
                worker.trial = None
                found.append(outcome_of(line))
        while self._again:
            self.start(self._again.popleft())
        return found

    def _bury(self, worker: _Worker) -> None:
        """Remove a worker process that died, and record that its trial must be repeated.

        Raise TrialFailed if too many workers have died while running its trial.
        """
        self._selector.unregister(worker.fd)
        del self._workers[worker.fd]
        worker.end()
        code, trial = worker.process.returncode, worker.trial
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        if trial is None:
            return
        key = (trial.point, trial.replica)
        self._deaths[key] += 1
        if self._deaths[key] == MOST_DEATHS:
            raise TrialFailed(
                f"{trial.name} failed: {MOST_DEATHS} workers died in it, the last {how}",
                hint="Is there enough memory? 'pipistrelle study run' with fewer --jobs needs less.",
            )
        logger().warning("a worker {} in {}, which is repeated", how, trial.name)
        self._again.append(trial)
