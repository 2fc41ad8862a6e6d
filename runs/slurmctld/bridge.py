"""The scheduler ``slurmctld``: an unmodified slurmctld decides, in virtual time.

The server and slurmctld are synchronised by the feature ``lookahead`` (protocol/SPEC.md). At an instant at which both
do something, slurmctld acts first, as if the server's events had not reached it yet.
"""

import heapq
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import inf
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from pipistrelle.platforms.naming.hostlists import compressed, expanded
from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.protocol.base.log import logger
from pipistrelle.protocol.decisions import (
    Decision,
    ExecuteJob,
    ExecuteJobData,
    KillJob,
    KillJobData,
    PreemptJob,
    PreemptJobData,
    RejectJob,
    RejectJobData,
)
from pipistrelle.protocol.events import (
    DecisionRejected,
    JobCancelled,
    JobCompleted,
    JobDescription,
    JobSubmitted,
    MaintenanceAnnounced,
    MaintenanceBegins,
    MaintenanceEnds,
    NodesFailed,
    NodesRepaired,
    SimulationBegins,
    SimulationBeginsData,
    SimulationEnds,
    SimulationEndsData,
)
from pipistrelle.protocol.fields import package_version
from pipistrelle.protocol.messages import HelloData, Notice, Reply, WelcomeData
from pipistrelle.protocol.resources.nodes import NodeTake
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.runs.slurmctld import wire
from pipistrelle.runs.slurmctld.daemon import Slurmctld
from pipistrelle.runs.slurmctld.submission import sbatch_words, takes_on
from pipistrelle.runs.slurmctld.virtual_time import NANOSECONDS
from pipistrelle.runs.slurmctld.wire import Launch
from pipistrelle.schedulers.policy.errors import PolicyFailed

#: slurmctld's date of time 0: 2026-01-05T00:00:00Z
EPOCH_S: Final = 1_767_571_200
#: slurmctld starts that long before time 0 (s); most periods of its activities divide it
LEAD_S: Final = 600
#: time from the end of a job that slurmctld kills until its node reports that nothing is left of it (ns)
_EPILOG: Final = NANOSECONDS // 50
#: longest stretch of time in one reply (ns)
_STRETCH: Final = 6 * 3600 * NANOSECONDS
#: how long slurmctld may do nothing at the end, while jobs wait and none runs (ns)
_IDLE: Final = 2 * 3600 * NANOSECONDS
#: largest difference between a time of the server and slurmctld's, which counts nanoseconds (s)
_ROUNDING_S: Final = 1e-6
_BEGIN: Final = re.compile(r"now\+(\d{1,12})")
_IDS: Final = re.compile(r"(?<=[:])(\d+)(?:_(\d+))?")


class RecordedDetails(NamedTuple):
    """What a recording shows of slurmctld's surroundings.

    Attributes:
        late: {id of a job in the workload: time (s) from the job's end in the server to a node's report of it}.
        delays: {id of a job: how long (s) its nodes take to report that no process of the job is left}.
        holds: (time (s), length (s)) of each standstill of slurmctld's main loop.
        commands: (time (s), words) of each command of Slurm to run.
    """

    late: Mapping[str, float] = MappingProxyType({})
    delays: Mapping[str, float] = MappingProxyType({})
    holds: Sequence[tuple[float, float]] = ()
    commands: Sequence[tuple[float, Sequence[str]]] = ()


_NOTHING: Final = RecordedDetails()


