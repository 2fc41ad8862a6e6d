"""Failure models: pure functions from (nodes, seed, horizon) to outages.

Each node, or the system as a whole, has its own stream of random numbers, which numpy's spawn keys derive from one
seed. A longer horizon continues the streams, so it only adds outages. Times are whole milliseconds, added as integers,
so that equal seeds give equal outages on every computer.
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

#: "node": each node fails independently; "system": each failure of the machine hits one node, chosen at random
Scope = Literal["node", "system"]

#: seconds; about 30,000 years
LONGEST_HORIZON: Final = 1e12
#: more outages would not fit into the memory of most computers
MOST_OUTAGES: Final = 20_000_000
_PER_SECOND: Final = 1000  # times are counted in milliseconds
_MOST: Final = int(LONGEST) * _PER_SECOND
_BLOCK: Final = 8  # most outages of a node drawn at once
_HITS: Final = 256  # hits of the system drawn at once
#: the member after `key` in spawn keys, which separates streams of each kind
_NODE_KEY: Final = 0
_SYSTEM_KEY: Final = 1
_LENGTHS_KEY: Final = 2


class Stream(Protocol):
    """A stream of outages, generated on demand."""

    def extend(self, horizon: float) -> Outages:
        """Return the outages that begin before `horizon` (s) and were not yet returned."""


@dataclass(frozen=True, slots=True)
class FailureModel:
    """A model of node failures and of the repair times.

    Args:
        uptime: with scope "node", how long a node stays up until it fails. With scope "system", the time between two
            failures of the machine. A failure that hits a node already down is dropped, as in LANL's extension of
            Batsim.
        repair: how long a node is down.
        cause: the cause of every outage.
        age: for scope "node": how long the nodes have been up at time 0 (s).
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
        """Return the stream of outages of these nodes.

        Args:
            nodes: at least one. With scope "node" a node's outages do not depend on the other nodes.
            seed: 0 or more; equal seeds give equal outages.
            key: separates the models of one machine that have the same seed; usually the model's number.

        Raises:
            OutageError: if there is no node or the seed is negative.
        """
        if not nodes:
            raise OutageError("a failure model has no node to act on", expected="one node or more")
        return _NodeStream(self, nodes, seed, key) if self.scope == "node" else _SystemStream(self, nodes, seed, key)

    def outages(self, nodes: range, seed: int, horizon: float, key: tuple[int, ...] = ()) -> Outages:
        """Return the outages that begin before `horizon` (s).

        Raise the errors of `stream` and `check`.
        """
        self.check(len(nodes), horizon)
        return self.stream(nodes, seed, key).extend(horizon)

    def check(self, nodes: int, horizon: float) -> None:
        """Raise OutageError if repairs or outages do not suit the horizon (s).

        They do not if the mean repair is not shorter than the horizon, or if too many outages are expected.
        """
        check_horizon(horizon, self.repair)
        cycle = self.uptime.mean + (self.repair.mean if self.scope == "node" else 0.0)
        expected = horizon / cycle * (nodes if self.scope == "node" else 1)
        if expected > MOST_OUTAGES:
            raise OutageError(
                "there would be too many outages",
                expected=f"about {MOST_OUTAGES:,} at most",
                found=f"about {expected:.2g}, one in {cycle:.3g} s per {self.scope}",
                hint="Check the units of the times, or take a shorter horizon.",
            )

    def hazard(self, nodes: int, length: float) -> float:
        """Return a lower bound of -log P(a node stays up for ``length`` s).

        ``nodes`` is the number of nodes that can fail. The bound is 0 if no better bound is known: if the hazard falls
        with age and the nodes have an age at time 0, or if the scope is "system" and `uptime` is not exponential.
        See `Durations.hazard`.
        """
        if self.scope == "node":
            falls = isinstance(self.uptime, Weibull) and self.uptime.shape < 1
            return 0.0 if falls and self.age else self.uptime.hazard(length)
        return self.uptime.hazard(length / nodes) if isinstance(self.uptime, Exponential) else 0.0

    def availability(self, nodes: int) -> float:
        """Return the long-run share of time that a node is up: MTBF / (MTBF + MTTR).

        With scope "system", the MTBF of each of the `nodes` is `nodes` times the mean of `uptime`.
        """
        mtbf = self.uptime.mean * (nodes if self.scope == "system" else 1)
        return mtbf / (mtbf + self.repair.mean)


