"""Forecast when and where the pending jobs of a live Slurm cluster start."""

from collections import Counter
from collections.abc import Sequence
from math import ceil, inf
from typing import Final

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.naming.hostlists import compressed, expanded
from pipistrelle.protocol.base.errors import InputError
from pipistrelle.runs.forecast.jobs import QueuedJob, entry_of, tried_jobs
from pipistrelle.runs.forecast.play import ForecastRun, Runtimes, play
from pipistrelle.runs.forecast.ratios import Ratios, drawn
from pipistrelle.runs.forecast.start import Primed, Situation, primed
from pipistrelle.runs.forecast.workers import in_order
from pipistrelle.schedulers.slurm.cluster.jobs import SlurmJob
from pipistrelle.schedulers.slurm.config.machine import ReservationSettings
from pipistrelle.schedulers.slurm.config.settings import SlurmConfig
from pipistrelle.schedulers.slurm.files.reservations import SUPPORTED_FLAGS
from pipistrelle.traces.slurm.state.records import ClusterState, LiveReservation
from pipistrelle.traces.workload import Workload

QUANTILES: Final = (0.1, 0.5, 0.9)
#: default time that a forecast looks ahead (s)
HORIZON: Final = 14 * 86400.0
#: how long before its limit (s) a job ends that uses its whole limit
_EARLY: Final = 0.001
#: states of partitions, as sinfo shows them
_PARTITION_STATES: Final = {"up": "UP", "down": "DOWN", "drain": "DRAIN", "inact": "INACTIVE"}


class JobForecast(Struct, kw_only=True):
    """The forecast for a pending job, or for an array's waiting tasks.

    Times are seconds since 1970; None: never.

    Attributes:
        id: the id that squeue shows.
        tried: whether the job comes from ``what_if`` and not from the queue.
        tasks: number of waiting tasks; 1 for other jobs.
        start, last: start of the job, or of the array's first and last waiting task, assuming that all jobs use their
            whole limits.
        nodes: nodes of the job or the first task, as Slurm writes them.
        early, median, late: times by which the job has started in 10, 50 and 90 % of the replicas.
        started: share of the replicas in which the job started.
        shift: delay of ``start`` that the jobs from ``what_if`` cause (s).
    """

    id: str
    tried: bool
    tasks: int
    name: str
    user: str
    account: str
    partition: str
    qos: str
    node_count: int
    limit: float
    priority: int
    submit: float | None
    reason: str
    start: float | None = None
    last: float | None = None
    nodes: str = ""
    early: float | None = None
    median: float | None = None
    late: float | None = None
    started: float | None = None
    shift: float | None = None


class Forecast(Struct, kw_only=True):
    """The forecast of a queue at one moment (s since 1970).

    Attributes:
        jobs: sorted by expected start; jobs that never start are last.
        running: number of running jobs.
        out: number of nodes that take no new jobs.
        replicas: number of runs with drawn run times; 0 without a history, so all jobs use their whole limits.
        history: number of past jobs whose ratio of used time to limit is known.
        remarks: warnings, each with a count.
        faults: rows that were skipped.
    """

    now: float
    until: float
    jobs: list[JobForecast]
    running: int
    nodes: int
    out: int
    replicas: int
    seed: int
    history: int = 0
    remarks: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def whole_limit(_: str, job: SlurmJob) -> float:
    """Return the run time (s) of a job that ends by itself just before its limit."""
    return job.limit - _EARLY


