"""Which jobs a text means: ``nodes<=16``, ``walltime<2h``, ``accounts=a,b``, several of these joined by ``or``."""

import operator
import re
from collections.abc import Callable, Iterable
from typing import Final

from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.protocol.base.errors import PipistrelleError, did_you_mean, shown
from pipistrelle.protocol.base.lengths import parse_seconds
from pipistrelle.schedulers.policy.errors import PolicyError
from pipistrelle.schedulers.policy.jobs import SchedulerJob

#: tells whether a job on a machine is meant
Test = Callable[[SchedulerJob, Machine], bool]

_COMPARED: Final = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
}
_NUMBERS: Final = ("nodes", "units", "walltime")
#: {word: the label of a job that it asks for}
_LABELS: Final = {"users": "user", "groups": "group", "accounts": "account", "queues": "queue", "qos": "qos"}
_CONDITION: Final = re.compile(r"([a-z_]+)\s*(<=|>=|<|>|=)\s*(\S.*)")
_OR: Final = re.compile(r"\s+or\s+")
_EXPECTED: Final = "nodes<=16, walltime<2h or accounts=a,b; several are joined by 'or'"


class Selection:
    """The jobs that at least one of some conditions holds for; none without conditions.

    Parameters
    ----------
    texts
        conditions, each text one or several joined by ``or``. A condition compares ``nodes`` (that the job's units need
        at least), ``units`` or ``walltime`` with a number or a length of time, by ``<``, ``<=``, ``>``, ``>=`` or
        ``=``; or it names, by ``=``, jobs by their ``jobs`` ids, ``users``, ``groups``, ``accounts``, ``queues`` or
        ``qos``, separated by commas.
    where
        what the texts are called in messages.

    Raises
    ------
    PolicyError
        if a condition cannot be read.
    """

    def __init__(self, texts: Iterable[str], where: str) -> None:
        self._tests: list[Test] = []
        #: whether it must be known whose a job is
        self.asks_labels = False
        for text in texts:
            for condition in _OR.split(text.strip()):
                self._tests.append(self._read(condition, where))

    def __bool__(self) -> bool:
        return bool(self._tests)

    def has(self, job: SchedulerJob, machine: Machine) -> bool:
        """Tell whether a job is meant."""
        return any(test(job, machine) for test in self._tests)

    def _read(self, condition: str, where: str) -> Test:
        found = _CONDITION.fullmatch(condition)
        if found is None:
            raise PolicyError(
                "a condition on jobs cannot be read", where=where, expected=_EXPECTED, found=shown(condition)
            )
        word, sign, value = found.groups()
        if word in _NUMBERS:
            return _comparison(word, sign, value.strip(), where)
        if word != "jobs" and word not in _LABELS:
            words = [*_NUMBERS, "jobs", *_LABELS]
            raise PolicyError(
                f"jobs have no {shown(word)} to ask for",
                where=where,
                expected=_EXPECTED,
                found=shown(condition),
                hint=did_you_mean(word, words),
            )
        names = [name.strip() for name in value.split(",")]
        if sign != "=" or not all(names):
            raise PolicyError(
                f"the {word} of a condition on jobs cannot be read",
                where=where,
                expected=f"{word}=NAME,... with each name in full",
                found=shown(condition),
            )
        known = frozenset(names)
        if word == "jobs":
            return lambda job, machine: job.id in known
        self.asks_labels = True
        label = _LABELS[word]
        return lambda job, machine: job.description is not None and getattr(job.description, label) in known


def nodes_needed(job: SchedulerJob, machine: Machine) -> int:
    """Return how many nodes a job's units need at least; whoever picks nodes asks for parts of a job."""
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
            f"a number of {word} cannot be read", where=where, expected="a whole number, as 16", found=shown(value)
        )
    number = int(value)
    if word == "units":
        return lambda job, machine: compare(job.size if job.description is None else job.description.res, number)
    return lambda job, machine: compare(nodes_needed(job, machine), number)
