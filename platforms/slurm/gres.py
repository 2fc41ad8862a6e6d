"""Generic resources (GRES) of nodes: in ``Gres`` of slurm.conf, and in gres.conf."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from pipistrelle.platforms.naming.hostlists import NameLists, expanded
from pipistrelle.platforms.slurm.conf import KeyFinding, SlurmConfigError, honoured_values
from pipistrelle.platforms.slurm.lines import WORD, Fetch, read_lines
from pipistrelle.protocol.base.errors import legible

_SCALES: Final = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}
_COUNT: Final = re.compile(r"(\d{1,12})([KMGT]?)", re.IGNORECASE)
_NAME: Final = re.compile(r"[A-Za-z0-9_./-]{1,48}")
_IGNORED: Final = "no_consume"


def read_gres(text: str, where: str) -> dict[str, int]:
    """Parse a list such as ``gpu:a100:4,nvme:1``.

    Return {``name`` or ``name:type``: number}. Sockets in parentheses, as in ``gpu:4(S:0-1)``, are ignored.

    Raises:
        SlurmConfigError: if the list is malformed.
    """
    found: dict[str, int] = {}
    for part in filter(None, re.sub(r"\([^)]*\)", "", text).split(",")):
        name, *more = [piece for piece in part.strip().split(":") if piece.lower() != _IGNORED]
        count = _COUNT.fullmatch(more.pop()) if more and _COUNT.fullmatch(more[-1]) else _COUNT.fullmatch("1")
        if count is None or len(more) > 1 or not all(map(_NAME.fullmatch, (name, *more))):
            raise SlurmConfigError(
                "generic resources are malformed",
                where=where,
                expected="NAME[:TYPE][:NUMBER],... such as gpu:a100:4",
                found=f"'{legible(text, WORD)}'",
            )
        key = ":".join((name, *more))
        found[key] = found.get(key, 0) + int(count[1]) * _SCALES[count[2].upper()]
    return found


@dataclass(frozen=True)
class GresLine:
    """A line of gres.conf; a line without node names applies to all nodes."""

    where: str
    name: str
    type: str
    count: int | None
    nodes: frozenset[str] | None


def read_gres_conf(text: str, name: str, fetch: Fetch | None = None) -> tuple[list[GresLine], list[KeyFinding]]:
    """Return the lines of a gres.conf, and how each key is treated.

    Raise SlurmConfigError if the file is malformed.
    """
    lines: list[GresLine] = []
    findings: list[KeyFinding] = []
    lists = NameLists()
    for line in read_lines(text, name, fetch, SlurmConfigError):
        values = honoured_values("gres", line, findings)
        if "Name" not in values:
            continue  # a line with AutoDetect alone
        nodes = frozenset(lists.expanded(values["NodeName"], line.where)) if "NodeName" in values else None
        count = _count_of(values, line.where)
        lines.append(GresLine(line.where, values["Name"], values.get("Type", ""), count, nodes))
    return lines, findings


def _count_of(values: Mapping[str, str], where: str) -> int | None:
    if "Count" in values:
        found = _COUNT.fullmatch(values["Count"])
        if found is None:
            raise SlurmConfigError(
                "a count of gres.conf is malformed", where=where, expected="a number", found=f"'{values['Count']}'"
            )
        return int(found[1]) * _SCALES[found[2].upper()]
    files = values.get("File") or values.get("MultipleFiles")
    return len(expanded(files, where, "files")) if files else None


def with_types(gres: Mapping[str, int], node: str, lines: Iterable[GresLine]) -> dict[str, int]:
    """Return a node's resources with the types that gres.conf gives them.

    A resource without a type in slurm.conf gets the types in gres.conf, if their numbers add up to the number in
    slurm.conf.
    """
    found = dict(gres)
    mine = [line for line in lines if line.type and (line.nodes is None or node in line.nodes)]
    for name in {line.name for line in mine if line.name in gres}:
        typed: dict[str, int] = {}
        for line in mine:
            if line.name == name:
                typed[f"{name}:{line.type}"] = typed.get(f"{name}:{line.type}", 0) + (line.count or 1)
        if sum(typed.values()) == gres[name]:
            del found[name]
            found |= typed
    return found
