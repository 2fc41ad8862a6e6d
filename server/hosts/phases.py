"""A job's work as a row of phases, and each phase as tasks on hosts."""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import floor, fsum, inf
from typing import Any

from msgspec import Struct

from pipistrelle.protocol.batsim.messages import TaskProgress
from pipistrelle.protocol.events import Progress
from pipistrelle.server.engine.agenda import Entry
from pipistrelle.server.hosts.hosts import Hosts
from pipistrelle.server.hosts.sharing import Demand
from pipistrelle.traces.profiles import (
    Composed,
    Delay,
    Parallel,
    ParallelHomogeneous,
    ParallelHomogeneousTotal,
    Profile,
    UsageTrace,
)

#: a profile whose ranks go at one pace
ParallelTask = ParallelHomogeneous | ParallelHomogeneousTotal | Parallel
#: a profile that is not composed of others
Leaf = Delay | ParallelTask | UsageTrace


class Task(Struct, eq=False):
    """Something that goes on at one pace: a delay, a parallel task, or what one rank of a usage trace does at a time.

    Parameters
    ----------
    phase
        what it is part of.
    demands
        {host: what is to be done there}; empty for a delay and where nothing is computed.
    least
        how long it takes at least, s, whatever the hosts do: a delay, or the time to send and receive.
    each
        flops on each of its hosts, if these are equal and of one rank each.
    rank, step
        of a usage trace, which of its ranks, and which of that rank's steps; -1 and 0 for other tasks.
    """

    phase: "Phase"
    demands: dict[int, Demand]
    least: float = 0.0
    each: float | None = None
    rank: int = -1
    step: int = 0
    #: how long the whole takes where it meets no other task, s
    alone: float = 0.0
    #: how much of it was done at time ``since``, 0 to 1
    done: float = 0.0
    since: float = 0.0
    #: how long the whole takes at its present pace, s; when it ends if that stays so
    seconds: float = inf
    ends: float = inf
    #: on the agenda, where its number stands for it
    number: int = -1
    entry: Entry | None = None

    def state(self) -> dict[str, Any]:
        """Return how far it is, as plain values, and which step of which rank it is."""
        return {
            "numbers": [self.number, self.rank, self.step],
            "times": [self.alone, self.done, self.since, self.seconds, self.ends],
        }

    def restore(self, state: dict[str, Any], entries: Mapping[int, Entry]) -> None:
        """Go on from such a state; ``entries`` are those on the agenda, by the task's number."""
        self.number = state["numbers"][0]
        self.entry = entries.get(self.number)
        self.alone, self.done, self.since, self.seconds, self.ends = state["times"]

    def share(self, now: float) -> float:
        """Return how much of it is done, 0 to 1."""
        if now >= self.ends:
            return 1.0
        return min(self.done + (now - self.since) / self.seconds, 1.0)


class Phase(Struct, eq=False):
    """One leaf of a job's profile at work: its tasks that go on, and the flops of those that are over."""

    run: "Run"
    leaf: Leaf
    tasks: list[Task]
    #: flops of all that it consists of; of use where it has several tasks
    flops: float = 0.0
    over: float = 0.0

    def share(self, now: float) -> float:
        """Return how much of it is done, 0 to 1; the ranks of a usage trace count by their flops."""
        if isinstance(self.leaf, UsageTrace) and self.flops:
            done = self.over
            for task in self.tasks:
                done += task.share(now) * fsum(demand.flops for demand in task.demands.values())
            return min(done / self.flops, 1.0)
        return self.tasks[0].share(now)


class Run(Struct, eq=False):
    """A job at work.

    Parameters
    ----------
    job_id
        the job.
    places
        the host of each of its ranks.
    crowded
        whether a host has several of its ranks.
    limit
        when its walltime is over, s; inf if it has none.
    path
        how far it is.
    """

    job_id: str
    places: tuple[int, ...]
    crowded: bool
    limit: float
    path: "Path"
    phase: Phase | None = None


class Path:
    """The way through a profile: which leaf is next, and where in the composed profiles it stands."""

    __slots__ = ("_frames",)

    def __init__(self) -> None:
        #: for each composed profile around the present leaf: it, and how many of its parts were begun, this one too
        self._frames: list[tuple[Composed, int]] = []

    def descend(self, profile: Profile) -> Leaf:
        """Enter a profile and return its first leaf."""
        while isinstance(profile, Composed):
            self._frames.append((profile, 1))
            profile = profile.seq[0]
        return profile

    def next(self) -> Leaf | None:
        """Return the next leaf; None at the end."""
        while self._frames:
            composed, begun = self._frames.pop()
            if begun < composed.repeat * len(composed.seq):
                self._frames.append((composed, begun + 1))
                return self.descend(composed.seq[begun % len(composed.seq)])
        return None

    def begun(self) -> list[int]:
        """Return for each composed profile around the present leaf how many of its parts were begun, this one too."""
        return [begun for _, begun in self._frames]

    def enter(self, profile: Profile, begun: Sequence[int]) -> Leaf:
        """Enter a profile as far as was begun, in place of `descend`, and return its present leaf."""
        for number in begun:
            assert isinstance(profile, Composed)
            self._frames.append((profile, number))
            profile = profile.seq[(number - 1) % len(profile.seq)]
        assert not isinstance(profile, Composed)
        return profile

    def progress(self, leaf: Leaf, done: float) -> Progress:
        """Return how far the whole is when ``done`` (0 to 1) of the present leaf is; nested as the profiles are.

        Batsim does not know how far a usage trace is: as a `TaskProgress` without a part, it is told in its words.
        """
        progress = (
            TaskProgress(done, leaf.name, current_task_index=-1)
            if isinstance(leaf, UsageTrace)
            else Progress(done, leaf.name)
        )
        for composed, begun in reversed(self._frames):
            whole = composed.repeat * len(composed.seq)
            share = min((begun - 1 + progress.progress) / whole, 1.0)
            progress = TaskProgress(share, composed.name, current_task_index=begun - 1, current_task=progress)
        return progress


