"""The work of jobs: a profile runs in phases, and each phase has tasks on hosts."""

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

ParallelTask = ParallelHomogeneous | ParallelHomogeneousTotal | Parallel
Leaf = Delay | ParallelTask | UsageTrace


class Task(Struct, eq=False):
    """Work that advances at the same pace on all its hosts.

    It is a delay, a parallel task, or a step of a usage trace.

    Attributes:
        demands: {host: work there}; empty for a delay or a task without computation.
        least: shortest duration (s), which is the time of the delay or of the communication.
        each: flops on each host, if equal and done by one rank per host; else None.
        rank: rank of a usage trace; -1 for other tasks.
    """

    phase: "Phase"
    demands: dict[int, Demand]
    least: float = 0.0
    each: float | None = None
    rank: int = -1
    step: int = 0
    #: duration if the task shares no host (s)
    alone: float = 0.0
    #: share done at time ``since`` (s)
    done: float = 0.0
    since: float = 0.0
    #: duration of the whole task and time of its end, at the present pace (s)
    seconds: float = inf
    ends: float = inf
    #: number of the task, and its agenda entry
    number: int = -1
    entry: Entry | None = None

    def state(self) -> dict[str, Any]:
        """Return the state of the task as plain values."""
        return {
            "numbers": [self.number, self.rank, self.step],
            "times": [self.alone, self.done, self.since, self.seconds, self.ends],
        }

    def restore(self, state: dict[str, Any], entries: Mapping[int, Entry]) -> None:
        """Restore a saved state; ``entries`` is {task number: agenda entry}."""
        self.number = state["numbers"][0]
        self.entry = entries.get(self.number)
        self.alone, self.done, self.since, self.seconds, self.ends = state["times"]

    def share(self, now: float) -> float:
        """Return the share of the task that is done, 0 to 1."""
        if now >= self.ends:
            return 1.0
        return min(self.done + (now - self.since) / self.seconds, 1.0)


class Phase(Struct, eq=False):
    """A part of a job's profile in execution.

    It has tasks, and counts the flops of finished tasks.
    """

    run: "Execution"
    leaf: Leaf
    tasks: list[Task]
    #: flops of all tasks, for a usage trace; ``over``: flops of finished tasks
    flops: float = 0.0
    over: float = 0.0

    def share(self, now: float) -> float:
        """Return the share of the phase that is done, 0 to 1.

        For usage traces this is the share of the phase's flops.
        """
        if isinstance(self.leaf, UsageTrace) and self.flops:
            done = self.over
            for task in self.tasks:
                done += task.share(now) * fsum(demand.flops for demand in task.demands.values())
            return min(done / self.flops, 1.0)
        return self.tasks[0].share(now)


class Execution(Struct, eq=False):
    """A job in execution on hosts.

    Attributes:
        places: host of each rank.
        crowded: whether a host has several ranks.
        limit: when the walltime ends (s); inf without walltime.
    """

    job_id: str
    places: tuple[int, ...]
    crowded: bool
    limit: float
    path: "Path"
    phase: Phase | None = None


class Path:
    """The position in a job's profile, which may be composed of other profiles."""

    __slots__ = ("_frames",)

    def __init__(self) -> None:
        #: (composed profile around the current leaf, number of its parts that have begun), outermost first
        self._frames: list[tuple[Composed, int]] = []

    def descend(self, profile: Profile) -> Leaf:
        """Go to the first leaf (profile without parts) inside a profile, and return it."""
        while isinstance(profile, Composed):
            self._frames.append((profile, 1))
            profile = profile.seq[0]
        return profile

    def next(self) -> Leaf | None:
        """Go to the next leaf (profile without parts) and return it; None at the end."""
        while self._frames:
            composed, begun = self._frames.pop()
            if begun < composed.repeat * len(composed.seq):
                self._frames.append((composed, begun + 1))
                return self.descend(composed.seq[begun % len(composed.seq)])
        return None

    def begun(self) -> list[int]:
        """Return the position as numbers.

        Each number says how many parts of an enclosing profile have begun. The outermost profile is first. `enter` is
        the inverse.
        """
        return [begun for _, begun in self._frames]

    def enter(self, profile: Profile, begun: Sequence[int]) -> Leaf:
        """Go to the position that `begun` describes.

        Return its leaf (profile without parts).
        """
        for number in begun:
            assert isinstance(profile, Composed)
            self._frames.append((profile, number))
            profile = profile.seq[(number - 1) % len(profile.seq)]
        assert not isinstance(profile, Composed)
        return profile

    def progress(self, leaf: Leaf, done: float) -> Progress:
        """Return the job's progress when the share ``done`` (0 to 1) of the leaf is done.

        The progress is nested like the profiles. As in Batsim, the progress of a usage trace has no parts.
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


def begin_phase(run: Execution, leaf: Leaf, hosts: Hosts, bandwidth: float | None) -> Phase:
    """Begin a leaf (profile without parts): return a phase with its first tasks."""
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
        if not phase.tasks:  # without work, an empty task reports the end
            phase.tasks.append(Task(phase, {}))
    else:
        phase.tasks.append(_parallel_task(phase, leaf, bandwidth))
    return phase


def phase_of(run: Execution, leaf: Leaf, hosts: Hosts, bandwidth: float | None, state: Any, entries: Any) -> Phase:
    """Return a phase restored from its saved state.

    The state is (flops of finished tasks, states of the tasks).
    """
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
    """Return the task that follows a finished task of a usage trace's rank.

    Return None if it was the last.
    """
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
            # As in Batsim: a parallel task with one rank for each core in use
            cores = _cores_used(share, hosts.cores(host))
            return Task(phase, {host: Demand(flops * cores, cores, flops)}, rank=rank, step=step)
    return None


def _cores_used(share: float, cores: int) -> int:
    """Return how many of a host's cores a usage trace's step uses, at least 1.

    Half cores are rounded up, like C's ``round`` does.
    """
    whole = floor(share * cores)
    return max(1, whole + (share * cores - whole >= 0.5))


def _parallel_task(phase: Phase, leaf: ParallelTask, bandwidth: float | None) -> Task:
    """Return the task of a parallel profile; ranks on the same host are added up."""
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
    """Return how long (s) the busiest host exchanges data with other hosts."""
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
    # Each rank sends to, and receives from, every rank on another host.
    return max(here * (ranks - here) for here in Counter(places).values()) * each / bandwidth
