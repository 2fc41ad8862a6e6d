"""Failure models: pure functions from (nodes, seed, horizon) to outages, whatever any scheduler does.

Every node, or the system as a whole, has a random stream of its own, made from one seed by numpy's spawn keys. A
stream can be read on for ever: what it gave for a shorter horizon is the beginning of what it gives for a longer one.
Times are whole milliseconds, added as integers, so that equal seeds give equal outages on every machine.
"""

from dataclasses import dataclass
from typing import Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from pipistrelle.platforms.errors import OutageError, check_range
from pipistrelle.platforms.failures.durations import LONGEST, Durations, Exponential, Weibull
from pipistrelle.platforms.failures.generators import Generators
from pipistrelle.platforms.failures.outage import FAILURE, Outages

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: who is hit: each node by a process of its own, or one process hits nodes at random, each with the same chance
Scope = Literal["node", "system"]

#: seconds (30,000 years)
LONGEST_HORIZON: Final = 1e12
#: more would not fit into the memory of most machines
MOST_OUTAGES: Final = 20_000_000
_PER_SECOND: Final = 1000  # times are counted in milliseconds
_MOST: Final = int(LONGEST) * _PER_SECOND
_BLOCK: Final = 8  # outages of a node that are drawn at once at most
_HITS: Final = 256  # hits of the system that are drawn at once
#: spawn keys begin with the kind of stream, so that no two kinds share numbers
_NODE_KEY: Final = 0
_SYSTEM_KEY: Final = 1
_LENGTHS_KEY: Final = 2


class Stream(Protocol):
    """Outages that are made as far as they are asked for."""

    def extend(self, horizon: float) -> Outages:
        """Return the outages that go down from the last horizon (at first 0) to before this one, in seconds."""


@dataclass(frozen=True, slots=True)
class FailureModel:
    """How nodes fail and how long their repair takes.

    Parameters
    ----------
    uptime
        scope "node": how long a node stays up until it fails; scope "system": the time between two hits of the
        machine. Hits on a node that is down already are dropped, as in LANL's extension of Batsim.
    repair
        how long a node is down.
    scope
        "node" or "system".
    cause
        of every outage.
    age
        for scope "node": how long the nodes have been up at time 0, in seconds; 0: they are new.

    Raises
    ------
    OutageError
        if the age is out of range or the distribution has none.
    """

    uptime: Durations
    repair: Durations
    scope: Scope = "node"
    cause: str = FAILURE
    age: float = 0.0

    def __post_init__(self) -> None:
        check_range("an age", self.age, 0, LONGEST)
        if self.scope == "system" and self.age:
            raise OutageError("an age cannot be given to the process of a system", hint="Use scope=node.")
        self.uptime.draw(np.full((1, 2), 0.5), self.age)

    def stream(self, nodes: range, seed: int, key: tuple[int, ...] = ()) -> Stream:
        """Return the stream for these nodes.

        Parameters
        ----------
        nodes
            numbers of nodes, at least one. With scope "node" the outages of a node do not depend on the others.
        seed
            0 or more; equal seeds give equal outages.
        key
            tells models of one machine apart that share a seed: the model's number.

        Raises
        ------
        OutageError
            if there is no node or the seed is negative.
        """
        if not nodes:
            raise OutageError("a failure model has no node to act on", expected="one node or more")
        return _NodeStream(self, nodes, seed, key) if self.scope == "node" else _SystemStream(self, nodes, seed, key)

    def outages(self, nodes: range, seed: int, horizon: float, key: tuple[int, ...] = ()) -> Outages:
        """Return the outages that go down in [0, `horizon`) seconds; the last ones may end later.

        Raises
        ------
        OutageError
            as `stream` does, if the mean repair is as long as the horizon or longer, or if there would be more than
            `MOST_OUTAGES`.
        """
        self.check(len(nodes), horizon)
        return self.stream(nodes, seed, key).extend(horizon)

    def check(self, nodes: int, horizon: float) -> None:
        """Check that a horizon in seconds is longer than a repair, and that so many nodes do not fail too often in it.

        Raises
        ------
        OutageError
            otherwise.
        """
        check_horizon(horizon, self.repair)
        cycle = self.uptime.mean + (self.repair.mean if self.scope == "node" else 0.0)
        expected = horizon / cycle * (nodes if self.scope == "node" else 1)
        if expected > MOST_OUTAGES:
            raise OutageError(
                "there would be too many outages",
                expected=f"about {MOST_OUTAGES:,} at most",
                found=f"about {expected:.2g}, one in {cycle:.3g} s a {self.scope}",
                hint="Check the units of the times, or take a shorter horizon.",
            )

    def hazard(self, nodes: int, length: float) -> float:
        """Return a bound on how surely one of ``nodes`` nodes fails within ``length`` s, as of `Durations.hazard`.

        For scope "system" it is known of exponential times alone: then each node has such a process of its own. Where
        the hazard falls with age it is not known of nodes that have an age at time 0.
        """
        if self.scope == "node":
            falls = isinstance(self.uptime, Weibull) and self.uptime.shape < 1
            return 0.0 if falls and self.age else self.uptime.hazard(length)
        return self.uptime.hazard(length / nodes) if isinstance(self.uptime, Exponential) else 0.0

    def availability(self, nodes: int) -> float:
        """Return the share of time that a node is up in the long run: MTBF / (MTBF + MTTR).

        For scope "system" the hits on nodes that are up come to each of `nodes` nodes at the rate 1 / (nodes x mean).
        """
        mtbf = self.uptime.mean * (nodes if self.scope == "system" else 1)
        return mtbf / (mtbf + self.repair.mean)


