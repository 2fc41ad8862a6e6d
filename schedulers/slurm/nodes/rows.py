"""The cores that jobs hold if jobs may share them (OverSubscribe), as select/cons_tres records them.

Each partition has as many rows as jobs may share a core. The jobs in one row hold different cores.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from pipistrelle.schedulers.slurm.cluster.bits import indices_of
from pipistrelle.schedulers.slurm.cluster.jobs import SlurmJob
from pipistrelle.schedulers.slurm.cluster.machine import SlurmMachine

#: for each node, a set of cores
Cores = list[int]


class HeldCores(Struct, frozen=True):
    """The cores that a job holds, {node: set of cores}, and whether the job shares them."""

    serial: int
    shares: bool
    cores: dict[int, int]

    @property
    def size(self) -> int:
        """The number of cores."""
        return sum(one.bit_count() for one in self.cores.values())

    @property
    def first(self) -> tuple[int, int]:
        """The first node and its first core."""
        at = min(self.cores)
        return at, self.cores[at] & -self.cores[at]


class CoreRows:
    """The rows of all partitions."""

    def __init__(self, machine: SlurmMachine) -> None:
        self._machine = machine
        self._every: Cores = [
            (1 << -(-cpus // threads)) - 1 for cpus, threads in zip(machine.cpus, machine.threads, strict=True)
        ]
        self._tiers = [one.settings.priority_tier for one in machine.partitions]
        self._rows: list[list[list[HeldCores]]] = [
            [[] for _ in range(one.settings.max_share)] for one in machine.partitions
        ]

    def copy(self) -> "CoreRows":
        """Return a copy from which jobs can be removed."""
        copy = CoreRows.__new__(CoreRows)
        copy._machine, copy._every, copy._tiers = self._machine, self._every, self._tiers
        copy._rows = [[list(row) for row in rows] for rows in self._rows]
        return copy

    def steps(self, part: int, usable: int, *, shares: bool) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Yield the nodes, and the CPUs of each node, that a job may use, in the order in which Slurm tries them.

        First come cores that no job holds. A job that shares cores then tries cores that only jobs of partitions of
        other tiers hold, and at last those that no job in one of the rows of its own partition holds.
        """
        threads = self._machine.all_threads
        most = self._machine.all_cpus
        seen: list[Cores] = []
        nodes = self._open(part, usable, shares=shares)
        for cores in self._free(part, shares=shares):
            if cores not in seen:
                seen.append(cores)
                yield nodes, np.minimum(np.array([one.bit_count() for one in cores], np.int64) * threads, most)

    def add(self, job: SlurmJob) -> None:
        """Record the cores of a job that starts; they are the lowest in the first step in which the job fits."""
        threads = self._machine.threads
        needs = {at: -(-cpus // threads[at]) for at, (cpus, _, _) in job.alloc.items()}
        free = self._every
        for cores in self._free(job.part, shares=job.shares):
            if all(cores[at].bit_count() >= need for at, need in needs.items()):
                free = cores
                break
        held = HeldCores(job.serial, job.shares, {at: _lowest(free[at], need) for at, need in needs.items()})
        rows = self._rows[job.part]
        next((row for row in rows if _fits(row, held)), rows[-1]).append(held)

    def remove(self, job: SlurmJob) -> None:
        """Forget a job that ends, and arrange the other jobs of its partition in as few rows as possible."""
        before = [[held for held in row if held.serial != job.serial] for row in self._rows[job.part]]
        self._rows[job.part] = before
        if len(before) == 1:
            return
        rows: list[list[HeldCores]] = [[] for _ in before]
        for held in sorted((held for row in before for held in row), key=lambda one: (one.first, one.size)):
            fitting = next((row for row in rows if _fits(row, held)), None)
            if fitting is None:
                return
            fitting.append(held)
            _sort(rows)
        self._rows[job.part] = rows

    def _open(self, part: int, usable: int, *, shares: bool) -> int:
        """Return the nodes of ``usable`` without those where jobs keep others off.

        A job that shares cores may not use nodes of jobs that do not. Such a job may not use nodes of jobs in other
        partitions that allow sharing.
        """
        for index, rows in enumerate(self._rows):
            for held in (held for row in rows for held in row):
                if not held.shares if shares else len(rows) > 1 and index != part:
                    for at in held.cores:
                        usable &= ~(1 << at)
        return usable

    def _free(self, part: int, *, shares: bool) -> Iterator[Cores]:
        """Yield the free cores of all nodes, as in `steps`."""
        parts = range(len(self._rows))
        yield self._without(self._every, *parts)
        if not shares:
            return
        tier = self._tiers[part]
        same = self._without(self._every, *(at for at in parts if self._tiers[at] == tier))
        lower = sorted((at for at in parts if self._tiers[at] < tier), key=lambda at: -self._tiers[at])
        for count in range(len(lower), -1, -1):
            yield self._without(same, *lower[:count])
        _sort(self._rows[part])  # which decides into which row the next job comes
        for row in list(self._rows[part]):
            yield _without(self._every, row)

    def _without(self, cores: Cores, *parts: int) -> Cores:
        for part in parts:
            for row in self._rows[part]:
                cores = _without(cores, row)
        return cores

    def state(self) -> list[Any]:
        """Return the rows as values that JSON can hold."""
        return [
            [[[held.serial, held.shares, list(held.cores.items())] for held in row] for row in rows]
            for rows in self._rows
        ]

    def restore(self, state: list[Any]) -> None:
        """Restore the rows that the method `state` returned."""
        self._rows = [
            [[HeldCores(serial, shares, dict(held)) for serial, shares, held in row] for row in rows] for rows in state
        ]


def _without(cores: Cores, row: list[HeldCores]) -> Cores:
    if not row:
        return cores
    left = list(cores)
    for held in row:
        for at, some in held.cores.items():
            left[at] &= ~some
    return left


def _lowest(cores: int, count: int) -> int:
    found = 0
    for at in list(indices_of(cores))[:count]:
        found |= 1 << at
    return found


def _fits(row: list[HeldCores], held: HeldCores) -> bool:
    return not any(other.cores.get(at, 0) & cores for other in row for at, cores in held.cores.items())


def _sort(rows: list[list[HeldCores]]) -> None:
    """Sort rows from the one with the most cores in use, by exchanges as in slurmctld."""
    sizes = [sum(held.size for held in row) for row in rows]
    for i in range(len(rows)):
        for j in range(i + 1, len(rows)):
            if sizes[j] > sizes[i]:
                sizes[i], sizes[j] = sizes[j], sizes[i]
                rows[i], rows[j] = rows[j], rows[i]
