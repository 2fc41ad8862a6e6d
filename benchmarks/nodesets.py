"""Compare our interval-based sets of units with Python's built-in sets.

The machine has 100,000 units. Run ``python benchmarks/nodesets.py``. Each line gives the times of one operation and
their ratio. Nothing is asserted, because the times depend on the machine.
"""

from collections.abc import Callable
from timeit import Timer
from typing import NamedTuple

from pipistrelle.protocol.units.free import FreeUnits
from pipistrelle.protocol.units.nodesets import NodeSet

UNITS = 100_000
JOB = 64


class Line(NamedTuple):
    """An operation on sets of units.

    It has a name, an implementation with our sets, and one with built-in sets.
    """

    name: str
    intervals: Callable[[], object]
    builtin: Callable[[], object]


def nanoseconds(operation: Callable[[], object]) -> float:
    """Return the time of one call (ns), the best of three measurements."""
    timer = Timer(operation)
    number = timer.autorange()[0] // 8 + 1
    return min(timer.repeat(3, number)) / number * 1e9


def values() -> list[Line]:
    """Return the benchmark's operations on immutable sets of units.

    The sets are the whole machine, one job, and every 20th unit.
    """
    machine, plain_machine = NodeSet.interval(0, UNITS - 1), frozenset(range(UNITS))
    job, plain_job = NodeSet.interval(500, 500 + JOB - 1), frozenset(range(500, 500 + JOB))
    holes, plain_holes = NodeSet.of(range(0, UNITS, 20)), frozenset(range(0, UNITS, 20))
    text = str(job)
    ids = [str(unit) for unit in job]
    return [
        Line(f"read a job of {JOB}", lambda: NodeSet.parse(text), lambda: frozenset(map(int, ids))),
        Line(f"write a job of {JOB}", lambda: str(job), lambda: " ".join(map(str, sorted(plain_job)))),
        Line("build and hash", lambda: hash(NodeSet.interval(0, UNITS - 1)), lambda: hash(frozenset(range(UNITS)))),
        Line("machine - job", lambda: machine - job, lambda: plain_machine - plain_job),
        Line("job <= machine", lambda: job <= machine, lambda: plain_job <= plain_machine),
        Line("machine - 5,000 holes", lambda: machine - holes, lambda: plain_machine - plain_holes),
        Line("5,000 holes | job", lambda: holes | job, lambda: plain_holes | plain_job),
        Line("unit in 5,000 holes", lambda: 77_780 in holes, lambda: 77_780 in plain_holes),
    ]


def ledgers() -> list[Line]:
    """Return the benchmark's operations on mutable sets of free units.

    An operation allocates a job and releases it. Each is done on a contiguous and on a fragmented machine.
    """
    lines = []
    whole = NodeSet.interval(0, UNITS - 1)
    fragmented = whole - NodeSet.of(range(0, UNITS, 20))
    for name, start in (("whole machine", whole), ("5,000 intervals", fragmented)):
        free, plain = FreeUnits(start), set(start)
        job = NodeSet.of(list(start)[UNITS // 2 : UNITS // 2 + JOB])
        plain_job = frozenset(job)

        def lowest(free: FreeUnits = free) -> None:
            free.add(free.take_lowest(JOB))

        def plain_lowest(plain: set[int] = plain) -> None:
            taken = sorted(plain)[:JOB]
            plain.difference_update(taken)
            plain.update(taken)

        def given(free: FreeUnits = free, job: NodeSet = job) -> None:
            free.remove(job)
            free.add(job)

        def plain_given(plain: set[int] = plain, job: frozenset[int] = plain_job) -> None:
            if job <= plain:
                plain.difference_update(job)
            if plain.isdisjoint(job):
                plain.update(job)

        lines.append(Line(f"{name}: take lowest {JOB}, add", lowest, plain_lowest))
        lines.append(Line(f"{name}: remove {JOB}, add", given, plain_given))
    return lines


def main() -> None:
    """Run the benchmark and print the table of times."""
    print(f"{'operation':<38}{'intervals':>14}{'built-in':>14}{'built-in / intervals':>22}")
    for line in values() + ledgers():
        ours, theirs = nanoseconds(line.intervals), nanoseconds(line.builtin)
        print(f"{line.name:<38}{ours:>11,.0f} ns{theirs:>11,.0f} ns{theirs / ours:>22,.2f}")


if __name__ == "__main__":
    main()
