"""Conditions on jobs, such as ``nodes<=16``, ``walltime<2h`` or ``accounts=a,b``."""

import operator
import re
from collections.abc import Callable, Iterable
from typing import Final

from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.protocol.base.errors import PipistrelleError, did_you_mean, shown
from pipistrelle.protocol.base.lengths import parse_seconds
from pipistrelle.schedulers.policy.errors import PolicyError
from pipistrelle.schedulers.policy.jobs import SchedulerJob

#: whether a job on a machine satisfies a condition
Test = Callable[[SchedulerJob, Machine], bool]

_COMPARED: Final = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
}
_NUMBERS: Final = ("nodes", "units", "walltime")
#: {word: the job's label}
_LABELS: Final = {"users": "user", "groups": "group", "accounts": "account", "queues": "queue", "qos": "qos"}
_CONDITION: Final = re.compile(r"([a-z_]+)\s*(<=|>=|<|>|=)\s*(\S.*)")
_OR: Final = re.compile(r"\s+or\s+")
_EXPECTED: Final = "nodes<=16, walltime<2h or accounts=a,b; join several by 'or'"


class Selection:
    """The jobs that satisfy at least one of several conditions.

    Args:
        texts: each text has one or more conditions joined by ``or``. A condition compares ``nodes`` (the fewest
            that hold the job's units), ``units`` or ``walltime`` with a number or a duration, by ``<``, ``<=``, ``>``,
            ``>=`` or ``=``. Or it names, after ``=`` and separated by commas, ``jobs`` (ids), ``users``, ``groups``,
            ``accounts``, ``queues`` or ``qos``.
        where: name of the texts in messages.

    Raises:
        PolicyError: a condition is invalid.
    """

    def __init__(self, texts: Iterable[str], where: str) -> None:
        self._tests: list[Test] = []
        #: whether jobs' labels are needed
        self.asks_labels = False
        for text in texts:
            for condition in _OR.split(text.strip()):
                self._tests.append(self._read(condition, where))

    def __bool__(self) -> bool:
        return bool(self._tests)

    def has(self, job: SchedulerJob, machine: Machine) -> bool:
        """Return whether a job is selected."""
        return any(test(job, machine) for test in self._tests)

    def _read(self, condition: str, where: str) -> Test:
        found = _CONDITION.fullmatch(condition)
        if found is None:
            raise PolicyError("invalid condition on jobs", where=where, expected=_EXPECTED, found=shown(condition))
        word, sign, value = found.groups()
        if word in _NUMBERS:
            return _comparison(word, sign, value.strip(), where)
        if word != "jobs" and word not in _LABELS:
            words = [*_NUMBERS, "jobs", *_LABELS]
            raise PolicyError(
                f"unknown property of jobs {shown(word)}",
                where=where,
                expected=_EXPECTED,
                found=shown(condition),
                hint=did_you_mean(word, words),
            )
        names = [name.strip() for name in value.split(",")]
        if sign != "=" or not all(names):
            raise PolicyError(
                f"invalid {word} in a condition on jobs",
                where=where,
                expected=f"{word}=NAME,... with full names",
                found=shown(condition),
            )
        known = frozenset(names)
        if word == "jobs":
            return lambda job, machine: job.id in known
        self.asks_labels = True
        label = _LABELS[word]
        return lambda job, machine: job.description is not None and getattr(job.description, label) in known


def nodes_needed(job: SchedulerJob, machine: Machine) -> int:
    """Return the fewest nodes that can hold a job's units.

    For a job with units per node, the submitted size counts. ``job.size`` may be less: a placement can pick units for a
    part of a job.
    """
    told = job.description
    if told is not None and told.units_per_node is not None:
        return -(-told.res // told.units_per_node)
    return -(-job.size // max(each for _, _, _, each in machine.numbering.pools))


def _comparison(word: str, sign: str, value: str, where: str) -> Test:
    compare = _COMPARED[sign]
    if word == "walltime":
        try:
            bound = parse_seconds(value, or_zero=True)
        except PipistrelleError as error:
            raise PolicyError(error.what, where=where, expected=error.expected, found=error.found) from None
        return lambda job, machine: compare(job.walltime, bound)
    if not (value.isascii() and value.isdigit() and len(value) <= 15):
        raise PolicyError(
            f"invalid number of {word}", where=where, expected="a whole number, such as 16", found=shown(value)
        )
    number = int(value)
    if word == "units":
        return lambda job, machine: compare(job.size if job.description is None else job.description.res, number)
    return lambda job, machine: compare(nodes_needed(job, machine), number)
