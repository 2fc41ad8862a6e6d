"""The scripts, in the order in which they are played: from what every scheduler meets to what few expect."""

from collections.abc import Sequence
from typing import Any, Final

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

_NO_HELLO: Final = "in this dialect nobody says HELLO"
_LEFT_OUT: Final = "the server leaves such jobs out before the run"
_NOT_KEPT: Final = "runs in this dialect are not resumed"
_NO_PREEMPTION: Final = "this dialect has no word for preemption"
_NO_WORD: Final = "this dialect has no word for a decision that is rejected"
#: what a server of another time, or another make, may add
_UNKNOWN: Final[dict[str, Any]] = {"x-conformance": {"deep": [1, None, {"type": "JOB_COMPLETED"}], "text": "\u00e9"}}
#: a job name with all that JSON can carry and shells, files and databases take amiss
_ODD_NAME: Final = "\u00fc\u4e16\U0001f987 'a\" \\ $(b) {c}%s;" + "n" * 4000
_LATE: Final = 5_000_000_000.0


def _jobs(
    *rows: tuple[str, float, int, float | None, float] | tuple[str, float, int, float | None, float, float],
) -> tuple[ScriptJob, ...]:
    return tuple(ScriptJob(*row) for row in rows)


# -- altered messages --------------------------------------------------------------------------------------------------


def _with_fields(frame: dict[str, Any]) -> dict[str, Any]:
    """Return a frame with unknown fields wherever an object's fields are the protocol's."""
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
    """Return a notice with an event of an unknown type before the others, where a job has ended."""
    return _inserted(frame, {"type": "COFFEE_IS_READY", "data": {"cups": 2}})


def _with_notification(frame: dict[str, Any]) -> dict[str, Any]:
    """Return the same with a NOTIFY of an unknown type, as Batsim forwards external events."""
    return _inserted(frame, {"type": "NOTIFY", "data": {"type": "coffee_is_ready", "cups": 2}})


def _inserted(frame: dict[str, Any], event: dict[str, Any]) -> dict[str, Any]:
    events = frame.get("events", [])
    ended = [one for one in events if one["type"] == "JOB_COMPLETED"]
    if not ended:
        return frame
    return {**frame, "events": [{"timestamp": ended[0]["timestamp"], **event}, *events]}


# -- altered replies ---------------------------------------------------------------------------------------------------


def _killer() -> Meddling:
    """Kill at 50 s all jobs that were started before, of which one has just ended by itself; one is named twice."""
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
    """Preempt at 30 s the job that was started first, and at 40 s, after a grace, the next attempt of it if it runs."""
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
    """Ask for calls that the scheduler has not asked for: two at an instant, one at that of an end, one long after."""
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
    """Make the first start of a job illegal, as if its units had just been lost."""
    done: list[float] = []

    def decide(notice: Notice, reply: Reply) -> Sequence[Decision]:
        decisions = list(reply.events)
        for place, one in enumerate(decisions):
            if isinstance(one, ExecuteJob) and not done:
                done.append(notice.now)
                decisions[place] = ExecuteJob(one.timestamp, ExecuteJobData(one.data.job_id, "1000000"))
        return decisions

    return Meddling(decide)


