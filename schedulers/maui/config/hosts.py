"""HOSTLIST: units of a standing reservation by number, name or regular expression.

Source: admin manual of Maui, appendix F and 7.1.5, and MUREToList of Maui 3.2: hosts are separated by commas; each is a
POSIX regular expression, case-insensitive, that matches any part of a node's name.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.naming.node_names import NodeNames
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.protocol.base.errors import did_you_mean, shown
from pipistrelle.protocol.units.nodesets import NodeSet

_NUMBERS: Final = re.compile(r"(\d{1,10})(?:-(\d{1,10}))?")
#: a range of names; as a regular expression its brackets would repeat a character or have a descending range
_RANGE: Final = re.compile(r"[A-Za-z0-9._-]*\[(\d{2,9}-\d{1,9}|\d-\d{2,9})\][A-Za-z0-9._-]*")
#: {POSIX character class: the same in Python}
_POSIX: Final = {
    "[:alnum:]": "0-9A-Za-z",
    "[:alpha:]": "A-Za-z",
    "[:digit:]": "0-9",
    "[:lower:]": "a-z",
    "[:upper:]": "A-Z",
    "[:xdigit:]": "0-9A-Fa-f",
}


def pattern_of(host: str) -> re.Pattern[str]:
    """Return the regular expression for an entry of HOSTLIST.

    Raise re.error if the entry is invalid.
    """
    for theirs, ours in _POSIX.items():
        host = host.replace(theirs, ours)
    return re.compile(host, re.IGNORECASE)


def check_host(host: str) -> None:
    """Raise ValueError if a host is invalid.

    A host is a number, a range, a name or a regular expression.
    """
    numbers = _NUMBERS.fullmatch(host)
    if numbers is not None and numbers[2] is not None and int(numbers[2]) < int(numbers[1]):
        raise ValueError("ascending intervals of units, such as 0-15")
    if not _RANGE.fullmatch(host):
        try:
            pattern_of(host)
        except re.error as error:
            raise ValueError(f"a name, or a regular expression ({error})") from None


def units_of_hosts(hosts: Sequence[str], machine: Machine, where: str) -> NodeSet:
    """Return the units of a machine that ``hosts`` names.

    A host is read as the first of these that applies: the name of a node (unless nodes have only numbers); the number
    of a unit, or an interval such as 0-3; a range of names such as ``n[001-096]``; a regular expression.

    Raises:
        PlatformError: if the machine has no such unit or node; the message begins with ``where``.
    """
    found = NodeSet.EMPTY
    for host in hosts:
        found |= _units(host, machine, where)
    return found


def _units(host: str, machine: Machine, where: str) -> NodeSet:
    names = machine.nodes.names
    numbers = _NUMBERS.fullmatch(host)
    if numbers is not None and not (machine.named and host in names):
        low, high = int(numbers[1]), int(numbers[2] or numbers[1])
        if high >= machine.units:
            raise PlatformError(
                "a host is beyond the machine", where=where, expected=f"units 0 to {machine.units - 1}", found=host
            )
        return NodeSet.interval(low, high)
    return machine.numbering.units_of(NodeSet.of(_nodes(host, machine, where)))


def _nodes(host: str, machine: Machine, where: str) -> Iterator[int]:
    """Yield the indices of the nodes that ``host`` names.

    Raise PlatformError if there is no such node.
    """
    nodes = machine.nodes
    if not machine.named:
        raise PlatformError(
            "a host is given by name, but the machine's nodes have no names",
            where=where,
            expected=f"units by number, 0 to {machine.units - 1}",
            found=shown(host),
            hint='Give its pools names, such as names = "n[001-096]", in the platform\'s file.',
        )
    if host in nodes.names:
        yield nodes.number(host)
    elif bounds := _RANGE.fullmatch(host):
        first, last = (int(bound) for bound in bounds[1].split("-"))
        for name in NodeNames.parse(host, last - first + 1, where):
            yield nodes.number(name, where)
    else:
        pattern = pattern_of(host)
        matching = [number for number, name in enumerate(nodes.names) if pattern.search(name)]
        if not matching:
            hint = did_you_mean(host, list(nodes.names))
            raise PlatformError("no node has this name", where=where, found=shown(host), hint=hint)
        yield from matching