class Bridge:
    """The scheduler ``slurmctld``: it answers the server's notices with the decisions of an unmodified slurmctld.

    Args:
        config: the cluster's slurm.conf.
        prefix: the folder in which Slurm is installed; None: the programs in the PATH.
        accounting: files of associations and QOS.
        recorded: details of a recording that the run repeats.
        lead: how long before time 0 slurmctld starts (s).
    """

    def __init__(
        self,
        config: str,
        *,
        prefix: str | None = None,
        accounting: Sequence[str] = (),
        recorded: RecordedDetails = _NOTHING,
        lead: int = LEAD_S,
    ) -> None:
        self._config, self._prefix, self._accounting, self._recorded = config, prefix, accounting, recorded
        self._start = (EPOCH_S - lead) * NANOSECONDS
        self._slurm: Slurmctld | None = None
        self.ended: SimulationEndsData | None = None
        #: {number of a job in Slurm: job}, {id: number} of jobs that wait or run
        self._jobs: dict[int, JobDescription] = {}
        self._numbers: dict[str, int] = {}
        #: {workload's id without prefix: number}, for dependencies
        self._named: dict[str, str] = {}
        #: {number of an array: {index: job}}
        self._arrays: dict[int, dict[int, JobDescription]] = {}
        self._running: set[int] = set()
        #: numbers of jobs that Slurm has put back into the queue and the server has not submitted again
        self._requeued: dict[str, int] = {}
        #: ids of jobs that lost their nodes at this instant
        self._lost: list[str] = []
        self._units: dict[str, int] = {}
        self._names: dict[int, str] = {}
        self._gpus: dict[int, list[int]] = {}
        self._held_gpus: dict[int, dict[int, list[int]]] = {}
        #: {unit: reasons for which it is down}
        self._down: Counter[int] = Counter()
        self._timers: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0
        self._decisions: list[Decision] = []
        self._eligible = -inf
        self._quiet_since = 0
        self._handlers: dict[type, Callable[[Any], None]] = {
            SimulationBegins: lambda event: self._begin(event.data),
            JobCompleted: self._completed,
            JobCancelled: lambda event: self._cancel(event.data.job_id),
            NodesFailed: lambda event: self._fall(event.data.nodes, event.data.cause or "failed"),
            NodesRepaired: lambda event: self._rise(event.data.nodes),
            MaintenanceAnnounced: self._announced,
            MaintenanceBegins: lambda event: self._fall(event.data.nodes, "maintenance"),
            MaintenanceEnds: lambda event: self._rise(event.data.nodes),
        }

    def hello(self) -> HelloData:
        """Return the scheduler's name and the features that it needs."""
        features = ("cancellations", "failures", "labels", "lookahead", "options", "preemption", "resources")
        return HelloData("slurmctld", package_version(), features=features)

    def welcome(self, data: WelcomeData) -> None:
        """Raise PolicyFailed if the server lacks a feature."""
        missing = {"lookahead", "options", "labels"}.difference(data.features)
        if missing:
            raise PolicyFailed("the server lacks a feature that slurmctld needs", found=", ".join(sorted(missing)))

    def close(self) -> None:
        """End slurmctld and all its processes."""
        if self._slurm is not None:
            self._slurm.close()
            self._slurm = None

    def answer(self, notice: Notice) -> Reply:
        """Return the decisions that slurmctld makes before the server's next event.

        Raises:
            PolicyFailed: slurmctld or virtual time failed.
        """
        try:
            return self._answer(notice)
        except PipistrelleError as error:
            raise error.at(error.where, PolicyFailed) from None

    def _answer(self, notice: Notice) -> Reply:
        self._decisions = []
        submitted: list[JobDescription] = []
        for event in notice.events:  # before the failures that may have caused them
            if isinstance(event, DecisionRejected):
                self._rejected(event)
        for event in notice.events:
            if isinstance(event, SimulationEnds):
                self.ended = event.data
                self.close()
                return Reply(notice.seq, notice.now)
            if isinstance(event, JobSubmitted):
                submitted.append(event.data.job)
                continue
            self._submit_all(submitted)
            submitted = []
            if handler := self._handlers.get(type(event)):
                handler(event)
        self._submit_all(submitted)
        for job_id in self._lost:  # Slurm has put them back, but the server does not submit them again
            if (number := self._requeued.pop(job_id, None)) is not None:
                self.slurm.command(["scancel", str(number)])
        self._lost = []
        now = self._run(notice.now, notice.next)
        return Reply(notice.seq, max(now, notice.now), tuple(self._decisions))

    # -- time

    def _time(self, nanoseconds: int) -> float:
        """Convert slurmctld's virtual time (ns since 1970) to the server's simulated time (s)."""
        return (nanoseconds - EPOCH_S * NANOSECONDS) / NANOSECONDS

    @property
    def slurm(self) -> Slurmctld:
        """The running slurmctld."""
        assert self._slurm is not None, "the simulation has begun"
        return self._slurm

    def _run(self, now: float, until: float | None) -> float:
        """Run slurmctld until it decides something or the server's next event is due; return that time (s)."""
        clock = self.slurm.time
        limit = clock.now + _IDLE if until is None else EPOCH_S * NANOSECONDS + round(until * NANOSECONDS)
        limit = min(limit, clock.now + _STRETCH)
        while True:
            self._serve()
            due = min(limit, self._timers[0][0]) if self._timers else limit
            clock.run(clock.now if self._decisions else due)
            if not clock.reached:
                self._quiet_since = clock.now
                continue
            self._serve()
            if self._timers and self._timers[0][0] <= clock.now:
                heapq.heappop(self._timers)[2]()
                self._quiet_since = clock.now
                continue
            if until is None and not self._decisions and self._is_stuck():
                self._give_up()
            if self._decisions or clock.now >= limit:
                break
        found = self._time(clock.now)
        if until is not None and limit == clock.now and found >= until - _ROUNDING_S:
            found = until
        self._decisions = [type(one)(max(found, now), one.data) for one in self._decisions]  # type: ignore[call-arg, attr-defined]
        return found if self._decisions or until is None or found < until else now

    def _later(self, delay: int, action: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._timers, (self.slurm.time.now + delay, self._count, action))

    def _is_stuck(self) -> bool:
        quiet = self.slurm.time.now - self._quiet_since
        return not self._running and quiet >= _IDLE and self._time(self.slurm.time.now) > self._eligible

    def _give_up(self) -> None:
        """Reject the jobs that slurmctld would keep waiting forever, so that the run ends."""
        _, text = self.slurm.command(["squeue", "--noheader", "--states=PENDING", "--array", "--format=%i %r"])
        reasons = dict(line.split(" ", 1) for line in text.splitlines() if " " in line)
        counts: Counter[str] = Counter()
        indices = {job.id: index for tasks in self._arrays.values() for index, job in tasks.items()}
        for job_id, number in sorted(self._numbers.items()):
            name = f"{number}_{indices[job_id]}" if job_id in indices else str(number)
            reason = reasons.get(name, "no longer in Slurm's queue")
            counts[reason] += 1
            self._decide(RejectJob, RejectJobData(job_id, f"still waits at the end: {reason}"))
            self.slurm.command(["scancel", str(number)])
        if counts:
            logger().warning(
                "{:,} jobs still wait at the end, and nothing can start them: {}",
                counts.total(),
                ", ".join(f"{count:,} {reason}" for reason, count in sorted(counts.items())),
            )
        self._numbers.clear()

    # -- what slurmctld does

    def _decide(self, kind: Any, data: Any) -> None:
        self._decisions.append(kind(self._time(self.slurm.time.now), data))

    def _serve(self) -> None:
        """Answer slurmctld's messages, and turn the starts and ends of jobs into decisions, until slurmctld is idle."""
        slurm = self.slurm
        while True:
            slurm.nodes.serve()
            slurm.check()
            starts, struck = slurm.nodes.take_starts(), slurm.nodes.take_struck()
            if not starts and not struck:
                return
            for start in starts:
                self._started(start)
            for number, state in struck:
                self._struck(number, state)

    def _started(self, start: Launch) -> None:
        number = start.job_id
        tasks = self._arrays.get(start.array_job, {})
        if start.array_task in tasks:
            self._jobs[number] = tasks.pop(start.array_task)
        job = self._jobs.get(number)
        if job is None:
            raise PolicyFailed("slurmctld started a job that was not submitted", found=f"job {number}")
        names = expanded(start.nodes, f"job {number}")
        units = [self._units[name] for name in names]
        takes: tuple[NodeTake, ...] = ()
        if job.request is not None:
            cpus = dict(zip(units, start.cpus, strict=True))
            takes = takes_on(job.request, cpus, self._gpus)
            held = {int(take.nodes): list(NodeSet.parse(take.gpus)) for take in takes}
            for unit, gpus in held.items():
                self._gpus[unit] = [one for one in self._gpus[unit] if one not in gpus]
            self._held_gpus[number] = held
        self._numbers[job.id] = number
        self._running.add(number)
        if delay := self._recorded.delays.get(_bare(job.id)):
            self.slurm.nodes.delays[number] = round(delay * NANOSECONDS)
        self._decide(ExecuteJob, ExecuteJobData(job.id, str(NodeSet.of(units)), None, takes))

    def _struck(self, number: int, state: int) -> None:
        """Tell the server that slurmctld ends a running job because of its limit, a preemption or a command."""
        nodes = self.slurm.nodes
        node = nodes.running[number]
        if number in self._running:  # else the server has ended it
            job = self._jobs[number]
            self._release(number)
            if state & wire.REQUEUED:
                self._requeued[_first(job.id)] = number
                self._decide(PreemptJob, PreemptJobData(job.id, "requeue", 0.0, "slurmctld requeues it"))
            elif state & 0xFF == wire.WAS_PREEMPTED:
                self._decide(PreemptJob, PreemptJobData(job.id, "cancel", 0.0, "preempted by slurmctld"))
            else:
                self._decide(KillJob, KillJobData((job.id,), "ended by slurmctld"))
            del self._numbers[job.id]

        def end() -> None:
            self._end_script(number, 15)
            nodes.epilog_ended(number, node)

        self._later(_EPILOG, end)

    def _release(self, number: int) -> None:
        self._running.discard(number)
        for unit, gpus in self._held_gpus.pop(number, {}).items():
            self._gpus[unit] = sorted([*self._gpus[unit], *gpus])

    # -- what the server does

    def _begin(self, data: SimulationBeginsData) -> None:
        units: dict[str, int] = {}
        for pool in () if data.platform is None else data.platform.pools:
            numbers = list(NodeSet.parse(pool.units))
            if pool.names:
                units |= dict(zip(expanded(pool.names, "names of nodes"), numbers, strict=False))
            gpus = 0 if pool.resources is None else pool.resources.gpus
            self._gpus |= {unit: list(range(gpus)) for unit in numbers}
        self._slurm = Slurmctld(self._config, self._start, self._prefix, self._accounting)
        self._slurm.nodes.later = self._later
        for remark in self._slurm.remarks:
            logger().warning("{}", remark)
        missing = [node.name for node, _ in self._slurm.cluster if node.name not in units]
        if missing or len(units) != data.nb_resources or len(self._slurm.cluster) != len(units):
            raise PolicyFailed(
                "the machine is not that of the slurm.conf",
                expected=f"{len(self._slurm.cluster)} nodes, each one unit, named as in the file",
                found=f"{data.nb_resources} units" + (f", without node {missing[0]}" if missing else ""),
                hint="Give the same slurm.conf with --platform and --config.",
            )
        self._units = units
        self._names = {unit: name for name, unit in units.items()}
        self._slurm.advance(EPOCH_S * NANOSECONDS)
        begun = self._time(self._slurm.time.now)
        for at, length in self._recorded.holds:
            self._later(round((at - begun) * NANOSECONDS), partial(self._slurm.hold, round(length * NANOSECONDS)))
        for at, words in self._recorded.commands:
            self._later(round((at - begun) * NANOSECONDS), partial(self._command, words))

    def _command(self, words: Sequence[str]) -> None:
        code, said = self.slurm.command(words)
        if code:
            raise PolicyFailed("slurmctld refused a recorded command", where=" ".join(words), found=said.strip())

    def _submit_all(self, jobs: list[JobDescription]) -> None:
        """Submit jobs; tasks of an array that the server submits at once become one array."""
        arrays: dict[tuple[str, str], list[JobDescription]] = {}
        for job in jobs:
            again = self._requeued.pop(_first(job.id), None)
            if again is not None:
                self._jobs[again] = job
                self._numbers[job.id] = again
                continue
            array = job.options.get("array-job", "") if not job.attempt else ""
            if array:
                key = (job.id.partition("!")[0], array)
                arrays.setdefault(key, []).append(job)
                if len(arrays[key]) > 1:
                    continue
                together = [one for one in jobs if one.options.get("array-job") == array and not one.attempt]
                self._submit_array(array, together)
            else:
                self._submit(job)

    def _submit(self, job: JobDescription) -> None:
        found = self.slurm.submit(sbatch_words(job, self._dependency), job.user)
        if isinstance(found, str):
            self._decide(RejectJob, RejectJobData(job.id, found))
            return
        self._jobs[found] = job
        self._numbers[job.id] = found
        self._named.setdefault(_bare(job.id), str(found))
        if begin := _BEGIN.match(job.options.get("begin", "")):
            self._eligible = max(self._eligible, self._time(self.slurm.time.now) + float(begin[1]))

    def _submit_array(self, array: str, tasks: list[JobDescription]) -> None:
        first = tasks[0]
        limit = re.search(r"%\d+", first.options.get("array", ""))
        indices = ",".join(str(one.options["array-task"]) for one in tasks)
        words = sbatch_words(first, self._dependency)
        words = [word for word in words if not word.startswith("--array")]
        words.insert(0, f"--array={indices}{limit[0] if limit else ''}")
        found = self.slurm.submit(words, first.user)
        if isinstance(found, str):
            for one in tasks:
                self._decide(RejectJob, RejectJobData(one.id, found))
            return
        self._arrays[found] = {int(one.options["array-task"]): one for one in tasks}
        self._named[array] = str(found)
        for one in tasks:
            self._numbers[one.id] = found
            self._named.setdefault(_bare(one.id), f"{found}_{one.options['array-task']}")

    def _dependency(self, text: str) -> str:
        """Return a dependency with the workload's job ids replaced by Slurm's job numbers."""

        def number(match: re.Match[str]) -> str:
            whole = match[0]
            if whole in self._named:
                return self._named[whole]
            array = self._named.get(match[1], "1")
            return f"{array}_{match[2]}" if match[2] else array

        return _IDS.sub(number, text)

    def _completed(self, event: JobCompleted) -> None:
        job_id, state = event.data.job_id, event.data.job_state
        number = self._numbers.get(job_id)
        if number is None or number not in self._running:
            return  # slurmctld ended it itself
        self._release(number)
        del self._numbers[job_id]
        if state == "COMPLETED_FAILED" and event.data.cause:
            self._requeued[_first(job_id)] = number  # the failure of its nodes follows, and Slurm puts the job back
            self._lost.append(_first(job_id))
        elif state == "COMPLETED_KILLED":
            self.slurm.command(["scancel", str(number)])
        else:
            code = event.data.return_code
            status = (code & 0xFF or 1) << 8 if state == "COMPLETED_FAILED" else 0
            if late := self._recorded.late.get(_bare(job_id)):
                self._later(round(late * NANOSECONDS), partial(self._end_script, number, status))
            else:
                self._end_script(number, status)

    def _end_script(self, number: int, status: int) -> None:
        if number in self.slurm.nodes.running:  # else it has ended in the meantime
            self.slurm.nodes.script_ended(number, status)

    def _cancel(self, job_id: str) -> None:
        number = self._numbers.pop(job_id, None)
        if number is None:
            return
        tasks = self._arrays.get(number, {})
        task = next((index for index, job in tasks.items() if job.id == job_id), None)
        if task is not None:
            del tasks[task]
        self.slurm.command(["scancel", str(number) if task is None else f"{number}_{task}"])

    def _fall(self, nodes: str, cause: str) -> None:
        fallen = list(NodeSet.parse(nodes))
        new = [unit for unit in fallen if not self._down[unit]]
        self._down.update(fallen)
        if new:
            self._update(new, "State=DOWN", f"Reason={cause}")
        self._serve()
        for job_id in self._lost:
            if job_id in self._requeued and not self._may_requeue(self._requeued[job_id]):
                del self._requeued[job_id]

    def _rise(self, nodes: str) -> None:
        risen = list(NodeSet.parse(nodes))
        self._down.subtract(risen)
        up = [unit for unit in risen if self._down[unit] <= 0]
        if up:
            self._update(up, "State=RESUME")

    def _update(self, units: list[int], *words: str) -> None:
        names = compressed(self._names[unit] for unit in units)
        code, said = self.slurm.command(["scontrol", "update", f"NodeName={names}", *words])
        if code:
            raise PolicyFailed("slurmctld refused to change the state of nodes", where=names, found=said.strip())

    def _may_requeue(self, number: int) -> bool:
        """Return whether Slurm requeues a job if its nodes fail."""
        return " Requeue=1 " in self.slurm.command(["scontrol", "--oneliner", "show", "job", str(number)])[1]

    def _announced(self, event: MaintenanceAnnounced) -> None:
        data = event.data
        names = compressed(self._names[unit] for unit in NodeSet.parse(data.nodes))
        seconds = max(60.0, data.end - data.begin)
        code, said = self.slurm.command(
            [
                *("scontrol", "create", "reservation", f"ReservationName={re.sub(r'[^A-Za-z0-9.]', '-', data.id)}"),
                *(f"StartTime=now+{max(0, round(data.begin - event.timestamp))}", f"Nodes={names}", "Users=root"),
                *(f"Duration={-(-int(seconds) // 60)}", "Flags=MAINT,IGNORE_JOBS"),
            ]
        )
        if code:
            raise PolicyFailed("slurmctld refused to reserve nodes for maintenance", where=data.id, found=said.strip())

    def _rejected(self, event: DecisionRejected) -> None:
        data = event.data
        number = self._numbers.get(data.job_id)
        if data.decision != "EXECUTE_JOB" or number is None:
            return
        if data.code == "busy_unit" and any(self._down.values()):
            # A node failed at the instant of the start: Slurm puts the job back, and the server still has it queued.
            self._release(number)
            return
        raise PolicyFailed(f"the server rejected a start: {data.message}", where=data.job_id)


def _first(job_id: str) -> str:
    """Return the id of a job's first attempt, which is ``job_id`` without the attempt's number."""
    return job_id.rpartition("#")[0] or job_id


def _bare(job_id: str) -> str:
    """Return a job's id in the workload, without the workload's prefix and the attempt's number."""
    return _first(job_id).partition("!")[2]