SCRIPTS: Final[tuple[Script, ...]] = (
    Script(
        name="one-job",
        situation="One job is submitted and ends: start it, and end when the simulation does, with exit code 0.",
        jobs=_jobs(("only", 10, 2, 60, 30)),
    ),
    Script(
        name="no-jobs",
        situation="The workload has no jobs: answer each notice with an empty reply.",
        jobs=(),
    ),
    Script(
        name="one-instant",
        situation="Jobs end and others are submitted at one instant, in one notice: what has ended is free for those.",
        jobs=_jobs(
            ("a", 0, 2, 20, 10),
            ("b", 0, 2, 20, 10),
            ("c", 10, 4, 20, 10),
            ("d", 20, 1, 20, 10),
            ("e", 20, 3, 20, 10),
            ("f", 20, 4, 20, 10),
        ),
    ),
    Script(
        name="larger-than-free",
        situation="A job needs more than is free, another all of the machine: they wait until there is room.",
        jobs=_jobs(("first", 0, 3, 100, 50), ("second", 1, 2, 100, 50), ("all", 2, 4, 100, 50), ("last", 3, 1, 40, 10)),
    ),
    Script(
        name="larger-than-the-machine",
        situation="A job needs more than the machine has: reject it, and go on with the others.",
        jobs=_jobs(("large", 0, 5, 100, 50), ("after", 0, 4, 100, 50)),
        absent={"native": _LEFT_OUT},
        rejects=frozenset({"large"}),
    ),
    Script(
        name="scattered",
        situation="Every other node is taken when a job of the other half comes: its units are in many pieces.",
        jobs=_jobs(
            *((f"n{number}", 0, 1, 100, 90 if number % 2 else 10) for number in range(64)), ("comb", 20, 32, 60, 10)
        ),
        nodes=64,
    ),
    Script(
        name="many-at-once",
        situation="2,000 jobs come with one notice, which has some hundred kilobytes.",
        jobs=_jobs(*((f"j{number}", 0, 1 + number % 8, 100, 10 + number % 7) for number in range(2000))),
        nodes=64,
    ),
    Script(
        name="walltimes",
        situation="A job is ended at its walltime, and another ends just before its own: both are over for good.",
        jobs=_jobs(("cut", 0, 4, 50, 80), ("just", 1, 4, 50, 49.999999), ("next", 2, 4, 50, 10)),
    ),
    Script(
        name="no-walltime",
        situation="A job has no walltime: nobody knows when it ends, and it may run for long.",
        jobs=_jobs(
            ("open", 0, 3, None, 1000), ("all", 1, 4, 100, 50), ("small", 2, 1, None, 100), ("one", 3, 1, 10, 5)
        ),
    ),
    Script(
        name="fractions",
        situation="Times have all the digits of a double: print each so that reading it gives the same.",
        jobs=_jobs(
            ("a", 0.1, 4, 1000.3, 0.2),
            ("b", 1 / 3, 4, 1000.7, 1e-7),
            ("c", 1234567.0000001, 4, 99.9, 1 / 7),
            ("d", 1234567.1000003, 4, 99.9, 2 / 3),
        ),
    ),
    Script(
        name="late",
        situation="The simulation goes on beyond 2^31 and 2^32 seconds, and a walltime is as long.",
        jobs=_jobs(("a", 0, 4, _LATE, _LATE / 2), ("b", _LATE, 4, 100, 50.25), ("c", _LATE + 1, 1, 100, 50.25)),
    ),
    Script(
        name="odd-names",
        situation="Names of jobs are long, have characters of any kind, or look like each other or like numbers.",
        jobs=_jobs(
            (_ODD_NAME, 0, 4, 20, 10),
            ("1", 1, 1, 20, 10),
            ("01", 1, 1, 20, 10),
            ("1.0", 1, 1, 20, 10),
            ("null", 2, 4, 20, 10),
            ("99999999999999999999", 3, 4, 20, 10),
            ("A", 4, 2, 20, 10),
            ("a", 4, 2, 20, 10),
        ),
    ),
    Script(
        name="unknown-fields",
        situation="Every object of the protocol has fields that nobody knows: ignore them.",
        jobs=_jobs(("a", 0, 3, 100, 50), ("b", 1, 2, 100, 50), ("c", 2, 1, 40, 10)),
        alter={"native": _with_fields, "batsim": _with_fields},
    ),
    Script(
        name="unknown-events",
        situation="An event is of a type that nobody knows: ignore it, or give up at once, and say so.",
        jobs=_jobs(("a", 0, 3, 100, 50), ("b", 1, 2, 100, 50), ("c", 2, 1, 40, 10)),
        alter={"native": _with_event, "batsim": _with_notification},
        may_give_up=True,
    ),
    Script(
        name="calls",
        situation="Calls come that were asked for on the scheduler's behalf, alone and beside other events.",
        jobs=_jobs(("a", 0, 4, 100, 20), ("b", 10, 4, 100, 20), ("c", 11, 1, 100, 5)),
        meddle=_caller,
    ),
    Script(
        name="kill-race",
        situation="Jobs are killed on the scheduler's behalf, and one has just ended by itself: each is over once.",
        jobs=_jobs(
            ("ends", 0, 1, 100, 50),
            ("runs", 0, 1, 100, 80),
            ("rests", 0, 2, 100, 90),
            ("a-small-one", 50, 1, 100, 20),
            ("all", 50, 4, 100, 10),
            ("more", 50, 4, 100, 10),
        ),
        meddle=_killer,
    ),
    Script(
        name="preempted",
        situation="A job is preempted on the scheduler's behalf: it comes back at once under another id, as a new job.",
        jobs=_jobs(("a", 0, 2, 100, 60), ("b", 0, 2, 100, 25), ("c", 30, 4, 100, 20), ("d", 40, 1, 100, 20)),
        absent={"batsim": _NO_PREEMPTION},
        meddle=_preempter,
        preempts=True,
    ),
    Script(
        name="rejection",
        situation="A start is rejected: the job waits still. Try again or reject it, or give up at once, and say so.",
        jobs=_jobs(("a", 0, 3, 100, 50), ("b", 1, 3, 100, 50)),
        absent={"batsim": _NO_WORD},
        meddle=_forger,
        may_give_up=True,
    ),
    Script(
        name="cancelled",
        situation="Jobs are cancelled while they wait: drop them if you are told; else they end as soon as they start.",
        jobs=_jobs(
            ("runs", 0, 4, 200, 100),
            ("waits", 10, 4, 200, 500, 20),
            ("behind", 20, 2, 200, 50),
            ("at-once", 40, 1, 200, 500, 0),
            ("at-an-end", 50, 4, 200, 500, 50),
            ("late", 60, 2, 200, 500, 70),
            ("last", 70, 4, 200, 10),
        ),
    ),
    Script(
        name="idle-node-fails",
        situation="A node fails that no job has, and is repaired: jobs wait for it, or are kept until it is up.",
        jobs=_jobs(("a", 0, 2, 100, 40), ("all", 5, 4, 100, 20), ("small", 6, 1, 30, 10)),
        outages=(Outage(3, 2.0, 200.0),),
    ),
    Script(
        name="job-loses-its-node",
        situation="A job loses a node and ends, and comes back at once under another id, as another job.",
        jobs=_jobs(("a", 0, 2, 100, 60), ("b", 0, 2, 100, 60), ("c", 10, 4, 100, 60)),
        outages=(Outage(0, 30.0, 45.0), Outage(1, 30.0, 50.0), Outage(2, 100.0, 101.0)),
    ),
    Script(
        name="failure-at-an-end",
        situation="A node fails at the instant at which its job is done, and another is repaired then.",
        jobs=_jobs(("a", 0, 2, 100, 50), ("b", 0, 1, 100, 50), ("c", 50, 4, 100, 20)),
        outages=(Outage(0, 50.0, 70.0), Outage(3, 10.0, 50.0)),
    ),
    Script(
        name="all-nodes-fail",
        situation="All nodes fail together, some twice: nothing is free until they are repaired.",
        jobs=_jobs(("a", 0, 4, 100, 50), ("b", 5, 2, 100, 30), ("c", 25, 1, 100, 30)),
        outages=(*(Outage(node, 20.0, 60.0) for node in range(4)), Outage(0, 61.0, 62.0), Outage(1, 61.0, 63.0)),
    ),
    Script(
        name="maintenance",
        situation="Maintenance of all nodes is announced, begins and ends, and one that is not known ahead follows.",
        jobs=_jobs(("a", 0, 2, 500, 80), ("b", 20, 4, 60, 30), ("c", 30, 4, 90, 30), ("d", 210, 2, 50, 40)),
        maintenance=("@100 +50s all", "@220 +10s 0-1 announced 0"),
    ),
    Script(
        name="repaired-in-maintenance",
        situation="A node that has failed is repaired while its maintenance goes on: it is up when both are over.",
        jobs=_jobs(("a", 0, 2, 90, 80), ("small", 110, 1, 30, 10), ("all", 111, 4, 30, 10)),
        outages=(Outage(1, 90.0, 130.0), Outage(2, 140.0, 160.0)),
        maintenance=("@100 +50s all",),
    ),
    Script(
        name="told-again",
        situation="A new process is told all of it once more, as when a run is resumed: it decides the same.",
        jobs=_jobs(
            *((f"j{number}", 7 * number, 1 + number % 4, 60 + number, 50 + number % 13) for number in range(30))
        ),
        outages=(Outage(3, 90.0, 140.0),),
        absent={"batsim": _NOT_KEPT},
        again=True,
    ),
    Script(
        name="taken-over",
        situation="A new process takes a run over in its middle: notice 2 tells who ran, who runs and who waits.",
        jobs=_jobs(*((f"j{number}", 7 * number, 1 + number % 4, 60 + number, 50) for number in range(30))),
        absent={"batsim": _NOT_KEPT},
        hand_over=True,
    ),
    Script(
        name="ends-early",
        situation="The server ends the simulation while jobs run and wait: end, and do not answer any more.",
        jobs=_jobs(("a", 0, 4, 100, 50), ("b", 1, 4, 100, 50), ("c", 60, 1, 100, 50)),
        until=60.0,
        ends="horizon",
    ),
    Script(
        name="refused",
        situation="The server refuses the HELLO: end, do not wait for a notice.",
        jobs=_jobs(("only", 10, 2, 60, 30)),
        absent={"batsim": _NO_HELLO},
        refuses=True,
    ),
)
