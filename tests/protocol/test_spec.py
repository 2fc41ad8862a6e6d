"""SPEC.md against the code: every example decodes, every table is complete, the sample session runs as written."""

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from pipistrelle.platforms.description import homogeneous
from pipistrelle.protocol import codec
from pipistrelle.protocol.decisions import AnyDecision, Malformed
from pipistrelle.protocol.events import (
    AnyEvent,
    ClassInfo,
    JobDescription,
    NodeGroupInfo,
    PlatformInfo,
    PoolInfo,
    SimulationBegins,
    TopologyInfo,
)
from pipistrelle.protocol.fields import (
    FEATURES,
    PROTOCOL_OLDEST,
    PROTOCOL_VERSION,
    EndReason,
    Feature,
    JobState,
    RefusalCode,
    RejectionCode,
    WakeType,
)
from pipistrelle.protocol.messages import (
    HelloData,
    Notice,
    Refused,
    ReplyFrame,
    Restore,
    RestoreData,
    Save,
    SavedData,
    WakeAtSubmission,
    Welcome,
    WelcomeData,
)
from pipistrelle.protocol.session import TRANSITIONS, SchedulerSession, ServerSession
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.protocol.units.text import LARGEST_UNIT
from pipistrelle.runs.execution import DECISION_TIMEOUT, HELLO_TIMEOUT
from pipistrelle.server.engine.agenda import (
    CALL,
    CANCELLATION,
    DECISION,
    END,
    FAILURE,
    MAINTENANCE,
    PREEMPTION,
    REPAIR,
    REQUEUE,
    SUBMISSION,
)
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.stalls import MAX_FRUITLESS
from pipistrelle.server.simulation.assembly import native_engine

SPEC = (Path(__file__).parents[2] / "protocol" / "SPEC.md").read_text(encoding="utf-8")
#: (kind, text, line) of every JSON example
BLOCKS = [
    (match[1], match[2], SPEC.count("\n", 0, match.start()) + 1)
    for match in re.finditer(r"^```json([^\n]*)\n(.*?)^```$", SPEC, re.MULTILINE | re.DOTALL)
]
EVENTS = {str(struct.__struct_config__.tag): struct for struct in get_args(AnyEvent)}
DECISIONS = {str(struct.__struct_config__.tag): struct for struct in get_args(AnyDecision)}


def in_notice(event: str) -> bytes:
    """Return a notice's frame with one event."""
    return f'{{"seq": 1, "now": 1e9, "events": [{event}]}}'.encode()


def in_reply(decision: str) -> bytes:
    """Return a reply's frame with one decision."""
    return f'{{"reply_to": 1, "now": 0.0, "events": [{decision}]}}'.encode()


def malformed_places(frame: bytes) -> list[int]:
    """Return which decisions of a reply cannot be read."""
    return [place for place, item in enumerate(codec.decode_reply(frame).events) if isinstance(item, Malformed)]


def check_example(kind: str, text: str) -> None:
    """Decode an example as the kind that its block names."""
    frame = text.encode()
    if kind == "hello":
        codec.decode_hello(frame)
    elif kind in ("welcome", "refused"):
        assert isinstance(codec.decode_greeting(frame), Welcome if kind == "welcome" else Refused)
    elif kind == "notice":
        assert isinstance(codec.decode_notice(frame), Notice)
    elif kind in ("save", "restore"):
        assert isinstance(codec.decode_notice(frame), Save if kind == "save" else Restore)
    elif kind == "saved":
        assert isinstance(codec.decode_saved(frame), SavedData)
    elif kind == "event":
        assert isinstance(codec.decode_notice(in_notice(text)), Notice)
    elif kind == "topology":
        msgspec.json.decode(frame, type=TopologyInfo)
    elif kind in ("reply", "decision"):
        assert not malformed_places(frame if kind == "reply" else in_reply(text))
    elif kind.startswith("malformed-"):
        assert malformed_places(frame) == [int(place) for place in kind.split("-")[1:]]
    else:
        assert kind == "connection", f"what is a '{kind}'?"
        assert set(json.loads(text)) == {"endpoint", "protocol"}


def section(heading: str) -> str:
    """Return the text under a heading, down to the next one of any level."""
    found = re.search(rf"^#+ {re.escape(heading)}$(.*?)(?=^#+ |\Z)", SPEC, re.MULTILINE | re.DOTALL)
    assert found, f"SPEC.md has no section '{heading}'"
    return found[1]


def tables(text: str) -> list[list[list[str]]]:
    """Return the tables in a text as rows of cells, with heads, without rulers."""
    found: list[list[list[str]]] = []
    inside = False
    for line in text.splitlines():
        if line.startswith("|"):
            if not inside:
                found.append([])
            cells = [cell.strip().strip("`") for cell in line.strip("|").split(" | ")]
            if not set(line) <= set("|-"):
                found[-1].append(cells)
        inside = line.startswith("|")
    return found


