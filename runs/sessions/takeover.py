"""A run that goes on from a snapshot under another policy, in a folder of its own: what if, from that moment on."""

import shutil
from collections.abc import Mapping
from contextlib import suppress
from math import inf, isnan
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import msgspec

from pipistrelle.protocol.events import (
    Event,
    JobCompleted,
    JobCompletedData,
    JobDescription,
    JobStarted,
    JobStartedData,
    JobSubmitted,
    JobSubmittedData,
)
from pipistrelle.runs.description.spec import ResumedFrom
from pipistrelle.runs.execution.pause import Pause
from pipistrelle.runs.folders.files import number_in, output_rows, read_config
from pipistrelle.runs.sessions.snapshot import JOURNAL, SnapshotHeader
from pipistrelle.server.attempts.attempt import Attempt
from pipistrelle.server.engine.jobs import Job, Labels
from pipistrelle.server.outputs.csv_file import unwritable
from pipistrelle.server.outputs.folder import (
    COMMAND_FILE,
    CONFIG_FILE,
    OUTPUT_FILES,
    OUTPUT_PREFIX,
    SUMMARY_FILE,
    snapshots_in,
)
from pipistrelle.server.outputs.once import remove_outputs, to_json, write_output
from pipistrelle.server.setup.setup import Setup
from pipistrelle.server.simulation.simulate import Simulation

_NAMELESS: Final[Labels] = (None, None, None, None, None)
#: what is read of the jobs that have ended
_COLUMNS: Final = (
    *("job_id", "workload_name", "submission_time", "requested_number_of_resources", "requested_time", "final_state"),
    *("starting_time", "finish_time", "allocated_resources"),
)
#: of the events of one instant those of jobs that end come first, but not before the same job's start
_ENDED, _SUBMITTED, _STARTED, _ENDED_AT_ONCE = range(4)


def resumed_from(path: Path, header: SnapshotHeader, state: Mapping[str, Any]) -> ResumedFrom:
    """Return what ``out_command.json`` says of where a run comes from."""
    return ResumedFrom(
        folder=str(path.parent),
        snapshot=path.name,
        sha256=header.sha256,
        notices=header.notices,
        now=header.now,
        scheduler=str(state.get("scheduler")),
    )


def copy_outputs(source: Path, target: Path, *, whole: bool) -> None:
    """Let a folder have the outputs of another, so far, and no others.

    ``whole`` tells whether it is the same run, which goes on there: with its session, and how it was called.

    Raises
    ------
    OutputFailed
        when that cannot be done.
    """
    remove_outputs([*(target / name for name in OUTPUT_FILES), *snapshots_in(target)])
    names = [name for name in OUTPUT_FILES if name not in (SUMMARY_FILE, f"{OUTPUT_PREFIX}schedule.csv")]
    if whole:
        names.append(JOURNAL)
    for name in names:
        try:
            if (source / name).is_file():
                shutil.copyfile(source / name, target / name)
        except OSError as error:
            raise unwritable(target / name, error) from None


