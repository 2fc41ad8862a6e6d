"""The exported JSON Schema: up to date, valid, plain enough for other languages' validators, documented."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from jsonschema import Draft202012Validator

from pipistrelle.protocol.decisions import AnyDecision
from pipistrelle.protocol.events import AnyEvent
from pipistrelle.protocol.fields import PROTOCOL_VERSION
from pipistrelle.protocol.schema import FRAMES, build, text

EXPORT = Path(__file__).parents[2] / "protocol" / "schema.json"
COMMAND = "python -m pipistrelle.protocol.schema > protocol/schema.json"
#: keywords that every validator of draft 2020-12 knows
KEYWORDS = {
    "$schema",
    "$id",
    "$defs",
    "$ref",
    "title",
    "description",
    "default",
    "type",
    "enum",
    "anyOf",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "minLength",
    "maxLength",
    "propertyNames",
}


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    """Return the schema generated from the current structs."""
    return build()


def nodes(node: Any) -> Iterator[dict[str, Any]]:
    """Yield every subschema, without the names of properties and definitions."""
    yield node
    for key in ("properties", "$defs"):
        for child in node.get(key, {}).values():
            yield from nodes(child)
    for key in ("items", "additionalProperties"):
        if isinstance(node.get(key), dict):
            yield from nodes(node[key])
    for child in (*node.get("anyOf", []), *node.get("prefixItems", [])):
        yield from nodes(child)


def test_the_export_is_up_to_date() -> None:
    """The committed file equals the schema of the current structs."""
    assert EXPORT.read_text(encoding="utf-8") == text(), f"protocol/schema.json is stale; run: {COMMAND}"


@pytest.mark.parametrize("seed", ["0", "1"])
def test_the_command_writes_the_export(seed: str) -> None:
    """The command that generates the file prints it, the same with any hash seed."""
    command = [sys.executable, "-W", "error", "-m", "pipistrelle.protocol.schema"]
    done = subprocess.run(command, capture_output=True, check=True, env={"PYTHONHASHSEED": seed})

    assert done.stdout == EXPORT.read_bytes()


def test_the_schema_is_a_schema(schema: dict[str, Any]) -> None:
    """It is valid by its own dialect, names the protocol's version, and every reference resolves."""
    Draft202012Validator.check_schema(schema)
    assert schema["title"] == f"pipistrelle/{PROTOCOL_VERSION}"
    for node in nodes(schema):
        if "$ref" in node:
            assert node["$ref"].removeprefix("#/$defs/") in schema["$defs"]


def test_other_validators_understand_it(schema: dict[str, Any]) -> None:
    """It uses plain keywords only, none of OpenAPI's or msgspec's own."""
    assert set().union(*(set(node) for node in nodes(schema))) <= KEYWORDS


def test_every_frame_and_type_is_there(schema: dict[str, Any]) -> None:
    """All frames are at the top level; all events and decisions have a definition; nothing internal has one."""
    types = {struct.__name__ for struct in (*get_args(AnyEvent), *get_args(AnyDecision))}

    assert [node["$ref"] for node in schema["anyOf"]] == [f"#/$defs/{name}" for name in FRAMES]
    assert types | set(FRAMES) <= set(schema["$defs"])
    assert not {"Malformed", "ReplyFrame", "Event", "Decision"} & set(schema["$defs"])
    assert "(malformed)" not in text()


def test_everything_is_described(schema: dict[str, Any]) -> None:
    """Each definition and each field has a one-line description; numbers have a unit or say what they count."""
    for name, definition in schema["$defs"].items():
        assert definition["description"], name
        for field, node in definition["properties"].items():
            if field == "type" or "$ref" in node:
                continue
            choices = [choice for choice in node.get("anyOf", [node]) if choice.get("type") != "null"]
            described = [node["description"]] if "description" in node else []
            described += [choice["description"] for choice in choices if "description" in choice]
            assert described or all("$ref" in choice for choice in choices), f"{name}.{field}"
            if any(choice.get("type") == "number" for choice in choices):
                assert any(word in described[0] for word in ("in seconds", "share", "a pure number")), f"{name}.{field}"
    assert not [node for node in nodes(schema) if "\n" in node.get("description", "")]


def test_unknown_fields_are_allowed(schema: dict[str, Any]) -> None:
    """The schema is as lenient as the codec: later versions may add fields."""
    assert not [node for node in nodes(schema) if node.get("additionalProperties") is False]
