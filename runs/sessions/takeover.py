"""Continue a run from a snapshot under another policy, in a new folder."""

import shutil
from collections.abc import Mapping
from contextlib import suppress
from math import inf, isnan
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import msgspec

from pipistrelle.protocol.base.whole import whole_file
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
#: columns of out_jobs.csv that describe an ended job
_COLUMNS: Final = (
    *("job_id", "workload_name", "submission_time", "requested_number_of_resources", "requested_time", "final_state"),
    *("starting_time", "finish_time", "allocated_resources"),
)
#: order of events at one instant: ends come first, except after the start of the same job
_ENDED, _SUBMITTED, _STARTED, _ENDED_AT_ONCE = range(4)


def resumed_from(path: Path, header: SnapshotHeader, state: Mapping[str, Any]) -> ResumedFrom:
    """Return the origin of a taken-over run, for its ``out_command.json``."""
    return ResumedFrom(
        folder=str(path.parent),
        snapshot=path.name,
        sha256=header.sha256,
        notices=header.notices,
        now=header.now,
        scheduler=str(state.get("scheduler")),
    )


def copy_outputs(source: Path, target: Path, *, whole: bool) -> None:
    """Copy a run's outputs to the folder ``target``.

    All older outputs in this folder are removed.

    Args:
        whole: copy the description and the session too, because the same run continues in the other folder.

    Raises:
        OutputFailed: copying failed.
    """
    remove_outputs([*(target / name for name in OUTPUT_FILES), *snapshots_in(target)])
    names = [name for name in OUTPUT_FILES if name not in (SUMMARY_FILE, f"{OUTPUT_PREFIX}schedule.csv")]
    names = [*names, JOURNAL] if whole else [name for name in names if name not in (CONFIG_FILE, COMMAND_FILE)]
    for name in names:
        try:
            if (source / name).is_file():
                with (source / name).open("rb") as old, whole_file(target / name) as new:
                    shutil.copyfileobj(old, new)
        except OSError as error:
            raise unwritable(target / name, error) from None


class TakenOver:
    """A function that prepares a run's continuation under a new scheduler.

    It copies the earlier outputs, and sends the scheduler the past events of jobs.

    Args:
        source, target: output folders of the earlier run and of the new run.
        setup: the setup, which is the same for both runs.
        state: the state in the snapshot.
    """

    def __init__(self, source: Path, target: Path, setup: Setup, state: dict[str, Any]) -> None:
        self._source = source
        self._target = target
        self._setup = setup
        self._state = state

    def __call__(self, pause: Pause) -> None:
        """Take over the run.

        Raise PipistrelleError if the scheduler does not support this, or a file is missing.
        """
        copy_outputs(self._source, self._target, whole=False)
        try:
            self._describe(pause)
            pause.take_over(self._state, self._past)
        except BaseException:
            with suppress(OSError):  # remove the copies, which are useless if the takeover fails
                remove_outputs(self._target / name for name in OUTPUT_FILES)
            raise

    def _describe(self, pause: Pause) -> None:
        """Write the new scheduler to the new run's configuration files.

        The snapshot from which it continues is written, too.
        """
        welcome, hello = pause.simulation.welcome, pause.simulation.hello
        scheduler = {"name": hello.name, "version": hello.version, "features": list(welcome.features)}
        write_output(self._target / CONFIG_FILE, to_json({**read_config(self._source), "scheduler": scheduler}))
        write_output(self._target / COMMAND_FILE, to_json(msgspec.to_builtins(pause.spec)))

    def _past(self, simulation: Simulation) -> list[Event]:
        engine = simulation.engine
        past = _Past(self._setup, engine.arrivals.labels(), engine.now)
        for row in output_rows(self._target, "jobs.csv", *_COLUMNS):
            past.add_ended(row)
        for job in engine.cluster.running.values():
            going = isinstance(job.attempt, Attempt) and job.attempt.preempting is not None
            takes = engine.cluster.ledger.told_takes(job)
            started = JobStartedData(job.id, str(job.alloc), takes, going)
            past.add(job.announcement(), _joined(job), job.start, started)
        for job in engine.cluster.waiting.values():
            past.add_waiting(job.announcement(), _joined(job))
        return past.events()


def _joined(job: Job) -> float:
    """Return when (s) a job joined the queue, which is after its dependencies.

    A job held by a dependency joins later than it was submitted.
    """
    return job.submit if isnan(job.joined) else job.joined


class _Past:
    """The past events of jobs, in the order in which the new scheduler receives them.

    Args:
        labels: {job id: labels} of ended jobs; empty if the scheduler did not request labels.
        now: the time (s) up to which events are past.
    """

    def __init__(self, setup: Setup, labels: Mapping[str, Labels], now: float) -> None:
        self._labels = labels
        self._now = now
        self._places = {
            f"{prefix}!{name}": place
            for prefix, workload in setup.workloads.items()
            for place, name in enumerate(workload.ids)
        }
        #: submit time and index in the workload of the last job that joined the queue
        self._last = (0.0, -inf)
        #: ((time, kind of event, index within the kind), event)
        self._told: list[tuple[tuple[float, int, float], Event]] = []

    def add(self, data: JobSubmittedData, submit: float, start: float, started: JobStartedData) -> None:
        self._told.append(((submit, _SUBMITTED, self._place(data)), JobSubmitted(submit, data)))
        self._told.append(((start, _STARTED, len(self._told)), JobStarted(start, started)))

    def add_waiting(self, data: JobSubmittedData, submit: float) -> None:
        """Add a queued job that joined the queue at ``submit`` (s).

        Add queued jobs in the order of the queue.
        """
        self._last = max(self._last, (submit, self._place(data)))
        self._told.append(((submit, _SUBMITTED, self._last[1]), JobSubmitted(submit, data)))

    def _place(self, data: JobSubmittedData) -> float:
        return self._places.get(data.job_id.partition("#")[0], inf)

    def add_ended(self, row: Mapping[str, str]) -> None:
        """Add an ended job from a row of out_jobs.csv, unless it never started."""
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
        return [event for _, event in sorted(self._told, key=itemgetter(0))]
