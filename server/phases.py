"""A job's work as a row of phases, and each phase as tasks on hosts."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from math import inf
from typing import Final

from msgspec import Struct

from pipistrelle.protocol.batsim_messages import TaskProgress
from pipistrelle.protocol.events import Progress
from pipistrelle.server.agenda import Entry
from pipistrelle.server.sharing import Demand
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

#: returns how many cores a host has
Cores = Callable[[int], int]

_NO_DEMAND: Final = Demand({}, {}, {})


class Task(Struct, eq=False):
    """Something that goes on at one pace: a delay, a parallel task, or what one rank of a usage trace does at a time.

    Parameters
    ----------
    phase
        what it is part of.
    demand
        what it asks of hosts; nothing if it is a delay.
    seconds
        how long it takes at least, whatever the hosts do: a delay, or what the busiest host needs to send or receive.
    weight
        its part of the phase, in flops of one core; of use where a phase has several tasks.
    later
        what the same rank does next: pairs of a usage trace.
    """

    phase: "Phase"
    demand: Demand
    seconds: float = 0.0
    weight: float = 0.0
    later: Iterator[tuple[float, float]] | None = None
    #: how much of it was done at ``since``, 0 to 1; the seconds that all of it takes at its pace since then
    done: float = 0.0
    since: float = 0.0
    lasts: float = inf
    #: its end on the agenda
    entry: Entry | None = None

    def share(self, now: float) -> float:
        """Return how much of it is done, 0 to 1."""
        if self.lasts == 0:
            return 1.0
        return min(self.done + (now - self.since) / self.lasts, 1.0)


class Phase(Struct, eq=False):
    """One leaf of a job's profile at work: its tasks that go on, and the weight of those that are over."""

    run: "Run"
    leaf: Leaf
    tasks: list[Task]
    over: float = 0.0

    def share(self, now: float) -> float:
        """Return how much of it is done, 0 to 1; the ranks of a usage trace count by their flops."""
        if not isinstance(self.leaf, UsageTrace):
            return self.tasks[0].share(now)
        whole = sum(flops for steps in self.leaf.phases for _, flops in steps)
        done = self.over + sum(task.share(now) * task.weight for task in self.tasks)
        return min(done / whole, 1.0) if whole else 1.0


class Run(Struct, eq=False):
    """A job at work: the host of each of its ranks, and how far it is; ``limit`` is when its walltime is over, s."""

    job_id: str
    hosts: tuple[int, ...]
    path: "Path"
    limit: float
    phase: Phase | None = None


class Path:
    """The way through a profile: which leaf is next, and where in the composed profiles it stands."""

    __slots__ = ("_frames", "_profile")

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        #: for each composed profile around the present leaf: it, and how many of its parts were begun, this one too
        self._frames: list[tuple[Composed, int]] = []

    def first(self) -> Leaf:
        """Enter the profile and return its first leaf."""
        return self._descend(self._profile)

    def next(self) -> Leaf | None:
        """Return the next leaf; None at the end."""
        while self._frames:
            composed, begun = self._frames.pop()
            if begun < composed.repeat * len(composed.seq):
                self._frames.append((composed, begun + 1))
                return self._descend(composed.seq[begun % len(composed.seq)])
        return None

    def _descend(self, profile: Profile) -> Leaf:
        while isinstance(profile, Composed):
            self._frames.append((profile, 1))
            profile = profile.seq[0]
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


def tasks_of(phase: Phase, cores: Cores, bandwidth: float | None) -> list[Task]:
    """Return the tasks that a phase begins with, at least one.

    ``bandwidth`` is what a host sends, and what it receives, in bytes per second; None where nothing is sent.
    """
    leaf, places = phase.leaf, phase.run.hosts
    if isinstance(leaf, Delay):
        return [Task(phase, _NO_DEMAND, leaf.delay)]
    if isinstance(leaf, UsageTrace):
        begun = [
            _next_of_rank(phase, host, iter(steps), cores) for host, steps in zip(places, leaf.phases, strict=True)
        ]
        # Where nothing is to be done at all, something must still tell that it is over.
        return [task for task in begun if task is not None] or [Task(phase, _NO_DEMAND)]
    return [Task(phase, _demand(leaf, places), _seconds_of_sending(leaf, places, bandwidth))]


def next_task(task: Task, cores: Cores) -> Task | None:
    """Return what the rank of a task that is done does next; None if that was all."""
    if task.later is None:
        return None
    (host,) = task.demand.flops
    return _next_of_rank(task.phase, host, task.later, cores)


def _next_of_rank(phase: Phase, host: int, steps: Iterator[tuple[float, float]], cores: Cores) -> Task | None:
    for share, flops in steps:
        if flops > 0:
            # As Batsim does it: a parallel task with a rank for each core that is used
            ranks = max(1, round(share * cores(host)))
            return Task(phase, Demand({host: flops * ranks}, {host: flops}, {host: ranks}), weight=flops, later=steps)
    return None


def _demand(leaf: ParallelTask, places: tuple[int, ...]) -> Demand:
    flops: dict[int, float] = {}
    widest: dict[int, float] = {}
    ranks: dict[int, int] = {}
    for host, amount in zip(places, _flops(leaf, len(places)), strict=True):
        if amount > 0:
            if host in flops:
                ranks[host] = ranks.get(host, 1) + 1
            flops[host] = flops.get(host, 0.0) + amount
            widest[host] = max(widest.get(host, 0.0), amount)
    return Demand(flops, widest, ranks)


def _flops(leaf: ParallelTask, ranks: int) -> Sequence[float]:
    if isinstance(leaf, Parallel):
        return leaf.cpu
    if isinstance(leaf, ParallelHomogeneousTotal):
        return [leaf.cpu / ranks] * ranks
    return [leaf.cpu] * ranks


def _seconds_of_sending(leaf: ParallelTask, hosts: tuple[int, ...], bandwidth: float | None) -> float:
    """Return the seconds that the busiest host needs to send or to receive; ranks on one host talk for nothing."""
    ranks = len(hosts)
    if not leaf.com or bandwidth is None:
        return 0.0
    out: dict[int, float] = {}
    into: dict[int, float] = {}
    if isinstance(leaf, Parallel):
        for number, amount in enumerate(leaf.com):
            sender, receiver = hosts[number // ranks], hosts[number % ranks]
            if sender != receiver:
                out[sender] = out.get(sender, 0.0) + amount
                into[receiver] = into.get(receiver, 0.0) + amount
    else:
        amount = leaf.com / ranks if isinstance(leaf, ParallelHomogeneousTotal) else leaf.com
        for host, count in Counter(hosts).items():  # each rank here sends to, and hears from, each rank elsewhere
            out[host] = count * (ranks - count) * amount
    return max((*out.values(), *into.values()), default=0.0) / bandwidth
