"""Read the controller's log of a recording, step by step."""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final

from pipistrelle.platforms.naming.hostlists import expanded
from pipistrelle.protocol.base.errors import printable, quoted
from pipistrelle.runs.recordings.errors import RecordingError
from pipistrelle.runs.recordings.names import LOG, ZERO, label
from pipistrelle.traces.files import open_trace

_WHAT: Final = "the log of a recording"
_EPOCH: Final = datetime.fromisoformat(ZERO).replace(tzinfo=UTC)
_SUBMIT: Final = re.compile(r"_slurm_rpc_submit_batch_job: JobId=(\d+) InitPrio=(\d+)")
_ALLOCATE: Final = re.compile(r"sched: Allocate JobId=(\S+) NodeList=(\S+)")
_TEST: Final = re.compile(r"bf: test for JobId=(\S+) ")
_RESERVE: Final = re.compile(r"bf: reserve JobId=(\S+) to start at (\S+), end at (\S+) on nodes (\S+)")
_STARTED: Final = re.compile(r"bf: _start_job: Started JobId=(\S+) in \S+ on (\S+)")
_PREEMPTED: Final = re.compile(
    r"preempted JobId=(\S+) has been (?:requeued|killed) to reclaim resources for JobId=(\S+)"
)
_MAIN: Final = re.compile(r"Running job scheduler for (full queue|default depth)")
_EPILOG: Final = re.compile(r"_slurm_rpc_epilog_complete: JobId=(\S+) Node=(\S+)")
_PRIORITY: Final = re.compile(r"priority for job (\d+) is now (\d+)$")
_MADE: Final = re.compile(r"_slurm_rpc_resv_create complete for (\S+)")
#: {kind of step: line of the log that ends or requeues a job}
_ENDS: Final = {
    "complete": re.compile(r"_job_complete: JobId=(\S+) done"),
    "timeout": re.compile(r"Time limit exhausted for JobId=(\S+)"),
    "requeue": re.compile(r"^Requeuing JobId=(\S+)"),
}


@dataclass
class LogStep:
    """One step of the controller's log.

    Attributes:
        time: time of the step (s).
        kind: such as ``submit``, ``main`` (a pass of the main loop), ``backfill`` or ``complete``.
        where: the file and line.
        job: name of the job, if the step concerns one.
        data: priority, name of a node, or `PassLog`, depending on the kind.
    """

    time: float
    kind: str
    where: str
    job: str = ""
    data: Any = None


@dataclass
class PassLog:
    """The log's record of one scheduling pass.

    Attributes:
        full: whether the main loop considers the whole queue.
        started: (job, nodes) of each start.
        outcomes: [job, kind, start (s), end (s), nodes] of each job that backfill tested; the kind is ``reserve``,
            ``window``, ``start`` or empty.
        preempted: (victim, job that preempts it).
    """

    full: bool = False
    started: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    outcomes: list[list[Any]] = field(default_factory=list)
    preempted: list[tuple[str, str]] = field(default_factory=list)


def log_lines(folder: Path) -> Iterator[tuple[float | None, str, str]]:
    """Yield (time (s), text, "file:line") for each log line; a time of None means the time of the line before.

    Raises:
        PipistrelleError: the log is truncated or corrupt, or a line is damaged.
    """
    shown = printable(str(folder / LOG))
    with open_trace(folder / LOG, what=_WHAT) as stream:
        for number, raw in enumerate(stream, start=1):
            where = f"{shown}:{number}"
            try:
                head, mark, text = raw.decode().rstrip("\n").partition(" ")
                time = float(head) if head else None
            except ValueError:
                mark = ""
            if not mark:
                found = quoted(raw.decode("utf-8", "replace").rstrip("\n"))
                raise RecordingError("the line is damaged", where=where, expected="TIME TEXT", found=found)
            yield time, text.strip(), where


def reservation_times(folder: Path) -> dict[str, float]:
    """Return {name of a reservation: when it was created (s)}."""
    found: dict[str, float] = {}
    now = 0.0
    for time, text, _ in log_lines(folder):
        now = now if time is None else time
        if match := _MADE.search(text):
            found[match[1]] = now
    return found


def read_steps(folder: Path, jobs: Collection[str], nodes: Collection[str]) -> list[LogStep]:
    """Return the steps of the log: submissions, passes, ends, requeues, usage and priorities.

    Args:
        jobs: ids of the submitted jobs.
        nodes: names of the nodes.

    Raises:
        PipistrelleError: a line is damaged, or names an unknown job or node.
    """
    return _Reader(jobs, nodes).read(folder)


