"""How many nodes or processors a record of PBS or Torque speaks of: select, nodes, exec_host and the rest."""

import re
from collections.abc import Mapping
from typing import Final

from pipistrelle.traces.logs.job_table import fault, whole_number
from pipistrelle.traces.logs.size_units import Units

_MOST_CHUNKS: Final = 1_000_000
_SLOTS: Final = re.compile(r"(\d{1,9})-(\d{1,9})")


#: keys that say how much a job asks for
ASKING: Final = tuple(f"Resource_List.{name}" for name in ("select", "nodes", "nodect", "ncpus", "procs"))


def requested_units(values: Mapping[str, str], ran: int, units: Units, place: str) -> int:
    """Return how many units a job asks for that `ran` on so many (-1: that is not known); -1 if no record says it.

    Nodes are nodect, else those of select or nodes, but no more than where it ran, as several chunks may share one;
    without any of these those where it ran; a job that says only ncpus has one. Processors are those of select or
    nodes, or ncpus if that is more, else of where it ran.

    Raises
    ------
    TraceError
        if a number cannot be read, by line and field.
    """
    chunks = [
        (key, _chunks(values[key], place, key))
        for key in ("Resource_List.select", "Resource_List.nodes")
        if values.get(key)
    ]
    counted = chunks[0][1] if chunks else None
    numbers = {
        key: whole_number(values[f"Resource_List.{key}"], place, f"Resource_List.{key}")
        for key in ("nodect", "ncpus", "procs")
        if values.get(f"Resource_List.{key}")
    }
    if units == "nodes":
        asked = numbers.get("nodect") or (counted[0] if counted else 0)
        if ran > 0:
            return min(asked, ran) if asked else ran
        return asked or (1 if numbers else -1)
    asked = max(numbers.get("ncpus", 0), numbers.get("procs", 0), counted[1] if counted else 0)
    return asked or (ran if ran > 0 else numbers.get("nodect", -1))


def _chunks(text: str, place: str, key: str) -> tuple[int, int]:
    """Return nodes and processors of ``2:ncpus=24:mem=4gb+1:ncpus=12``, ``2:ppn=8+gpu`` or ``n1+n2``."""
    nodes = processors = 0
    for chunk in text.split("+"):
        parts = chunk.split(":")
        count = whole_number(parts[0], place, key) if parts[0].isdecimal() else 1
        each = 1
        for part in parts[1:]:
            name, is_number, value = part.partition("=")
            if is_number and name in ("ncpus", "ppn"):
                each = whole_number(value, place, key)
        nodes += count
        processors += count * max(each, 1)
        if nodes > _MOST_CHUNKS * 1000:
            raise fault(place, key, "is too large", "fewer nodes", text)
    return nodes, processors


def allocated_units(text: str, units: Units) -> int:
    """Return how many units exec_host says that a job got; -1 if it is empty.

    It is ``n1/0*24+n2/0*24`` (PBS Pro), ``n1/0+n1/1`` or ``n1/0-5,7`` (Torque): a host, and what of it.
    """
    if not text:
        return -1
    if units == "nodes":
        return len({part.partition("/")[0] for part in text.split("+")})
    processors = 0
    for part in text.split("+"):
        _, _, slots = part.partition("/")
        _, times, count = slots.partition("*")
        if times:
            processors += int(count) if count.isdecimal() and len(count) < 10 else 1
            continue
        for slot in slots.split(","):
            span = _SLOTS.fullmatch(slot)
            processors += max(int(span[2]) - int(span[1]) + 1, 1) if span else 1
    return processors