def column(heading: str, head: str) -> list[str]:
    """Return the first column of the table in a section whose head begins with ``head``."""
    rows = next(rows for rows in tables(section(heading)) if rows[0][0] == head)
    return [row[0] for row in rows[1:]]


def test_every_example_names_its_kind() -> None:
    """Every JSON block names its kind."""
    assert len(BLOCKS) > 40
    assert not [line for kind, _, line in BLOCKS if not re.fullmatch(r" \S+", kind)]


@pytest.mark.parametrize(("kind", "text"), [pytest.param(k[1:], t, id=f"line {n}:{k}") for k, t, n in BLOCKS])
def test_every_example_decodes(kind: str, text: str) -> None:
    """Each JSON example decodes as its kind."""
    check_example(kind, text)


def test_every_type_has_its_section_and_example() -> None:
    """Each event and each decision has its own section, with an example of that type."""
    for kind, types in (("event", EVENTS), ("decision", DECISIONS)):
        for name in types:
            found = re.findall(rf"```json {kind}\n(.*?)```", section(name), re.DOTALL)
            assert [json.loads(text)["type"] for text in found] == [name]


def documented() -> Iterator[Any]:
    """Yield (section, number of its table, struct) for each table of fields."""
    yield pytest.param("Handshake", 0, HelloData, id="HELLO")
    yield pytest.param("Handshake", 1, WelcomeData, id="WELCOME")
    yield pytest.param("Notice", 0, Notice, id="notice")
    yield pytest.param("Reply", 0, ReplyFrame, id="reply")
    yield pytest.param("Wake conditions", 0, WakeAtSubmission, id="wake-condition")
    yield pytest.param("State", 0, SavedData, id="SAVED")
    yield pytest.param("State", 1, RestoreData, id="RESTORE")
    yield pytest.param("The job object", 0, JobDescription, id="job")
    yield pytest.param("The platform object", 0, PlatformInfo, id="platform")
    yield pytest.param("The pool object", 0, PoolInfo, id="pool")
    yield pytest.param("The class object", 0, ClassInfo, id="class")
    yield pytest.param("The group object", 0, NodeGroupInfo, id="group")
    yield pytest.param("The topology object", 0, TopologyInfo, id="topology")
    for name, struct in (EVENTS | DECISIONS).items():
        data = next(field for field in msgspec.structs.fields(struct) if field.name == "data")
        yield pytest.param(name, 0, data.type, id=name)


@pytest.mark.parametrize(("heading", "number", "struct"), list(documented()))
def test_every_field_is_documented(heading: str, number: int, struct: type[msgspec.Struct]) -> None:
    """The table has exactly the struct's fields, and says which are required and the others' defaults."""
    fields = msgspec.structs.fields(struct)
    found = [rows for rows in tables(section(heading)) if rows[0] == ["field", "type", "default", "meaning"]]
    if not fields:
        assert "It has no fields." in section(heading)
        return

    expected = {}
    for field in fields:
        if field.required:
            expected[field.name] = "required"
        else:
            value = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
            expected[field.name] = json.dumps(value, separators=(",", ":"))
    assert {row[0]: row[2] for row in found[number][1:]} == expected


def test_the_state_table_is_the_sessions() -> None:
    """The table has exactly the session's transitions, each from the side that sends that message."""
    rows = tables(section("The conversation"))[0]
    senders = dict.fromkeys(("HELLO", "REPLY", "LEAVING", "SAVED"), "scheduler")

    assert rows[0] == ["state", "message", "from", "next state"]
    assert sorted(map(tuple, rows[1:])) == sorted(
        (state, kind, senders.get(kind, "server"), after)
        for state, kinds in TRANSITIONS.items()
        for kind, after in kinds.items()
    )


@pytest.mark.parametrize(
    ("heading", "head", "literal"),
    [
        ("Rejection codes", "code", RejectionCode),
        ("Handshake", "code", RefusalCode),
        ("Handshake", "feature", Feature),
        ("SIMULATION_ENDS", "reason", EndReason),
        ("JOB_COMPLETED", "job_state", JobState),
    ],
)
def test_every_code_is_explained(heading: str, head: str, literal: Any) -> None:
    """The table has exactly the codes that a message can carry."""
    assert sorted(column(heading, head)) == sorted(get_args(literal))


def test_the_wake_types_are_named() -> None:
    """The section on the filter names the types that may be listed; all other events always wake."""
    text = section("Wake filter").replace("\n  ", " ")
    always = re.search(r"^- [^-]*? always wake the scheduler: (.*?)\.", text, re.MULTILINE)

    assert always
    assert set(re.findall(r"`([A-Z_]+)`", text.split("After this reply")[0])) == set(get_args(WakeType))
    assert set(re.findall(r"[A-Z_]{2,}", always[1])) == set(EVENTS) - set(get_args(WakeType))


