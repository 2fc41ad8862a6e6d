"""Simulate the recorded submissions under our scheduler ``slurm``, from an empty machine to the last start.

Five details depend on polling inside slurmctld and on the recording's clock:

- when completions requested a pass of the main loop;
- whether a completion came before a pass at the same time;
- whether a completion came during a recalculation of priorities;
- at which fraction of a second the main loop runs;
- whether backfill looks for changes before or after the main loop's pass of the same second.

`Timing` has these details. They are taken from a recording, or they are modelled.
"""

import heapq
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from statistics import mean
from typing import Final

from pipistrelle.platforms.naming.hostlists import expanded
from pipistrelle.protocol.base.whole import write_whole
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.run import RunOptions, run
from pipistrelle.runs.inputs.named import load_workload
from pipistrelle.runs.recordings.csv_files import read_rows
from pipistrelle.runs.recordings.errors import RecordingError
from pipistrelle.runs.recordings.names import ZERO, JobStart
from pipistrelle.runs.recordings.recording import Recording
from pipistrelle.runs.slurm.files import read_slurm_files
from pipistrelle.schedulers.slurm.cluster.jobs import COMPLETED, RUNNING, SlurmJob
from pipistrelle.schedulers.slurm.daemon import Daemon
from pipistrelle.schedulers.slurm.passes.controller import Controller

#: time after the last recorded pass at which a simulation ends (s)
_LONGEST: Final = 1e6
#: sbatch takes this long from its start to the submission (s)
_SUBMISSION: Final = 0.049


@dataclass
class Timing:
    """Details of slurmctld's timing that a simulation takes from a recording or models.

    Attributes:
        delays: {job: time (s) from its end to its request for a pass}; the other jobs' delays are modelled.
        phases: pairs (time (s), phase (s)), in order of time. From this time on, the main loop runs at this fraction of
            a second.
        early: jobs that complete before a pass at the same time.
        twice: jobs that complete during a recalculation; Slurm counts the usage of their last period twice.
        looks_last: backfill looks for changes after the main loop's pass of the same second.
    """

    delays: dict[str, float] = field(default_factory=dict)
    phases: list[tuple[float, float]] = field(default_factory=list)
    early: frozenset[str] = frozenset()
    twice: frozenset[str] = frozenset()
    looks_last: bool = False


def recorded_timing(recording: Recording) -> Timing:
    """Return the timing details of a recording."""
    return Timing(_delays(recording), _phases(recording), *_early_and_twice(recording), _looks_last(recording))


def _delays(recording: Recording) -> dict[str, float]:
    begun = {start.job: start.time for start in recording.starts}
    found = {}
    for row in read_rows(recording.folder, "events.csv", ("time", "event", "id")):
        name = recording.names.get(row["id"], row["id"])
        if row["event"] == "request" and name in begun:
            runtime = recording.jobs[name.partition("_")[0]].runtime
            found[name] = max(0.0, row.number("time") - begun[name] - runtime)
    return found


def _phases(recording: Recording) -> list[tuple[float, float]]:
    """Return at which fraction of a second the main loop ran, as `Timing.phases`.

    With the recording's clock, the loop sometimes slips by 0.02 to 0.9 s.
    """
    found: list[tuple[float, float]] = []
    for row in read_rows(recording.folder, "passes.csv", ("time", "kind")):
        if row["kind"] == "main-full":
            time = row.number("time")
            phase = round(time % 1, 3)
            if phase != (found[-1][1] if found else 0.0):
                found.append((time - 59, phase))
    return found


def _early_and_twice(recording: Recording) -> tuple[frozenset[str], frozenset[str]]:
    early: set[str] = set()
    twice: set[str] = set()
    waiting: list[str] = []
    time, inside = 0.0, False
    for step in recording.steps:
        if step.time != time:
            waiting, time = [], step.time
        if step.kind in ("usage", "recalculate"):
            inside = step.kind == "usage"
        elif step.kind == "complete":
            waiting.append(step.job)
            if inside:
                twice.add(step.job)
        elif step.kind in ("main", "backfill"):
            early.update(waiting)
    return frozenset(early), frozenset(twice)


def _looks_last(recording: Recording) -> bool:
    """Return whether backfill found what only a pass of the main loop in the same second had changed.

    The first backfill pass that shows it decides. Such a pass is overdue, and only one pass of the main loop came
    before it in the last seconds: in the same second, or in the second before.
    """
    overdue = recording.config.scheduler_parameters.bf_interval + 1
    steps = recording.steps
    last = inf
    for before, main, step in zip(steps, steps[1:], steps[2:], strict=False):
        if step.kind != "backfill":
            continue
        if step.time - last > overdue and main.kind == "main" and before.time < main.time - 2:
            ago = step.time - main.time
            if ago in (0, 1):
                return ago == 0
        last = step.time
    return False


