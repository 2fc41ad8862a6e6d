"""Read Batsim's external events, one JSON object per line."""

from typing import Any, Final

import msgspec

from pipistrelle.protocol.base.errors import did_you_mean, quoted
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.protocol.units.text import NodeSetError
from pipistrelle.traces.batsim.json_faults import depth_fault, shape_fault
from pipistrelle.traces.errors import TraceError, line_fault, out_of_range
from pipistrelle.traces.files import PathText, open_trace
from pipistrelle.traces.workload import LARGEST, decimal_text

#: events that change the machine, in their order at equal times; all other events follow
MACHINE_EVENTS: Final = ("machine_available", "machine_unavailable")


class ExternalEvent(msgspec.Struct, frozen=True):
    """An external event of a Batsim events file.

    Attributes:
        timestamp: seconds after time 0.
        type: one of `MACHINE_EVENTS`, or any other text.
        resources: the machines of a machine event as intervals (``"0-3 8"``), otherwise empty.
        raw: the event's complete JSON object, for schedulers that read other events.
    """

    timestamp: float
    type: str
    resources: str
    raw: dict[str, Any]


class _Event(msgspec.Struct):
    timestamp: float
    type: str


class _MachineEvent(msgspec.Struct):
    resources: str


_EVENT = msgspec.json.Decoder(_Event)
_MACHINE_EVENT = msgspec.json.Decoder(_MachineEvent)
_OBJECT = msgspec.json.Decoder(dict[str, Any])


def read_events(path: PathText, *, unknown: bool = True) -> tuple[ExternalEvent, ...]:
    """Read the external events of a Batsim file, in the order in which they happen.

    The lines may be in any order; blank lines are skipped, and the file may be empty. At equal times, events that make
    machines available come first, then events that make machines unavailable, then all others. Events of one kind keep
    their file order.

    Args:
        unknown: whether to accept unknown event types. Batsim rejects them by default.
    """
    events: list[ExternalEvent] = []
    with open_trace(path, may_be_empty=True, what="a file of events") as stream:
        for number, line in enumerate(stream, start=1):
            text = line.removeprefix(b"\xef\xbb\xbf").strip()
            if text:
                events.append(_parse(text, f"{path}, line {number}", unknown))
    return tuple(sorted(events, key=_order))


def _order(event: ExternalEvent) -> tuple[float, int]:
    place = MACHINE_EVENTS.index(event.type) if event.type in MACHINE_EVENTS else len(MACHINE_EVENTS)
    return event.timestamp, place


def _parse(text: bytes, where: str, unknown: bool) -> ExternalEvent:
    try:
        raw = _OBJECT.decode(text)
        event = _EVENT.decode(text)
        resources = _machines(_MACHINE_EVENT.decode(text), where) if event.type in MACHINE_EVENTS else ""
    except msgspec.ValidationError as error:
        raise shape_fault(error, f"{where}, $") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        said = text.decode("utf-8", "replace")
        raise line_fault(where, "is not valid JSON", "one JSON object per line", said, "Correct the line.") from error
    except RecursionError as error:
        raise depth_fault(where) from error
    if not unknown and event.type not in MACHINE_EVENTS:
        raise TraceError(
            f"unknown type {quoted(event.type)}",
            where=f"{where}, $.type",
            hint=f"{did_you_mean(event.type, list(MACHINE_EVENTS))} Others can be forwarded to the scheduler.",
        )
    if not 0 <= event.timestamp <= LARGEST:
        place, expected = f"{where}, $.timestamp", f"seconds from 0 to {decimal_text(LARGEST)}"
        raise out_of_range("timestamp", place, expected, decimal_text(event.timestamp), "Correct the value.")
    return ExternalEvent(event.timestamp + 0.0, event.type, resources, raw)


def _machines(event: _MachineEvent, where: str) -> str:
    """Return the machines of an event as an interval set."""
    try:
        machines = NodeSet.parse(event.resources)
    except NodeSetError as error:
        raise error.at(f"{where}, $.resources", TraceError) from error
    if not machines:
        raise TraceError(
            "names no resources", where=f"{where}, $.resources", expected="intervals such as '0-3 8'", hint="Name them."
        )
    return str(machines)
