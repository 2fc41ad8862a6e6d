"""The conformance tests of library/scripts.toml, and functions that change messages."""

import tomllib
from collections.abc import Sequence
from importlib import resources
from typing import Any, Final

import msgspec

from pipistrelle.platforms.description import Platform
from pipistrelle.platforms.failures.outage import Outage
from pipistrelle.protocol.decisions import (
    CallMeLater,
    CallMeLaterData,
    Decision,
    ExecuteJob,
    ExecuteJobData,
    KillJob,
    KillJobData,
    PreemptJob,
    PreemptJobData,
)
from pipistrelle.protocol.messages import Notice, Reply
from pipistrelle.runs.conformance.script import Meddling, Script, ScriptJob

#: fields that a server of another version or implementation may add to messages
_UNKNOWN: Final[dict[str, Any]] = {"x-conformance": {"deep": [1, None, {"type": "JOB_COMPLETED"}], "text": "\u00e9"}}
#: a job name with every kind of character that JSON allows and that shells, files and databases mishandle
_ODD_NAME: Final = "\u00fc\u4e16\U0001f987 'a\" \\ $(b) {c}%s;" + "n" * 4000


# -- changed messages --------------------------------------------------------------------------------------------------


def _with_fields(frame: dict[str, Any]) -> dict[str, Any]:
    """Return a message with unknown fields in every object that the protocol defines."""
    altered = {**_UNKNOWN, **frame, "zz": 1}
    if isinstance(frame.get("data"), dict):
        altered["data"] = {**frame["data"], **_UNKNOWN}
    if "events" in frame:
        altered["events"] = [_event_with_fields(event) for event in frame["events"]]
    return altered


def _event_with_fields(event: dict[str, Any]) -> dict[str, Any]:
    data = {**event["data"], **_UNKNOWN}
    if isinstance(data.get("job"), dict):
        data["job"] = {**_UNKNOWN, **data["job"]}
    return {**event, "data": data, "note": None}


def _with_event(frame: dict[str, Any]) -> dict[str, Any]:
    """Insert an unknown event before all events of a notice that reports a job's end."""
    return _inserted(frame, {"type": "COFFEE_IS_READY", "data": {"cups": 2}})


def _with_notification(frame: dict[str, Any]) -> dict[str, Any]:
    """Insert a NOTIFY event of an unknown type into a notice that reports a job's end.

    Batsim sends such events for external events.
    """
    return _inserted(frame, {"type": "NOTIFY", "data": {"type": "coffee_is_ready", "cups": 2}})


def _inserted(frame: dict[str, Any], event: dict[str, Any]) -> dict[str, Any]:
    events = frame.get("events", [])
    ended = [one for one in events if one["type"] == "JOB_COMPLETED"]
    if not ended:
        return frame
    return {**frame, "events": [{"timestamp": ended[0]["timestamp"], **event}, *events]}


# -- changed replies ---------------------------------------------------------------------------------------------------


def _killer() -> Meddling:
    """Return a change of replies that kills all started jobs at 50 s.

    The decision also names a job that has just ended, and it names the first started job twice.
    """
    started: list[str] = []

    def decide(notice: Notice, reply: Reply) -> Sequence[Decision]:
        if notice.now < 50.0:
            started.extend(one.data.job_id for one in reply.events if isinstance(one, ExecuteJob))
        elif started:
            kill = KillJob(notice.now, KillJobData((*started, started[0])))
            started.clear()
            return [*reply.events, kill]
        return reply.events

    return Meddling(decide)


def _preempter() -> Meddling:
    """Return a change of replies that preempts the first job at 30 s.

    At 40 s, preempt the first of the jobs started since, with a grace period.
    """
    started: list[str] = []

    def decide(notice: Notice, reply: Reply) -> Sequence[Decision]:
        decisions = list(reply.events)
        if notice.now in (30.0, 40.0) and started:
            grace = 0.0 if notice.now == 30.0 else 5.0
            decisions.append(PreemptJob(notice.now, PreemptJobData(started[0], grace=grace)))
            started.clear()
        started.extend(one.data.job_id for one in reply.events if isinstance(one, ExecuteJob))
        return decisions

    return Meddling(decide)