def check_horizon(horizon: float, repair: Durations | None = None) -> None:
    """Raise OutageError if a horizon (s) is out of range or not longer than a repair."""
    check_range("a horizon", horizon, 0, LONGEST_HORIZON, above=True)
    if repair is not None and repair.mean >= horizon:
        raise OutageError(
            "a repair takes longer than the horizon",
            expected=f"a mean below {horizon!r} s",
            found=f"{repair} (mean {repair.mean:.6g} s)",
            hint="Take a longer horizon or a shorter repair.",
        )


def draw_lengths(durations: Durations, count: int, seed: int) -> Floats:
    """Draw `count` times (s) from a distribution, shape (count,).

    They are rounded to milliseconds. A larger `count` gives the same times, followed by more.

    Raises:
        OutageError: if the seed is negative.
    """
    uniform = _uniform(_generator(seed, (_LENGTHS_KEY,)).random_raw(2 * count)).reshape(count, 2)
    return _milliseconds(durations.draw(uniform)) / _PER_SECOND


class _NodeStream:
    """The stream of outages of nodes that fail independently.

    Each node has its own random generator. An outage takes four random numbers.
    """

    def __init__(self, model: FailureModel, nodes: range, seed: int, key: tuple[int, ...]) -> None:
        self._model = model
        self._nodes = np.array(nodes, dtype=np.int64)
        _check_seed(seed)
        self._generators = Generators(seed, (*key, _NODE_KEY), self._nodes)
        #: average failures of a node per millisecond
        self._rate = 1.0 / (_PER_SECOND * (model.uptime.mean + model.repair.mean))
        #: when the last outage generated for each node ends (ms), shape (nodes,)
        self._now = np.zeros(self._nodes.size, dtype=np.int64)
        self._fresh = True
        #: outages already generated that begin at or after the horizon: (rows of nodes, downs, ups) (ms)
        self._spare = [np.zeros(0, dtype=np.int64)] * 3

    def extend(self, horizon: float) -> Outages:
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
        uniform = _uniform(self._generators.random_raw(rows, 4 * count)).reshape(rows.size, count, 4)
        steps = np.empty((rows.size, 2 * count + 1), dtype=np.int64)
        steps[:, 0] = self._now[rows]
        up = self._model.uptime.draw(uniform[..., :2])
        if self._fresh:  # the first draw includes every node
            up[:, 0] = self._model.uptime.draw(uniform[:, 0, :2], self._model.age)
        steps[:, 1::2] = _milliseconds(up)
        steps[:, 2::2] = _milliseconds(self._model.repair.draw(uniform[..., 2:]))
        times = np.cumsum(steps, axis=1)
        self._now[rows] = times[:, -1]
        return [np.repeat(rows, count), times[:, 1::2].ravel(), times[:, 2::2].ravel()]


class _SystemStream:
    """The stream of failures of the machine.

    Each failure hits one random node and takes five random numbers.
    """

    def __init__(self, model: FailureModel, nodes: range, seed: int, key: tuple[int, ...]) -> None:
        self._model = model
        self._nodes = nodes
        self._generator = _generator(seed, (*key, _SYSTEM_KEY))
        self._now = 0
        #: {index of a node: end of its last outage (ms)}
        self._up: dict[int, int] = {}
        self._spare: list[tuple[int, int, int]] = []

    def extend(self, horizon: float) -> Outages:
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


def _generator(seed: int, key: tuple[int, ...]) -> "np.random.PCG64":  # a string, because numpy imports PCG64 on use
    _check_seed(seed)
    return np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key))


def _check_seed(seed: int) -> None:
    if seed < 0:
        raise OutageError("a seed is negative", expected="a whole number of at least 0", found=str(seed))


def _uniform(raw: NDArray[np.uint64]) -> Floats:
    """Return uniform numbers in (0, 1) from 64 random bits each: multiples of 2**-53."""
    return ((raw >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def _milliseconds(seconds: Floats) -> Ints:
    """Convert times in seconds to whole milliseconds, rounded up and at least 1."""
    return np.clip(np.ceil(seconds * _PER_SECOND), 1, _MOST).astype(np.int64)


def _milliseconds_up(horizon: float) -> int:
    """Return the first whole millisecond at or after the horizon (s)."""
    end = int(np.ceil(horizon * _PER_SECOND))
    return end - 1 if (end - 1) / _PER_SECOND >= horizon else end  # the product may have been rounded up


def _outages(node: Ints, down: Ints, up: Ints, cause: str) -> Outages:
    return Outages(node, down / _PER_SECOND, up / _PER_SECOND, [cause] * node.size)
