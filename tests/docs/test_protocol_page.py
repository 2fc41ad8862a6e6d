"""docs/reference/protocol.md: the session shown is a real one."""

import json
import re
from typing import get_args

import msgspec

from pipistrelle.platforms.description import homogeneous
from pipistrelle.protocol import codec
from pipistrelle.protocol.decisions import AnyDecision
from pipistrelle.protocol.events import AnyEvent, JobDescription, SimulationBeginsData
from pipistrelle.protocol.fields import WakeType
from pipistrelle.protocol.messages import Hello
from pipistrelle.protocol.session import negotiate
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.simulation.assembly import native_engine

PAGE = "docs/reference/protocol.md"


def test_the_conversation_is_a_real_one(section, json_values):
    """Given the scheduler's frames on the page, the server sends those of the page."""
    block = re.search(r"^```json\n(.*?)^```$", section(PAGE, "The loop"), flags=re.MULTILINE | re.DOTALL)
    assert block is not None
    said = json_values(block[1])
    hello = codec.decode_hello(json.dumps(said[0]).encode())
    assert isinstance(hello, Hello)
    shown = said[1]["data"]
    welcome = negotiate(hello.data, run_id=shown["run_id"], server=shown["server"])
    assert json.loads(codec.encode(welcome)) == said[1]

    job = Job("w0!1", submit=10.0, size=2, walltime=60.0, runtime=30.0, profile="30")
    begins, machine = SimulationBeginsData(nb_resources=4), homogeneous(4, "m")
    engine = native_engine(begins, machine, iter([job]), features=welcome.data.features)
    replies = [codec.decode_reply(json.dumps(frame).encode()) for frame in said[2::2]]
    assert replies.pop(0).reply_to == 0  # the reply to WELCOME
    heard = []
    while (notice := engine.advance()) is not None:
        heard.append(notice)
        engine.apply(replies.pop(0))
    heard.append(engine.end("completed"))

    assert [json.loads(codec.encode(notice)) for notice in heard] == said[3::2]
    assert replies == []


def tags(union: object) -> list[str]:
    """Return the wire names of a union's structs."""
    return [str(struct.__struct_config__.tag) for struct in get_args(union) if issubclass(struct, msgspec.Struct)]


def test_every_event_and_decision_is_named(section, table):
    """The two tables have every event and decision, and the section on the wake filter has what it can list."""
    named = [row[0].strip("`") for row in table(section(PAGE, "Events and decisions"))]

    assert sorted(named) == sorted(tags(AnyEvent) + tags(AnyDecision))
    assert all(f"`{name}`" in section(PAGE, "The wake filter") for name in get_args(WakeType))


def test_every_field_of_a_job_is_named(section, table):
    """The table of a job's fields has all of them, in their order, and marks those that are always present."""
    rows = table(section(PAGE, "A job"))
    named = [(name, row[1]) for row in rows for name in re.findall(r"`(\w+)`", row[0])]

    assert [name for name, _ in named] == list(JobDescription.__struct_fields__)
    needed = msgspec.structs.fields(JobDescription)
    assert [name for name, absent in named if absent == "always there"] == [one.name for one in needed if one.required]