def _caller() -> Meddling:
    """Return a change of replies that requests wake-up calls (CALL_ME_LATER).

    There are two calls at one instant, one at a job's end, and one much later.
    """
    done: list[float] = []

    def decide(notice: Notice, reply: Reply) -> Sequence[Decision]:
        if done or not reply.events:
            return reply.events
        done.append(notice.now)
        calls = [(5.0, "conformance"), (5.0, ""), (20.0, "end"), (25.0, "")]
        wanted = [CallMeLaterData(notice.now + after, name) for after, name in calls]
        return [*reply.events, *(CallMeLater(notice.now, call) for call in wanted)]

    return Meddling(decide)


def _forger() -> Meddling:
    """Return a change of replies that makes the first start of a job illegal.

    The start names a unit that does not exist.
    """
    done: list[float] = []

    def decide(notice: Notice, reply: Reply) -> Sequence[Decision]:
        decisions = list(reply.events)
        for place, one in enumerate(decisions):
            if isinstance(one, ExecuteJob) and not done:
                done.append(notice.now)
                decisions[place] = ExecuteJob(one.timestamp, ExecuteJobData(one.data.job_id, "1000000"))
        return decisions

    return Meddling(decide)


#: {name in scripts.toml: function that changes messages, or replies}
_ALTER: Final = {"with_fields": _with_fields, "with_event": _with_event, "with_notification": _with_notification}
_MEDDLE: Final = {"killer": _killer, "preempter": _preempter, "caller": _caller, "forger": _forger}


def _generated(name: str) -> list[tuple[str, float, int, float, float]]:
    if name == "scattered":
        return [
            *((f"n{number}", 0, 1, 100, 90 if number % 2 else 10) for number in range(64)),
            ("comb", 20, 32, 60, 10),
        ]
    if name == "many":
        return [(f"j{number}", 0, 1 + number % 8, 100, 10 + number % 7) for number in range(2000)]
    rest = 13 if name == "uneven" else 1
    return [(f"j{number}", 7 * number, 1 + number % 4, 60 + number, 50 + number % rest) for number in range(30)]


def _job(
    name: str, submit: float, size: Any, walltime: Any, runtime: float, cancelled_after: float | None = None
) -> ScriptJob:
    """Return a job of a conformance test; ``size`` is a number of nodes or a request."""
    nodes, request = (1, size) if isinstance(size, dict) else (size, None)
    limit = None if walltime == "none" else walltime
    return ScriptJob(_ODD_NAME if name == "odd" else name, submit, nodes, limit, runtime, cancelled_after, request)


def _script(told: dict[str, Any]) -> Script:
    rows = _generated(told["jobs"]) if isinstance(told["jobs"], str) else told["jobs"]
    made: dict[str, Any] = {
        "jobs": tuple(_job(*row) for row in rows),
        "outages": tuple(Outage(*outage) for outage in told.get("outages", ())),
        "maintenance": tuple(told.get("maintenance", ())),
        "alter": {dialect: _ALTER[name] for dialect, name in told.get("alter", {}).items()},
        "meddle": _MEDDLE[told["meddle"]] if "meddle" in told else None,
        "rejects": frozenset(told.get("rejects", ())),
    }
    if "platform" in told:
        made["platform"] = msgspec.convert(told["platform"] | {"name": "machine"}, Platform)
        made["absent"] = {"batsim": "this dialect cannot say what a job takes of a node"}
    return Script(**(told | made))


_FILE: Final = resources.files("pipistrelle.runs.conformance") / "library" / "scripts.toml"
SCRIPTS: Final = tuple(map(_script, tomllib.loads(_FILE.read_text(encoding="utf-8"))["script"]))
