"""Read resource traces of Maui and Moab: one line of 21 fields per node.

The Maui Administrator's Guide, section 16.2, "Resource Traces", defines the format.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Final

from pipistrelle.protocol.base.errors import quoted
from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.files import PathText, beginning, open_trace
from pipistrelle.traces.logs.job_table import as_label, numbered_lines, whole_number
from pipistrelle.traces.logs.kinds import NODE_SIGN, is_remark, kind_of
from pipistrelle.traces.logs.maui import CLASS, NONE

WIDTH: Final = 21
_EVENTS: Final = ("AVAILABLE", "DEFINED", "DRAINED")


@dataclass(frozen=True, slots=True)
class MauiNode:
    """A node of a Maui resource trace.

    Attributes:
        state: ``AVAILABLE``, ``DEFINED`` (down at the start) or ``DRAINED``.
        memory, disk, swap: in MB.
        system, architecture: "" if unknown.
        features, classes: names, in the trace's order.
    """

    name: str
    manager: str
    state: str
    processors: int
    memory: int
    disk: int
    swap: int
    system: str
    architecture: str
    features: tuple[str, ...]
    classes: tuple[str, ...]


def is_resource_trace(path: PathText) -> bool:
    """Return whether a file begins like a resource trace; False if it cannot be read."""
    return kind_of(beginning(path)) == "maui resources"


def read_maui_resources(path: PathText) -> tuple[MauiNode, ...]:
    """Read the nodes of a Maui resource trace, plain or compressed."""
    where = str(path)
    names = cache(as_label)
    places: dict[str, str] = {}
    nodes = []
    with open_trace(path) as stream:
        for place, text in numbered_lines(stream, where):
            if is_remark(text):
                continue
            node = _node(text.split(), place, names)
            if node.name in places:
                raise TraceError(
                    "the node occurs twice",
                    where=place,
                    expected="each node once",
                    found=f"{quoted(node.name)}, as at {places[node.name]}",
                    hint="Remove one of the two lines.",
                )
            places[node.name] = place
            nodes.append(node)
    if not nodes:
        raise TraceError("has no nodes", where=where, expected=f"lines that begin with {NODE_SIGN}")
    return tuple(nodes)


def _node(fields: list[str], place: str, names: Callable[[str], str]) -> MauiNode:
    if fields[0] != NODE_SIGN or len(fields) != WIDTH or fields[1] not in _EVENTS:
        raise TraceError(
            "the line describes no node",
            where=place,
            expected=f"{WIDTH} fields, the first {NODE_SIGN}, the second one of {', '.join(_EVENTS)}",
            found=f"{len(fields)}, the first {quoted(fields[0])}",
            hint="Check that the file is complete.",
        )

    def number(index: int, name: str) -> int:
        text = fields[index - 1]
        return 0 if text == NONE or text.startswith("-") else whole_number(text, place, f"{index} ({name})")

    def text(index: int) -> str:
        return "" if fields[index - 1] in (NONE, "-") else names(fields[index - 1])

    def listed(index: int) -> tuple[str, ...]:
        return tuple(names(name) for name in CLASS.findall(text(index)))

    return MauiNode(
        name=names(fields[3]),
        manager=text(5),
        state=fields[1],
        processors=max(number(9, "Configured Processors"), 1),
        memory=number(7, "Configured Memory"),
        disk=number(8, "Configured Disk"),
        swap=number(6, "Configured Swap"),
        system=text(13),
        architecture=text(14),
        features=listed(15),
        classes=listed(16),
    )