class _Reader:
    """Collects the steps while the log is read."""

    def __init__(self, jobs: Collection[str], nodes: Collection[str]) -> None:
        self._jobs = jobs
        self._nodes = nodes
        self._found: list[LogStep] = []
        self._now = 0.0
        self._where = ""
        #: the pass whose lines are being read, and whether it is one of backfill
        self._current: PassLog | None = None
        self._backfill = False
        #: whether a decay of usage was read, but no new priority yet
        self._decays = False
        self._expand = cache(self._expanded)

    def read(self, folder: Path) -> list[LogStep]:
        for time, text, where in log_lines(folder):
            if time is not None:
                self._recalculate()
                self._now = time
                self._current = self._current if self._backfill else None
            self._where = where
            if text.startswith("bf: "):
                self._read_backfill(text)
            else:
                self._read_line(text)
        return self._found

    def _read_backfill(self, text: str) -> None:
        """Read a log line that backfill wrote."""
        current = self._current
        if text.startswith("bf: beginning"):
            self._begin("backfill", PassLog(), backfill=True)
        elif current is None:
            pass
        elif match := _TEST.match(text):
            current.outcomes.append([self._job(match[1]), "", 0, 0, ()])
        elif match := _RESERVE.match(text):
            seen = ["reserve", self._clock(match[2]), self._clock(match[3]), self._expand(match[4])]
            self._outcome(current)[1:] = seen
        elif "StartTime set to time after current backfill window" in text:
            self._outcome(current)[1] = "window"
        elif match := _STARTED.match(text):
            name, nodes = self._job(match[1]), self._expand(match[2])
            self._outcome(current)[:] = [name, "start", 0, 0, nodes]
            current.started.append((name, nodes))
        elif text.startswith("bf: completed") or "no jobs to backfill" in text:
            self._current, self._backfill = None, False

    def _read_line(self, text: str) -> None:
        """Read a log line that was not written by backfill."""
        current = self._current
        if "no jobs to backfill" in text:
            self._current, self._backfill = None, False
        elif match := _MAIN.search(text):
            self._begin("main", PassLog(full=match[1] == "full queue"), backfill=False)
        elif match := _ALLOCATE.search(text):
            if current is not None:
                current.started.append((self._job(match[1]), self._expand(match[2])))
        elif match := _PREEMPTED.search(text):
            if current is not None:
                current.preempted.append((self._job(match[1]), self._job(match[2])))
        elif match := _SUBMIT.search(text):
            self._add("submit", self._job(match[1]), int(match[2]))
        elif match := _EPILOG.search(text):
            (node,) = self._expand(match[2])
            self._add("epilog", self._job(match[1]), node)
        elif "PRIO: Decay factor over" in text:
            self._decays = True
            self._add("usage")
        elif match := _PRIORITY.search(text):
            self._recalculate()  # other threads run between the decay and the first priority
            self._add("priority", match[1], int(match[2]))
        else:
            for kind, line in _ENDS.items():
                if match := line.search(text):
                    self._add(kind, self._job(match[1]))
                    break

    def _begin(self, kind: str, made: PassLog, *, backfill: bool) -> None:
        self._current, self._backfill = made, backfill
        self._add(kind, data=made)

    def _recalculate(self) -> None:
        if self._decays:
            self._decays = False
            self._add("recalculate")

    def _add(self, kind: str, job: str = "", data: Any = None) -> None:
        self._found.append(LogStep(self._now, kind, self._where, job, data))

    def _outcome(self, current: PassLog) -> list[Any]:
        if not current.outcomes:
            raise RecordingError("backfill decides about a job that it has not tested", where=self._where)
        return current.outcomes[-1]

    def _job(self, text: str) -> str:
        name = label(text)
        if name.partition("_")[0] not in self._jobs:
            raise RecordingError("the job is not in jobs.csv", where=self._where, found=quoted(text))
        return name

    def _expanded(self, text: str) -> tuple[str, ...]:
        names = tuple(expanded(text, self._where))
        unknown = [name for name in names if name not in self._nodes]
        if unknown or not names:
            found = quoted(unknown[0] if unknown else text)
            raise RecordingError("the node is not in slurm.conf", where=self._where, found=found)
        return names

    def _clock(self, text: str) -> int:
        """Convert a date, or a clock time of the first day, to seconds since time 0."""
        try:
            date = datetime.fromisoformat(text if "T" in text else f"{ZERO[:10]}T{text}")
        except ValueError:
            raise RecordingError("the date is damaged", where=self._where, found=quoted(text)) from None
        return int((date.replace(tzinfo=UTC) - _EPOCH).total_seconds())
