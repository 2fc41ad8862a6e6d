"""Limits of job classes, enforced for all policies.

A job of a limited class joins the queue only if its class's running and queued jobs then stay within the limits. So no
policy can exceed a limit. A job over a limit is set aside (kept out of the queue) and does not block other jobs. After
a job of its class or user has left, it may join at its position in queue order.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from pipistrelle.protocol.base.state import Kept
from pipistrelle.protocol.events import ClassInfo, PlatformInfo, SimulationBeginsData
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.order import FixedOrder, Floats, Order, is_dynamic
from pipistrelle.schedulers.policy.windows import Window
from pipistrelle.schedulers.waiting.moving import MovingQueue

#: more units than any machine has, but less than the size stored in an empty row
_UNLIMITED: Final = 2**53
_NOBODY: Final = 0


class _WithUser:
    """A queue order that wraps another order and also records each job's user.

    The user's number becomes the last attribute of a job, and so the last row of the ``table`` that `ranks` gets.
    """

    dynamic: Literal[True] = True

    def __init__(self, order: Order, users: "_Users") -> None:
        self._order = order
        self._users = users

    def begin(self) -> None:
        """Do nothing: the view's queue has already called the order's `begin`."""

    def attributes(self, job: SchedulerJob) -> Sequence[float]:
        """Return the wrapped order's attributes (or fixed rank), and the user's number."""
        order = self._order
        if is_dynamic(order):
            return (*order.attributes(job), self._users.number(job))
        fixed: FixedOrder = order  # type: ignore[assignment]
        return (fixed.rank(job), self._users.number(job))

    def ranks(self, table: Floats, now: float) -> Floats:
        order = self._order
        return order.ranks(table[:-1], now) if is_dynamic(order) else table[0].copy()


class _Users(Kept):
    """The users of one class, numbered from 1, and the units that each may still use."""

    _kept = ("numbers", "rooms")

    def __init__(self, most: int | None) -> None:
        self._most = most
        self.numbers: dict[str, int] = {}
        self.rooms: NDArray[np.int64] = np.full(16, _UNLIMITED if most is None else most, dtype=np.int64)
        self.rooms[_NOBODY] = _UNLIMITED

    def number(self, job: SchedulerJob) -> int:
        """Return the number of the job's user.

        It is `_NOBODY` if the user is unknown or not limited.
        """
        user = None if self._most is None or job.description is None else job.description.user
        if user is None:
            return _NOBODY
        number = self.numbers.setdefault(user, len(self.numbers) + 1)
        if number == len(self.rooms):
            self.rooms = np.concatenate([self.rooms, np.full(number, self._most, dtype=np.int64)])
        return number


class _Aside(MovingQueue):
    def next(self, room: int, rooms: NDArray[np.int64]) -> SchedulerJob | None:
        """Return the first job kept out of the queue that its limits now admit.

        Return None if there is none.

        Args:
            room: units that the class may still use.
            rooms: units that each user may still use, by the user's number.
        """
        rows = np.flatnonzero(self._sizes[: len(self._jobs)] <= room)
        if len(rows):
            rows = rows[self._sizes[rows] <= rooms[self._table[-1, rows].astype(np.intp)]]
        return self._job(int(rows[self._best(rows, self._ranked()[rows])])) if len(rows) else None


class _Class(Kept):
    """A job class, and how many units its limits still allow new jobs to use."""

    _kept = ("room", "changed", "users")

    def __init__(self, info: ClassInfo, platform: PlatformInfo, units: int, order: Order) -> None:
        self.info = info
        self.units = NodeSet.parse(info.units)
        self.closed = NodeSet.interval(0, units - 1) - self.units
        self.per_node = min(
            (pool.units_per_node for pool in platform.pools if not self.units.isdisjoint(NodeSet.parse(pool.units))),
            default=1,
        )
        self.limited = info.max_nodes is not None or info.max_nodes_per_user is not None
        self.room = _UNLIMITED if info.max_nodes is None else info.max_nodes * self.per_node
        per_user = info.max_nodes_per_user
        self.users = _Users(None if per_user is None else per_user * self.per_node)
        self.aside = _Aside(_WithUser(order, self.users))
        #: whether a job set aside may meet the limits by now
        self.changed = False

    def state(self) -> dict[str, Any]:
        return {**super().state(), "aside": self.aside.state()}

    def restore(self, state: dict[str, Any], jobs: Mapping[str, SchedulerJob]) -> None:
        super().restore(state)
        self.aside.restore(state["aside"], jobs)

    def nodes(self, job: SchedulerJob) -> int:
        """Return the fewest nodes that together have as many units as the job needs."""
        return -(-job.size // self.per_node)

    def refusal(self, job: SchedulerJob) -> str | None:
        """Return why the job can never run in this class; None if it can."""
        info, nodes = self.info, self.nodes(job)
        for limit in ("max_nodes_per_job", "max_nodes_per_user", "max_nodes"):
            most = getattr(info, limit)
            if most is not None and nodes > most and (limit != "max_nodes_per_user" or self.users.number(job)):
                return f"class '{info.name}' allows {most} nodes ({limit}), the job needs {nodes}"
        if info.max_walltime is not None and job.walltime > info.max_walltime:
            asks = "no walltime" if job.walltime == inf else f"{job.walltime:g} s"
            return f"class '{info.name}' allows {info.max_walltime:g} s (max_walltime), the job asks for {asks}"
        if job.size > len(self.units):
            return f"class '{info.name}' has {len(self.units)} units (pools), the job needs {job.size}"
        return None

    def count(self, job: SchedulerJob, sign: int) -> None:
        """Count a job of this class that joins the queue, or stop counting it.

        ``sign`` is 1 for a job that joins, and -1 for a job that has ended or left the queue.
        """
        units = sign * self.nodes(job) * self.per_node
        if self.info.max_nodes is not None:
            self.room -= units
        user = self.users.number(job)
        if user != _NOBODY:
            self.users.rooms[user] -= units

    def fits(self, job: SchedulerJob) -> bool:
        """Return whether all limits still hold if the job joins the queue."""
        units = self.nodes(job) * self.per_node
        return units <= self.room and units <= int(self.users.rooms[self.users.number(job)])


class ClassLimits(Kept):
    """The limits of all job classes, and the jobs that they keep out of the queue.

    Call `let_in` after each change, before the queue is read.

    Args:
        units: number of units of the machine.
        order: the queue's order, whose `begin` has been called.
    """

    _kept = ("_inside", "pending")

    def __init__(self, platform: PlatformInfo, units: int, order: Order) -> None:
        self._classes = {info.name: _Class(info, platform, units, order) for info in platform.classes}
        #: {job's number: class's name} of the running and queued jobs of limited classes
        self._inside: dict[int, str] = {}
        #: time (s) of the last change since the last `let_in`; None if there was none
        self.pending: float | None = None

    @classmethod
    def where_there_are(cls, begins: SimulationBeginsData, order: Order) -> "ClassLimits | None":
        """Return the limits of the machine's job classes; None if it has no classes."""
        platform = begins.platform
        return cls(platform, begins.nb_resources, order) if platform is not None and platform.classes else None

    def each(self) -> Iterator[SchedulerJob]:
        """Yield the jobs kept out of the queue, in the order of storage."""
        for one in self._classes.values():
            yield from one.aside.each()

    def state(self) -> dict[str, Any]:
        """Return, per class, the jobs kept out of the queue and the units still allowed."""
        return {**super().state(), "classes": {name: one.state() for name, one in self._classes.items()}}

    def restore(self, state: dict[str, Any], jobs: Mapping[str, SchedulerJob]) -> None:
        """Restore the state that the method `state` returned.

        ``jobs`` has the queued jobs by id.
        """
        super().restore(state)
        for name, one in self._classes.items():
            one.restore(state["classes"][name], jobs)

    def __iter__(self) -> Iterator[SchedulerJob]:
        """Yield the jobs kept out of the queue, class by class.

        Jobs of one class are in queue order.
        """
        for one in self._classes.values():
            yield from one.aside

    def __len__(self) -> int:
        return sum(len(one.aside) for one in self._classes.values())

    def __contains__(self, job: SchedulerJob) -> bool:
        one = self._of(job)
        return one is not None and job in one.aside

    def _of(self, job: SchedulerJob) -> _Class | None:
        queue = None if job.description is None else job.description.queue
        return None if queue is None else self._classes.get(queue)

    def windows(self) -> list[Window]:
        """Return a window for each class with its own pools: its jobs stay in the pools.

        The window is permanent, covers all units outside these pools, and excludes only the jobs of this class.
        """
        return [
            Window(f"pools of class {name}", 0.0, inf, one.closed, lambda job, one=one: self._of(job) is not one)  # type: ignore[misc]
            for name, one in self._classes.items()
            if one.closed
        ]

    def closed(self, job: SchedulerJob) -> NodeSet:
        """Return the units that the job's class may not use."""
        one = self._of(job)
        return NodeSet.EMPTY if one is None else one.closed

    def refusal(self, job: SchedulerJob) -> str | None:
        """Return the class limit that keeps the job from ever running; None if it can run."""
        one = self._of(job)
        return None if one is None else one.refusal(job)

    def set_aside(self, job: SchedulerJob, now: float) -> bool:
        """Keep a job submitted at ``now`` (s) out of the queue, until `let_in` returns it.

        Return False, and do nothing, if its class has no limits.
        """
        one = self._of(job)
        if one is None or not one.limited:
            return False
        one.aside.add(job)
        if one.changed or one.fits(job):
            one.changed = True
            self.pending = now
        return True

    def admit(self, job: SchedulerJob) -> None:
        """Count a job that another scheduler started, even if it exceeds the limits."""
        one = self._of(job)
        if one is not None and one.limited:
            one.count(job, 1)
            self._inside[job.number] = one.info.name

    def left(self, job: SchedulerJob, now: float) -> None:
        """Record that a job ended, or left the queue without starting, at ``now`` (s)."""
        name = self._inside.pop(job.number, None)
        if name is not None:
            one = self._classes[name]
            one.count(job, -1)
            if one.aside:
                one.changed = True
                self.pending = now

    def forget(self, job: SchedulerJob) -> bool:
        """Remove a job from the jobs that are kept out of the queue.

        Return whether it was one of them.
        """
        one = self._of(job)
        if one is None or job not in one.aside:
            return False
        one.aside.remove(job)
        return True

    def let_in(self) -> list[SchedulerJob]:
        """Return the jobs kept out of the queue that may now join it.

        As many jobs are returned as the limits of their classes allow. They no longer count as kept out.
        """
        found: list[SchedulerJob] = []
        now = self.pending
        if now is None:
            return found
        self.pending = None
        for one in self._classes.values():
            if not one.changed:
                continue
            one.changed = False
            one.aside.rerank(now)
            while (job := one.aside.next(one.room, one.users.rooms)) is not None:
                one.aside.remove(job)
                one.count(job, 1)
                self._inside[job.number] = one.info.name
                found.append(job)
        return found

    def held_back_by(self, job: SchedulerJob) -> str | None:
        """Return the limit (as text) that keeps a job out of the queue.

        Return None if the job is queued.
        """
        one = self._of(job)
        if one is None or job not in one.aside:
            return None
        info, nodes = one.info, one.nodes(job)
        user = one.users.number(job)
        if user != _NOBODY and nodes * one.per_node > one.users.rooms[user]:
            limit, most, room = "max_nodes_per_user", info.max_nodes_per_user, int(one.users.rooms[user])
        else:
            limit, most, room = "max_nodes", info.max_nodes, one.room
        taken = (most or 0) - room // one.per_node
        return f"class '{info.name}' allows {most} nodes ({limit}): {taken} taken, the job needs {nodes}"