def play(recording: Recording, timing: Timing) -> list[JobStart]:
    """Simulate the submissions of a recording and return every start."""
    config = recording.config
    controller = Controller(config)
    daemon = Daemon(controller, looks_last=timing.looks_last)
    jobs = recording.jobs
    ends: list[tuple[float, int, SlurmJob, int]] = []
    arrivals = sorted(((one.job.submit, one.job.number) for one in jobs.values()), reverse=True)
    phases = timing.phases[::-1]
    latest = _LONGEST + max([0.0, *(step.time for step in recording.steps[-1:])])
    starts: list[JobStart] = []
    names = controller.machine.names_of
    while True:
        arrival = arrivals[-1][0] + _SUBMISSION if arrivals else inf
        end = ends[0][0] if ends else inf
        due = daemon.next_time()
        now = min(arrival, end, due)
        if phases and now >= phases[-1][0]:
            daemon.phase = phases.pop()[1]
            continue
        if now >= latest:
            return starts
        if due <= now:
            actions = daemon.advance(now)
            for job in actions.started:
                runtime = jobs[str(job.number)].runtime
                before = 0.001 if job.ids[0] in timing.early else 0.0
                heapq.heappush(ends, (round(now + runtime - before, 3), job.serial, job, job.restarts))
                starts.append(JobStart(job.ids[0], float(int(now)), tuple(names(job.nodes))))
        elif end <= now:
            _, _, job, incarnation = heapq.heappop(ends)
            if job.state == RUNNING and job.restarts == incarnation:
                daemon.catch_up(now)
                delay = timing.delays.get(job.ids[0], config.answers.delay(job.nodes.bit_count()))
                if job.ids[0] in timing.twice:
                    usage = controller.usage
                    last, usage.last = usage.last, usage.last - int(config.priority.calc_period)
                    usage.add((job,), int(now))
                    usage.last = last
                daemon.ended(job, COMPLETED, now, now + delay)
        else:
            submit, number = arrivals.pop()
            submitted = jobs[str(number)]
            daemon.catch_up(now)
            ids = [f"{number}_{task}" for task in submitted.tasks] or [str(number)]
            controller.submit(ids, submitted.job, int(submit), submitted.tasks)
            daemon.submitted(now)


def play_on_engine(recording: Recording) -> list[JobStart]:
    """Simulate a recording as ``pipistrelle run`` does, with modelled delays, and return every start.

    Raises:
        RecordingError: jobs.events and jobs.csv have different jobs.
    """
    with tempfile.TemporaryDirectory(prefix="pipistrelle-check-") as name:
        made, out = Path(name) / "reservations.txt", Path(name) / "out"
        write_whole(made, [recording.reservations.encode()])
        spec = RunSpec(
            workload=(str(recording.folder / "jobs.events"),),
            platform=recording.conf,
            scheduler="slurm",
            config=recording.conf,
            accounting=tuple(recording.accounting),
            reservations=(f"{made},zero={ZERO}",) if recording.reservations else (),
        )
        # jobs that cannot run are left out of the simulation, but not of the recording
        submitted = {name.partition("_")[0] for name in load_workload(spec.workload[0]).ids}
        for job_id in sorted(submitted ^ set(recording.jobs), key=int):
            raise RecordingError(
                f"job {job_id} is in only one of the files jobs.events and jobs.csv",
                where=spec.workload[0],
                hint="Both files must have the recording's jobs; restore them as recorded.",
            )
        run(spec, RunOptions(out=out))
        pools = read_slurm_files(recording.conf).platform.pools
        names = [node for pool in pools for node in expanded(str(pool.names), "slurm.conf")]
        return [
            JobStart(
                row["job_id"].partition("!")[2].partition("#")[0],
                float(int(row.number("time"))),
                tuple(names[unit] for unit in NodeSet.parse(row["alloc"])),
            )
            for row in read_rows(out, "out_decisions.csv", ("decision", "job_id", "time", "alloc"))
            if row["decision"] == "EXECUTE_JOB"
        ]


def by_name(starts: Sequence[JobStart]) -> dict[str, list[JobStart]]:
    """Return {name of a job: its starts}, from a list of starts."""
    found: dict[str, list[JobStart]] = defaultdict(list)
    for start in starts:
        found[start.job].append(start)
    return found


def mean_waits(recording: Recording, starts: Sequence[JobStart]) -> dict[tuple[str, str], float]:
    """Return {(what, name): mean wait (s)} of each partition, account and QOS.

    A job waits until its first start.
    """
    waits: dict[tuple[str, str], list[float]] = defaultdict(list)
    for name, some in by_name(starts).items():
        job = recording.jobs[name.partition("_")[0]].job
        for what, group in (("partition", job.partitions[0]), ("account", job.account), ("qos", job.qos)):
            if group:
                waits[what, group].append(float(int(some[0].time)) - job.submit)
    return {group: mean(some) for group, some in waits.items()}


def largest_error(waits: dict[tuple[str, str], float], others: dict[tuple[str, str], float]) -> float:
    """Return the largest relative error of mean waits.

    Args:
        waits: the true mean waits, by key (s).
        others: the mean waits to compare with them, by the same keys (s).
    """
    return max(
        (abs(others[group] / wait - 1) for group, wait in waits.items() if wait and group in others), default=0.0
    )


def equal(one: JobStart, other: JobStart | None) -> bool:
    """Return whether two starts of a job are at the same second on the same nodes; False if ``other`` is None."""
    return other is not None and int(one.time) == int(other.time) and set(one.nodes) == set(other.nodes)


def pairs(starts: Sequence[JobStart], others: Sequence[JobStart]) -> list[tuple[JobStart, JobStart | None]]:
    """Pair each start with the corresponding start in ``others``.

    The n-th start of a job corresponds to the n-th start of the same job; None if there is none.
    """
    left = {name: iter(some) for name, some in by_name(others).items()}
    return [(start, next(left.get(start.job, iter(())), None)) for start in starts]