def check_horizon(horizon: float, repair: Durations | None = None) -> None:
    """Check a horizon in seconds, and that the mean repair is shorter.

    Raises
    ------
    OutageError
        otherwise.
    """
    check_range("a horizon", horizon, 0, LONGEST_HORIZON, above=True)
    if repair is not None and repair.mean >= horizon:
        raise OutageError(
            "a repair takes longer than the horizon",
            expected=f"a mean below {horizon!r} s",
            found=f"{repair} (mean {repair.mean:.6g} s)",
            hint="Take a longer horizon or a shorter repair.",
        )


def draw_lengths(durations: Durations, count: int, seed: int) -> Floats:
    """Return `count` lengths in seconds, shape (count,), in whole milliseconds; a larger count begins with the same.

    Raises
    ------
    OutageError
        if the seed is negative.
    """
    uniform = _uniform(_generator(seed, (_LENGTHS_KEY,)).random_raw(2 * count)).reshape(count, 2)
    return _milliseconds(durations.draw(uniform)) / _PER_SECOND


class _NodeStream:
    """Each node is up, down, up, ... by its own generator, four numbers an outage."""

    def __init__(self, model: FailureModel, nodes: range, seed: int, key: tuple[int, ...]) -> None:
        self._model = model
        self._nodes = np.array(nodes, dtype=np.int64)
        _check_seed(seed)
        self._generators = Generators(seed, (*key, _NODE_KEY), self._nodes)
        #: how often a node fails on average, per millisecond
        self._rate = 1.0 / (_PER_SECOND * (model.uptime.mean + model.repair.mean))
        #: when each node comes up after the last outage that was made, in milliseconds, shape (nodes,)
        self._now = np.zeros(self._nodes.size, dtype=np.int64)
        self._fresh = True
        #: made, but beyond the horizon so far: (rows of nodes, downs, ups), in milliseconds
        self._spare = [np.zeros(0, dtype=np.int64)] * 3

    def extend(self, horizon: float) -> Outages:
        """Return the outages that go down from the last horizon to before this one."""
        check_horizon(horizon)
        end = _milliseconds_up(horizon)
        parts = [self._spare]
        while True:
            rows = np.flatnonzero(self._now < end)
            if not rows.size:
                break
            ahead = self._rate * float((end - self._now[rows]).max())
            parts.append(self._draw(rows, 1 + int(min(ahead, _BLOCK - 1))))
            self._fresh = False
        rows, down, up = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        later = down >= end
        self._spare = [column[later] for column in (rows, down, up)]
        return _outages(self._nodes[rows[~later]], down[~later], up[~later], self._model.cause)

    def _draw(self, rows: Ints, count: int) -> list[Ints]:
        """Return that many more outages of some nodes."""
        uniform = _uniform(self._generators.random_raw(rows, 4 * count)).reshape(rows.size, count, 4)
        steps = np.empty((rows.size, 2 * count + 1), dtype=np.int64)
        steps[:, 0] = self._now[rows]
        up = self._model.uptime.draw(uniform[..., :2])
        if self._fresh:  # every node takes part in the first draw
            up[:, 0] = self._model.uptime.draw(uniform[:, 0, :2], self._model.age)
        steps[:, 1::2] = _milliseconds(up)
        steps[:, 2::2] = _milliseconds(self._model.repair.draw(uniform[..., 2:]))
        times = np.cumsum(steps, axis=1)
        self._now[rows] = times[:, -1]
        return [np.repeat(rows, count), times[:, 1::2].ravel(), times[:, 2::2].ravel()]


