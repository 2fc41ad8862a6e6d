"""Read Batsim's events files as outages."""

from collections.abc import Iterable

from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.traces.batsim.events import ExternalEvent, read_events
from pipistrelle.traces.files import PathText, trace_name
from pipistrelle.traces.outages.log import OutageLog
from pipistrelle.traces.outages.rows import Row, assemble

_BEGINS, _ENDS = "machine_unavailable", "machine_available"


def read_batsim_outages(path: PathText) -> OutageLog:
    """Read the outages of a Batsim events file; unfinished outages never end."""
    return outages_of_events(read_events(path), path)


def outages_of_events(events: Iterable[ExternalEvent], path: PathText) -> OutageLog:
    """Return the outages in events that are sorted by time.

    `path` gives the log's name. An outage lasts from a machine_unavailable to the next machine_available. Its line
    number is the position of its machine_unavailable among all events, from 1. Events of other types, repeated events
    and outages of length 0 are left out.
    """
    rows: list[Row] = []
    since: dict[int, Row] = {}
    other = 0
    for number, event in enumerate(events, 1):
        if event.type not in (_BEGINS, _ENDS):
            other += 1
            continue
        for machine in NodeSet.parse(event.resources):
            if event.type == _BEGINS:
                row = Row(number, str(machine), event.timestamp, float("inf"), _BEGINS)
                since.setdefault(machine, row)
            elif (begun := since.pop(machine, None)) is not None and event.timestamp > begun.down:
                begun.up = event.timestamp
                rows.append(begun)
    rows += [since[machine] for machine in sorted(since)]
    rows.sort(key=lambda row: (row.down, int(row.node)))
    notes = (f"{other:,} events of other types are left out",) if other else ()
    return assemble(rows, name=trace_name(path), source=str(path), format="Batsim", absolute=False, notes=notes)
