"""The published accept/reject vectors: codec and schema give the verdict in each file's name."""

import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest
from jsonschema import Draft202012Validator

from pipistrelle.protocol import codec
from pipistrelle.protocol.base.errors import RemoteProtocolError
from pipistrelle.protocol.decisions import AnyDecision, Malformed
from pipistrelle.protocol.events import AnyEvent
from pipistrelle.protocol.messages import Reply, Saved
from pipistrelle.protocol.schema import build

FOLDER = Path(__file__).parents[2] / "protocol" / "vectors"
FILES = sorted(FOLDER.iterdir())
DECODERS = {
    "hello": codec.decode_hello,
    "greeting": codec.decode_greeting,
    "notice": codec.decode_notice,
    "reply": codec.decode_reply,
    "saved": lambda frame: Saved(codec.decode_saved(frame)),
}
SCHEMAS = {
    "hello": ["Hello"],
    "greeting": ["Welcome", "Refused"],
    "notice": ["Notice", "Refused", "Save", "Restore"],
    "reply": ["Reply"],
    "saved": ["Saved"],
}
SCHEMA = build()
#: types whose fields are all required have no fuller form
WITHOUT_FULL_FORM = {
    "CANCEL_CALL",
    "JOB_CANCELLED",
    "JOB_STARTED",
    "NODES_REPAIRED",
    "MAINTENANCE_BEGINS",
    "MAINTENANCE_ENDS",
}
#: rejected for what JSON Schema cannot see: how a number or a character was written
BEYOND_SCHEMA = {
    "hello-invalid-protocol-with-fraction",
    "reply-invalid-reply-to-with-fraction",
    "reply-invalid-unpaired-surrogate",
}


def vectors(verdict: str) -> Any:
    """Return the parameters (kind, frame) of the files with a verdict."""
    files = [path for path in FILES if path.name.split("-")[1] == verdict]
    return [pytest.param(path.name.split("-")[0], path.read_bytes(), id=path.stem) for path in files]


def test_names_say_what_the_files_are() -> None:
    """Every file is KIND-VERDICT-WHAT.json; there are many, and each kind is both accepted and rejected."""
    assert len(FILES) >= 60
    assert not [
        path.name
        for path in FILES
        if not re.fullmatch(
            r"((hello|greeting|notice|reply|saved)-(in)?valid|reply-malformed)-[a-z0-9-]+\.json", path.name
        )
    ]
    seen = {tuple(path.name.split("-")[:2]) for path in FILES}
    assert {(kind, verdict) for kind in DECODERS for verdict in ("valid", "invalid")} <= seen


@pytest.mark.parametrize("union", [AnyEvent, AnyDecision], ids=["events", "decisions"])
def test_every_type_has_its_vectors(union: Any) -> None:
    """Each event and decision has a vector with its required fields only, and one with all its fields."""
    frame = "notice" if union is AnyEvent else "reply"
    for struct in get_args(union):
        tag = str(struct.__struct_config__.tag)
        stem = tag.lower().replace("_", "-")
        forms = ["minimal"] if tag in WITHOUT_FULL_FORM else ["minimal", "full"]
        for form in forms:
            path = FOLDER / f"{frame}-valid-{stem}-{form}.json"
            assert path.is_file(), path.name
            assert tag in {event["type"] for event in json.loads(path.read_text(encoding="utf-8"))["events"]}


@pytest.mark.parametrize(("kind", "frame"), vectors("valid"))
def test_valid_frames_are_accepted_and_survive(kind: str, frame: bytes) -> None:
    """A valid frame decodes, and is the same after encoding and decoding again, to the last bit."""
    message = DECODERS[kind](frame)

    assert not (isinstance(message, Reply) and any(isinstance(item, Malformed) for item in message.events))
    again = DECODERS[kind](codec.encode(message))
    assert again == message
    assert codec.encode(again) == codec.encode(message)


@pytest.mark.parametrize(("kind", "frame"), vectors("invalid"))
def test_invalid_frames_are_refused(kind: str, frame: bytes) -> None:
    """An invalid frame is rejected as a whole, with a message of one line that says what was expected."""
    with pytest.raises(RemoteProtocolError) as caught:
        DECODERS[kind](frame)

    assert caught.value.expected
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("path", [path for path in FILES if "-malformed-" in path.name], ids=lambda path: path.stem)
def test_malformed_decisions_are_rejected_alone(path: Path) -> None:
    """One decision of the reply is rejected with the code in the file's name; the others are read."""
    events = codec.decode_reply(path.read_bytes()).events
    bad = [item for item in events if isinstance(item, Malformed)]

    assert len(bad) == 1
    assert bad[0].code == ("unknown_type" if "-malformed-unknown-type" in path.stem else "malformed")
    assert f"`$.events[{list(events).index(bad[0])}]" in bad[0].message
    assert bad[0].timestamp == 10.0


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_schema_agrees(path: Path) -> None:
    """Every JSON vector is valid by the schema exactly if its name says so, except for what no schema can express."""
    kind, verdict = path.name.split("-")[:2]
    try:
        value = json.loads(path.read_bytes().decode("utf-8"), parse_constant=_not_json)
    except ValueError:
        assert verdict == "invalid"
        return
    schema = SCHEMA | {"anyOf": [{"$ref": f"#/$defs/{name}"} for name in SCHEMAS[kind]]}

    assert Draft202012Validator(schema).is_valid(value) == (verdict == "valid" or path.stem in BEYOND_SCHEMA)


def _not_json(word: str) -> None:
    raise ValueError(f"{word} is not JSON")