def begin_phase(run: Run, leaf: Leaf, hosts: Hosts, bandwidth: float | None) -> Phase:
    """Return a leaf of a job's profile as a phase, with the tasks that it begins with, at least one.

    ``bandwidth`` is what a host sends, and what it receives, in bytes per second; None where nothing is sent.
    """
    phase = Phase(run, leaf, [])
    if isinstance(leaf, Delay):
        phase.tasks.append(Task(phase, {}, leaf.delay))
    elif isinstance(leaf, UsageTrace):
        for rank, (host, steps) in enumerate(zip(run.places, leaf.phases, strict=True)):
            cores = hosts.cores(host)
            phase.flops += fsum(flops * _cores_used(share, cores) for share, flops in steps)
            task = _next_of_rank(phase, rank, 0, hosts)
            if task is not None:
                phase.tasks.append(task)
        if not phase.tasks:  # nothing is to be done, but something must tell that it is over
            phase.tasks.append(Task(phase, {}))
    else:
        phase.tasks.append(_parallel_task(phase, leaf, bandwidth))
    return phase


def phase_of(run: Run, leaf: Leaf, hosts: Hosts, bandwidth: float | None, state: Any, entries: Any) -> Phase:
    """Return the phase of a run that has this state: a pair of what is over (flops) and its tasks' states."""
    phase = begin_phase(run, leaf, hosts, bandwidth)
    phase.over, tasks = state
    (only, *_) = phase.tasks
    phase.tasks = []
    for known in tasks:
        _, rank, step = known["numbers"]
        task = only if rank < 0 else _next_of_rank(phase, rank, step, hosts)
        assert task is not None
        task.restore(known, entries)
        phase.tasks.append(task)
    return phase


def next_task(task: Task, hosts: Hosts) -> Task | None:
    """Return what the rank of a task that is done does next; None if that was all."""
    if task.rank < 0:
        return None
    (demand,) = task.demands.values()
    task.phase.over += demand.flops
    return _next_of_rank(task.phase, task.rank, task.step + 1, hosts)


def _next_of_rank(phase: Phase, rank: int, begin: int, hosts: Hosts) -> Task | None:
    assert isinstance(phase.leaf, UsageTrace)
    host, steps = phase.run.places[rank], phase.leaf.phases[rank]
    for step in range(begin, len(steps)):
        share, flops = steps[step]
        if flops > 0:
            # As Batsim does it: a parallel task with a rank for each core that is used
            cores = _cores_used(share, hosts.cores(host))
            return Task(phase, {host: Demand(flops * cores, cores, flops)}, rank=rank, step=step)
    return None


def _cores_used(share: float, cores: int) -> int:
    """Return how many cores a phase of a usage trace uses; halves are rounded up, as C's ``round`` does it."""
    whole = floor(share * cores)
    return max(1, whole + (share * cores - whole >= 0.5))


def _parallel_task(phase: Phase, leaf: ParallelTask, bandwidth: float | None) -> Task:
    """Return the task of a leaf; ranks on one host add up there."""
    run = phase.run
    places = run.places
    least = _seconds_of_sending(leaf, places, bandwidth)
    if isinstance(leaf, Parallel):
        demands: dict[int, Demand] = {}
        for host, flops in zip(places, leaf.cpu, strict=True):
            if flops > 0:
                others = demands.get(host, Demand(0.0, 0, 0.0))
                demands[host] = Demand(others.flops + flops, others.ranks + 1, max(others.heaviest, flops))
        return Task(phase, demands, least)
    each = leaf.cpu / len(places) if isinstance(leaf, ParallelHomogeneousTotal) else leaf.cpu
    if each <= 0:
        return Task(phase, {}, least)
    if not run.crowded:
        return Task(phase, dict.fromkeys(places, Demand(each, 1, each)), least, each)
    demands = {host: Demand(each * ranks, ranks, each) for host, ranks in Counter(places).items()}
    return Task(phase, demands, least)


def _seconds_of_sending(leaf: ParallelTask, places: Sequence[int], bandwidth: float | None) -> float:
    """Return the seconds that the busiest host needs to send or to receive; ranks on one host talk for nothing."""
    if not leaf.com or bandwidth is None:
        return 0.0
    ranks = len(places)
    if isinstance(leaf, Parallel):
        out: dict[int, float] = {}
        into: dict[int, float] = {}
        for number, amount in enumerate(leaf.com):
            sender, receiver = places[number // ranks], places[number % ranks]
            if sender != receiver:
                out[sender] = out.get(sender, 0.0) + amount
                into[receiver] = into.get(receiver, 0.0) + amount
        return max((*out.values(), *into.values()), default=0.0) / bandwidth
    each = leaf.com / ranks if isinstance(leaf, ParallelHomogeneousTotal) else leaf.com
    # Each rank sends to, and hears from, every rank that is elsewhere.
    return max(here * (ranks - here) for here in Counter(places).values()) * each / bandwidth