def test_the_version_is_the_codes() -> None:
    """Title, text and history name the version that the package speaks; the example of a refusal fits it."""
    assert SPEC.startswith(f"# The protocol `pipistrelle/{PROTOCOL_VERSION}`\n")
    assert f"native protocol, version **{PROTOCOL_VERSION}**" in " ".join(SPEC.split())
    assert re.findall(r"^- \*\*(\d+)\*\*", section("Changed in"), re.MULTILINE)[0] == str(PROTOCOL_VERSION)
    assert f"the server speaks {PROTOCOL_OLDEST} to {PROTOCOL_VERSION}," in section("Handshake")


def test_the_numbers_are_the_codes() -> None:
    """Limits in the text are the limits in the code."""
    assert f"{codec.MAX_FRAME_BYTES:,} bytes" in section("Frames")
    assert f"at most {len(str(LARGEST_UNIT))} digits" in section("Sets of units")
    assert section("The end").count(f"{MAX_FRUITLESS:,} notices in a row") == 2
    assert f"{MAX_FRUITLESS:,} outages passed" in section("The end")
    assert f"waits {HELLO_TIMEOUT:g} s for a HELLO" in section("Liveness")
    assert f"waits {DECISION_TIMEOUT:g} s for each reply" in section("Liveness")


def test_the_order_of_an_instant_is_the_agendas() -> None:
    """The list names the kinds of events in the order of the classes in the engine's agenda."""
    places = {"Ends": END, "Failures": FAILURE, "Repairs": REPAIR, "Maintenance": MAINTENANCE}
    places |= {"Preemptions": PREEMPTION, "Submissions": REQUEUE}
    listed = re.findall(r"^\d\. (\w+):", section("Order"), re.MULTILINE)

    last = [SUBMISSION, CANCELLATION, CALL, DECISION]

    assert listed == [*places, "Cancellations", "Calls"]
    assert sorted([*places.values(), *last]) == [*places.values(), *last]


def test_features_bring_their_events() -> None:
    """The sections on nodes and maintenance exist, and the text on the feature names each of these events."""
    named = set(re.findall(r"\b[A-Z]+_[A-Z]+\b", section("Failures and maintenance").split("**Without it**")[0]))

    assert {name for name in EVENTS if name.startswith(("NODES_", "MAINTENANCE_"))} <= named


def test_the_sets_of_units_are_sets_of_units() -> None:
    """The examples of the notation are read as such."""
    examples = re.findall(r'`"([^"]*)"`', section("Sets of units"))

    assert [str(NodeSet.parse(text)) for text in examples] == examples == ["0-3 8-19", "7"]


def transcript() -> Iterator[tuple[str, bytes]]:
    """Yield (kind, frame) of the sample session at the end."""
    start = SPEC.count("\n", 0, SPEC.index("<!-- transcript")) + 1
    stop = SPEC.count("\n", 0, SPEC.index("\n## Schema and vectors"))
    for kind, text, line in BLOCKS:
        if start < line < stop:
            yield kind.strip(), text.encode()


def test_the_sample_session_runs_as_written() -> None:
    """With the real engine and both sessions, the sample session runs exactly as written."""
    rows = tables(section("A whole conversation"))[0]
    jobs = [
        Job(name, float(submit), int(res), float(walltime), float(runtime), "")
        for name, submit, res, walltime, runtime in rows[1:]
    ]
    frames = list(transcript())
    first = codec.decode_notice(frames[3][1])
    assert isinstance(first, Notice)
    assert isinstance(first.events[0], SimulationBegins)
    server, scheduler = ServerSession(), SchedulerSession()
    scheduler.send_hello(server.receive_hello(frames[0][1]).data)
    welcome = scheduler.receive_greeting(frames[1][1])
    assert isinstance(welcome, Welcome)
    server.greet(welcome)
    begins = first.events[0].data
    machine = homogeneous(begins.nb_resources, "m")
    engine = native_engine(begins, machine, iter(jobs), features=welcome.data.features)

    assert [kind for kind, _ in frames] == ["hello", "welcome", *["reply", "notice"] * ((len(frames) - 2) // 2)]
    for (_, reply), (_, notice) in list(pairwise(frames))[2::2]:
        answer = server.receive_reply(reply)
        scheduler.send_reply(answer)
        if answer.reply_to:
            engine.apply(answer)
        told = engine.advance() or engine.end("completed")
        assert scheduler.receive_notice(notice) == told
        server.send_notice(told)
    assert (server.state, scheduler.state) == ("CLOSED", "CLOSED")


def test_the_features_are_in_the_codes_order() -> None:
    """A WELCOME with all features lists them in the order of the table."""
    assert column("Handshake", "feature") == list(FEATURES)