class TakenOver:
    """Lets a run go on that another scheduler began: its outputs are copied, its jobs told to the new one.

    Parameters
    ----------
    source, target
        folders of the outputs: of that run, and of this one.
    setup
        of both.
    state
        of the snapshot.
    """

    def __init__(self, source: Path, target: Path, setup: Setup, state: dict[str, Any]) -> None:
        self._source = source
        self._target = target
        self._setup = setup
        self._state = state

    def __call__(self, pause: Pause) -> None:
        """Do so; PipistrelleError if the scheduler cannot take it over, or a file cannot be had."""
        copy_outputs(self._source, self._target, whole=False)
        try:
            self._describe(pause)
            pause.take_over(self._state, self._past)
        except BaseException:
            with suppress(OSError):  # they are of no use by themselves
                remove_outputs(self._target / name for name in OUTPUT_FILES)
            raise

    def _describe(self, pause: Pause) -> None:
        """Let the configuration name the scheduler, and the command where the run comes from."""
        welcome, hello = pause.simulation.welcome, pause.simulation.hello
        scheduler = {"name": hello.name, "version": hello.version, "features": list(welcome.features)}
        write_output(self._target / CONFIG_FILE, to_json({**read_config(self._target), "scheduler": scheduler}))
        write_output(self._target / COMMAND_FILE, to_json(msgspec.to_builtins(pause.spec)))

    def _past(self, simulation: Simulation) -> list[Event]:
        """Return which jobs were submitted, started and ended, in that order."""
        engine = simulation.engine
        past = _Past(self._setup, engine.arrivals.labels(), engine.now)
        for row in output_rows(self._target, "jobs.csv", *_COLUMNS):
            past.add_ended(row)
        for job in engine.cluster.running.values():
            going = isinstance(job.attempt, Attempt) and job.attempt.preempting is not None
            past.add(job.announcement(), _joined(job), job.start, JobStartedData(job.id, str(job.alloc), going))
        for job in engine.cluster.waiting.values():
            past.add_waiting(job.announcement(), _joined(job))
        return past.events()


def _joined(job: Job) -> float:
    """Return when (s) a job joined the queue: who is kept back is submitted earlier."""
    return job.submit if isnan(job.joined) else job.joined


class _Past:
    """What has happened to jobs, to be told in that order.

    Parameters
    ----------
    labels
        {job id: whose it is}, of those that have ended; {}: nobody wants to know.
    now
        when it ends, s.
    """

    def __init__(self, setup: Setup, labels: Mapping[str, Labels], now: float) -> None:
        self._labels = labels
        self._now = now
        self._places = {
            f"{prefix}!{name}": place
            for prefix, workload in setup.workloads.items()
            for place, name in enumerate(workload.ids)
        }
        #: when, and after how many others, who joined the queue last of those that wait
        self._last = (0.0, -inf)
        #: ((when, what, place among such), event)
        self._told: list[tuple[tuple[float, int, float], Event]] = []

    def add(self, data: JobSubmittedData, submit: float, start: float, started: JobStartedData) -> None:
        """Add a job that was submitted and started at these times (s)."""
        self._told.append(((submit, _SUBMITTED, self._place(data)), JobSubmitted(submit, data)))
        self._told.append(((start, _STARTED, len(self._told)), JobStarted(start, started)))

    def add_waiting(self, data: JobSubmittedData, submit: float) -> None:
        """Add a job that waits, and joined the queue at ``submit`` (s), after the one before."""
        self._last = max(self._last, (submit, self._place(data)))
        self._told.append(((submit, _SUBMITTED, self._last[1]), JobSubmitted(submit, data)))

    def _place(self, data: JobSubmittedData) -> float:
        return self._places.get(data.job_id.partition("#")[0], inf)

    def add_ended(self, row: Mapping[str, str]) -> None:
        """Add a job that has ended, of which the outputs tell; nothing of one that was never started."""
        if not row["starting_time"]:
            return
        job_id, walltime = f"{row['workload_name']}!{row['job_id']}", number_in(row["requested_time"])
        size = int(number_in(row["requested_number_of_resources"]))
        names = self._labels.get(job_id.partition("#")[0], _NAMELESS)
        job = JobDescription(job_id, size, walltime if walltime > 0 else None, None, None, *names)
        start, end = (min(number_in(row[name]), self._now) for name in ("starting_time", "finish_time"))
        submit = min(number_in(row["submission_time"]), start)
        self.add(JobSubmittedData(job_id, job), submit, start, JobStartedData(job_id, row["allocated_resources"]))
        what = _ENDED if end > start else _ENDED_AT_ONCE
        state: Any = row["final_state"]
        data = JobCompletedData(job_id, state, row["allocated_resources"])
        self._told.append(((end, what, len(self._told)), JobCompleted(end, data)))

    def events(self) -> list[Event]:
        """Return all, in the order in which it happened."""
        return [event for _, event in sorted(self._told, key=itemgetter(0))]