class Forecaster:
    """A maker of forecasts from one state of a cluster.

    Args:
        config: the cluster's settings.
        at: the moment of the forecast (s since 1970); None: the moment that the files give. If they give none,
            the moment of Slurm's last test of a job.
        what_if: sbatch commands of further jobs.
        timezone: time zone of dates in these commands.

    Raises:
        InputError: the moment is not known, or an sbatch command is malformed.
    """

    def __init__(
        self,
        config: SlurmConfig,
        state: ClusterState,
        *,
        at: float | None = None,
        what_if: Sequence[str] = (),
        timezone: str | None = None,
    ) -> None:
        moment = state.now if at is None else at
        estimated = moment is None and state.tested is not None
        if estimated:
            moment = state.tested
        if moment is None:
            raise InputError(
                "the files do not say when Slurm printed them",
                expected="a running job with its start and its run time, or a date in the first line",
                hint="Give this date with --at DATE.",
            )
        self.state = state
        self._ignored: Counter[str] = Counter()
        if estimated:
            self._ignored["no file has a date, so the forecast begins when Slurm last tested a job; jobs"] = len(
                state.jobs
            )
        times = [moment, *(t for job in state.jobs for t in (job.submit, job.start, job.eligible) if t is not None)]
        zero = float(ceil(min(times)) - 2)
        now = int(moment - zero)
        known = {node.name: at for at, node in enumerate(config.nodes)}
        running: list[QueuedJob] = []
        waiting: list[QueuedJob] = []
        for job in state.jobs:
            if job.waits and job.component >= 0:
                self._ignored["waiting heterogeneous jobs, skipped"] += 1
                continue
            if job.state in ("SUSPENDED", "STOPPED"):
                self._ignored["suspended jobs, taken as running"] += 1
            try:
                (running if job.holds else waiting).append(entry_of(job, zero, now, known, self._ignored))
            except PlatformError as error:
                state.faults.append(str(error))
        running.sort(key=lambda entry: ((entry.live and entry.live.start) or 0.0, entry.sub.number, entry.ids))
        first = max((entry.sub.number for entry in (*running, *waiting)), default=0) + 1
        tried, remarks = tried_jobs(list(what_if), zero, now, first, timezone)
        self._remarks = remarks
        self.situation = Situation(
            config=self._live_config(config, state, zero, now, known),
            now=now,
            zero=zero,
            running=running,
            waiting=waiting,
            tried=tried,
            down=frozenset(self._down(state, known)),
            shares=state.shares,
            ended=state.ended,
        )
        #: the controller at the moment of the forecast; None: it has been run
        self._primed: Primed | None = primed(self.situation)
        for entry in tried:
            if entry.shown in self._primed.refused:
                raise InputError(
                    f"Slurm would refuse the job: {self._primed.refused[entry.shown]}",
                    where="--what-if",
                    hint="Add the options --uid, -A, -p and -q that the job would have.",
                )

    def _down(self, state: ClusterState, known: dict[str, int]) -> list[str]:
        found: list[str] = []
        for text, node in state.nodes.items():
            names = expanded(text, "a list of nodes")
            missing = sum(name not in known for name in names)
            if missing:
                self._ignored["nodes that slurm.conf does not have"] += missing
            found += [name for name in names if node.out and name in known]
        return found

    def _live_config(
        self, config: SlurmConfig, state: ClusterState, zero: float, now: int, known: dict[str, int]
    ) -> SlurmConfig:
        """Return ``config`` with the state of the live cluster.

        These are its reservations and partition states, from ``state``.
        """
        unknown = [name for name in state.partitions if name not in {one.name for one in config.partitions}]
        if unknown:
            self._ignored["partitions that slurm.conf does not have"] += len(unknown)
        partitions = tuple(
            replace(one, state=_PARTITION_STATES.get(state.partitions[one.name], one.state))
            if one.name in state.partitions
            else one
            for one in config.partitions
        )
        reservations = []
        for one in state.reservations:
            made = self._reservation(one, zero, known)
            if made is not None:
                reservations.append(made)
        return replace(config, start=float(now), epoch=zero, partitions=partitions, reservations=tuple(reservations))

    def _reservation(self, one: LiveReservation, zero: float, known: dict[str, int]) -> ReservationSettings | None:
        names = expanded(one.nodes, one.place) if one.nodes else []
        inside = tuple(name for name in names if name in known)
        if len(inside) < len(names):
            self._ignored["nodes of reservations that slurm.conf does not have"] += len(names) - len(inside)
        flags = []
        for flag in one.flags:
            if flag in SUPPORTED_FLAGS:
                flags.append(flag)
            elif flag not in _NO_MATTER:
                self._ignored[f"reservations with the flag {flag}, which is not supported"] += 1
        if not inside:
            self._ignored["reservations without nodes"] += 1
            return None
        return ReservationSettings(
            name=one.name,
            start=one.start - zero,
            end=one.end - zero,
            nodes=inside,
            users=one.users,
            accounts=one.accounts,
            flags=tuple(flags),
        )

    def _unused(self) -> Primed:
        """Return a controller in the cluster's present state.

        No forecast has used it yet.
        """
        found, self._primed = self._primed or primed(self.situation), None
        return found

    def starts(self, runtimes: Runtimes, until: float = inf) -> dict[str, tuple[float, list[str]]]:
        """Return {id of a job or task: (start (s since 1970), names of its nodes)}.

        Args:
            runtimes: returns the run time of a job (s).
            until: latest start (s since 1970).
        """
        situation = self.situation
        entries = [*situation.waiting, *situation.tried]
        start = self._unused()
        found = play(start, situation.now, runtimes, self._hopeful(start, entries), until - situation.zero)
        names = start.controller.machine.names_of
        return {name: (situation.zero + one.time, names(one.nodes)) for name, one in found.starts.items()}

    def forecast(
        self,
        history: Workload | None = None,
        *,
        replicas: int = 100,
        seed: int = 0,
        horizon: float = HORIZON,
        jobs: int | None = None,
    ) -> Forecast:
        """Return the forecast of when each pending job starts.

        Args:
            history: past jobs, for the ratios of used time to limit; None: all jobs use their whole limits.
            replicas: number of runs with drawn run times.
            horizon: how far the forecast looks (s).
            jobs: number of processes that compute replicas; None: one per processor.
        """
        now, zero = self.situation.now, self.situation.zero
        until = now + horizon
        entries = [*self.situation.waiting, *self.situation.tried]
        wanted = [name for entry in entries for name in entry.ids]
        start = self._unused()
        remarks = Counter(start.remarks)
        priorities = {shown: job.priority for shown, job in start.records.items()}
        base = play(start, now, whole_limit, self._hopeful(start, entries), until)
        found = []
        for entry in entries:
            if entry.shown in start.refused:
                remarks[f"jobs that cannot be queued ({start.refused[entry.shown]})"] += 1
                continue
            found.append(self._job(entry, base, start, priorities[entry.shown]))
        for entry in self.situation.running:
            if entry.shown in start.refused:
                remarks[f"running jobs that cannot be placed ({start.refused[entry.shown]})"] += 1
        if self.situation.tried:
            without = primed(replace(self.situation, tried=[]))
            alone = play(without, now, whole_limit, set(wanted) & set(base.starts), until)
            first = {entry.shown: entry.ids[0] for entry in entries}
            for job in found:
                before, after = alone.starts.get(first[job.id]), base.starts.get(first[job.id])
                if not job.tried and before is not None and after is not None:
                    job.shift = after.time - before.time
        used = 0
        done = 0
        if history is not None:
            ratios = Ratios(history)
            used = ratios.count
            if used:
                done = replicas
                self._replicas(found, entries, base, ratios, replicas, seed, until, jobs)
            else:
                remarks["histories without a job that ran and had a limit"] += 1
        found.sort(key=lambda job: (job.start is None, job.start or 0.0, -job.priority, job.id))
        said = [*self.state.remarks, *self._remarks]
        said += [f"{what}: {count:,}" for what, count in sorted((self._ignored + remarks).items())]
        return Forecast(
            now=zero + now,
            until=zero + until,
            jobs=found,
            running=len(self.situation.running),
            nodes=len(self.situation.config.nodes),
            out=len(self.situation.down),
            replicas=done,
            seed=seed,
            history=used,
            remarks=said,
            faults=list(self.state.faults),
        )

    @staticmethod
    def _hopeful(start: Primed, entries: Sequence[QueuedJob]) -> set[str]:
        """Return the ids of the queued jobs that are not held.

        Only jobs that the controller knows count.
        """
        found: set[str] = set()
        for entry in entries:
            record = start.records.get(entry.shown)
            if record is not None and record.priority:
                found.update(entry.ids)
        return found

    def _job(self, entry: QueuedJob, base: ForecastRun, start: Primed, priority: int) -> JobForecast:
        sub, live, zero = entry.sub, entry.live, self.situation.zero
        starts = [base.starts[name] for name in entry.ids if name in base.starts]
        reason = live.reason if live is not None and live.reason else base.reasons.get(entry.shown, "None")
        partition = ",".join(sub.partitions) or next(
            (one.name for one in self.situation.config.partitions if one.default), ""
        )
        record, machine, accounts = start.records[entry.shown], start.controller.machine, start.controller.accounts
        return JobForecast(
            id=entry.shown,
            tried=live is None,
            tasks=len(entry.ids),
            name=sub.name,
            user=sub.user,
            account=record.account,
            partition=partition,
            qos=accounts.qos[record.qos].settings.name if record.qos >= 0 else sub.qos,
            node_count=sub.nodes or (live.nodes if live is not None else 1),
            limit=float(record.limit),
            priority=priority,
            submit=None if live is not None and live.submit is None else zero + sub.submit,
            reason=reason,
            start=zero + min(one.time for one in starts) if starts else None,
            last=zero + max(one.time for one in starts) if len(starts) == len(entry.ids) else None,
            nodes=compressed(machine.names_of(starts[0].nodes)) if starts else "",
        )

    def _replicas(
        self,
        jobs: Sequence[JobForecast],
        entries: Sequence[QueuedJob],
        base: ForecastRun,
        ratios: Ratios,
        replicas: int,
        seed: int,
        until: float,
        workers: int | None,
    ) -> None:
        """Set each job's quantiles of starts, from ``replicas`` runs with drawn run times."""
        situation = self.situation
        every = [*situation.running, *entries]
        of = {name: ratios.of(entry.sub.user, entry.sub.partitions) for entry in every for name in entry.ids}
        order = list(of)
        times: dict[str, list[float]] = {entry.shown: [] for entry in entries}
        wanted = set(base.starts)

        def replica(number: int) -> list[float]:
            generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, number])))
            shares = dict(zip(order, generator.random(len(order)).tolist(), strict=True))
            start = primed(situation)
            began = {job.ids[0]: job.start for job in start.controller.running_jobs()}

            def runtime(
                name: str, job: SlurmJob, shares: dict[str, float] = shares, began: dict[str, int] = began
            ) -> float:
                limit = max(1, job.limit)
                used = (situation.now - began[name]) / limit if began.get(name) == job.start else 0.0
                ratio = drawn(of[name], shares[name], used)
                return inf if ratio >= 1.0 else max(1.0, ratio * limit)

            found = play(start, situation.now, runtime, wanted, until)
            some = ([found.starts[name].time for name in entry.ids if name in found.starts] for entry in entries)
            return [min(one, default=inf) for one in some]

        for starts in in_order(replica, replicas, workers):
            for entry, time in zip(entries, starts, strict=True):
                times[entry.shown].append(time)
        for job in jobs:
            some = sorted(times[job.id])
            early, median, late = (some[min(len(some) - 1, ceil(share * len(some)) - 1)] for share in QUANTILES)
            job.early, job.median, job.late = (
                None if time == inf else situation.zero + time for time in (early, median, late)
            )
            job.started = sum(time < inf for time in some) / len(some)


#: flags of reservations that change nothing here
_NO_MATTER: Final = frozenset(("ALL_NODES", "SPEC_NODES", "PART_NODES"))
