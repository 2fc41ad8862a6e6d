"""Types, field names, keywords and example messages of the protocol.

The types are those of events and decisions. Most are read from the protocol's own definitions, so additions to the
protocol are tested at once.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, get_args

from pipistrelle.protocol import codec, schema
from pipistrelle.protocol.batsim import notices, reply_reader
from pipistrelle.protocol.events import AnyEvent
from pipistrelle.protocol.fields import FEATURES, TAKEOVER

#: taken from the source tree, because an installed package may lack them
VECTORS: Final = Path(__file__).resolve().parents[2] / "protocol" / "vectors"
#: events and decisions of the native dialect
EVENTS: Final = tuple(str(struct.__struct_config__.tag) for struct in get_args(AnyEvent))
DECISIONS: Final = codec.DECISION_TYPES
#: events and decisions of Batsim's dialect
BATSIM_EVENTS: Final = notices.EVENT_TYPES
BATSIM_DECISIONS: Final = reply_reader.DECISION_TYPES
#: features that a HELLO may name
HELLO_FEATURES: Final = (*FEATURES, TAKEOVER)
_PROGRESS: Final = {"profile": "each", "progress": 0.25, "current_task_index": 0, "current_task": None}
_JOB: Final = {"id": "w0!77", "subtime": 0.0, "res": 2, "walltime": 9.0, "profile": "each"}
#: {type: example data of this event or decision in Batsim's dialect}; the other types occur in ordinary runs
BATSIM_DATA: Final[dict[str, Any]] = {
    "JOB_KILLED": {"job_ids": ["w0!1", "w0!2"], "job_progress": {"w0!1": _PROGRESS}},
    "REQUESTED_CALL": {},
    "RESOURCE_STATE_CHANGED": {"resources": "0 2-3", "state": "1"},
    "QUERY": {"requests": {"estimate_waiting_time": {"job_id": "w0!77", "job": _JOB}}},
    "ANSWER": {"consumed_energy": 12500.0},
    "NOTIFY": {"type": "event_machine_unavailable", "resources": "1"},
    "REJECT_JOB": {"job_id": "w0!1"},
    "SET_JOB_METADATA": {"job_id": "w0!1", "metadata": "seen"},
}
#: types that neither dialect has; some are from older versions
STRANGE_KINDS: Final = ("SUBMIT_JOB", "SUBMIT_PROFILE", "execute_job", "job_submitted", "")
#: fields of Batsim's messages, for which there is no schema
_BATSIM_FIELDS: Final = (
    *("mapping", "profile", "resources", "state", "job_state", "kill_reason", "requests", "nb_computing_resources"),
    *("compute_resources", "profiles", "workload_name", "profile_name", "additional_io_job", "storage_mapping"),
)


@cache
def field_names() -> tuple[str, ...]:
    """Return field names of all native and some Batsim messages, and one unknown name."""
    found = {name for node in _nodes(schema.build()) for name in node.get("properties", ())}
    return (*sorted(found | set(_BATSIM_FIELDS)), "x")


@cache
def words() -> tuple[str, ...]:
    """Return all keywords that the native dialect's schema lists as values of a field."""
    found: set[str] = set()
    for node in _nodes(schema.build()):
        found.update(word for word in node.get("enum", ()) if isinstance(word, str))
    return tuple(sorted(found))


@cache
def vectors(kind: str) -> tuple[bytes, ...]:
    """Return the valid example frames of a kind: hello, greeting, notice or reply."""
    return tuple(path.read_bytes() for path in sorted(VECTORS.glob(f"{kind}-valid-*.json")))


@cache
def with_kind(frame_kind: str, kind: str) -> tuple[bytes, ...]:
    """Return the valid example frames with an event or decision of type ``kind``.

    ``frame_kind`` is the kind of frame, such as ``notice``.
    """
    return tuple(frame for frame in vectors(frame_kind) if kind in kinds_in(frame))


def least_tried(kinds: Iterable[str], tried: Mapping[str, int]) -> str:
    """Return the type with the smallest count in ``tried``; break ties by name."""
    return min(kinds, key=lambda kind: (tried.get(kind, 0), kind))


def dated(frame: bytes, now: float, **head: object) -> bytes:
    """Return a notice or reply with all its times set to ``now`` (s).

    The keyword arguments ``head`` replace fields at the top level. Frames without a time are returned unchanged.
    """
    message = json.loads(frame)
    if "now" not in message:
        return frame
    events = [{**event, "timestamp": now} for event in message.get("events", ())]
    return json.dumps({**message, **head, "now": now, "events": events}).encode()


def kinds_in(frame: bytes) -> list[str]:
    """Return the types of the events or decisions in a frame, in order."""
    return [event["type"] for event in json.loads(frame).get("events", ())]


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Yield all JSON objects in a JSON value, at any depth."""
    if isinstance(tree, dict):
        yield tree
        for value in tree.values():
            yield from _nodes(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _nodes(value)