class _SystemStream:
    """One generator hits the machine, five numbers a hit; the victim is any node, and may be down already."""

    def __init__(self, model: FailureModel, nodes: range, seed: int, key: tuple[int, ...]) -> None:
        self._model = model
        self._nodes = nodes
        self._generator = _generator(seed, (*key, _SYSTEM_KEY))
        self._now = 0
        #: {index of a node: when its last outage ends, in milliseconds}
        self._up: dict[int, int] = {}
        self._spare: list[tuple[int, int, int]] = []

    def extend(self, horizon: float) -> Outages:
        """Return the outages that go down from the last horizon to before this one."""
        check_horizon(horizon)
        end = _milliseconds_up(horizon)
        hits = self._spare
        while self._now < end:
            hits += self._draw()
        self._spare = [hit for hit in hits if hit[1] >= end]
        made: list[tuple[int, int, int]] = []
        for victim, down, length in hits:
            if down < end and self._up.get(victim, 0) <= down:
                self._up[victim] = down + length
                made.append((self._nodes[victim], down, down + length))
        table = np.array(made, dtype=np.int64).reshape(-1, 3)
        return _outages(table[:, 0], table[:, 1], table[:, 2], self._model.cause)

    def _draw(self) -> list[tuple[int, int, int]]:
        uniform = _uniform(self._generator.random_raw(5 * _HITS)).reshape(_HITS, 5)
        times = self._now + np.cumsum(_milliseconds(self._model.uptime.draw(uniform[:, :2])))
        victims = np.floor(uniform[:, 2] * len(self._nodes)).astype(np.int64)
        lengths = _milliseconds(self._model.repair.draw(uniform[:, 3:]))
        self._now = int(times[-1])
        return list(zip(victims.tolist(), times.tolist(), lengths.tolist(), strict=True))


def _generator(seed: int, key: tuple[int, ...]) -> "np.random.PCG64":  # numpy imports it on use
    _check_seed(seed)
    return np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key))


def _check_seed(seed: int) -> None:
    if seed < 0:
        raise OutageError("a seed is negative", expected="a whole number of at least 0", found=str(seed))


def _uniform(raw: NDArray[np.uint64]) -> Floats:
    """Return numbers in the open interval (0, 1) from 64 random bits each: the middles of 2**52 equal parts."""
    return ((raw >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def _milliseconds(seconds: Floats) -> Ints:
    """Return whole milliseconds, rounded up, at least 1: no outage is empty."""
    return np.clip(np.ceil(seconds * _PER_SECOND), 1, _MOST).astype(np.int64)


def _milliseconds_up(horizon: float) -> int:
    """Return the first millisecond that is not before the horizon."""
    end = int(np.ceil(horizon * _PER_SECOND))
    return end - 1 if (end - 1) / _PER_SECOND >= horizon else end  # the product may be rounded up


def _outages(node: Ints, down: Ints, up: Ints, cause: str) -> Outages:
    return Outages(node, down / _PER_SECOND, up / _PER_SECOND, [cause] * node.size)
