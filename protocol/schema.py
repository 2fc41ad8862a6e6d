"""Make the JSON Schema (draft 2020-12) of all frames from the structs.

``protocol/schema.json`` holds the schema for validators in other languages. To regenerate that file, run ``python -m
pipistrelle.protocol.schema > protocol/schema.json``.
"""

import json
import sys
from typing import Any, Final

import msgspec

from pipistrelle.protocol.fields import PROTOCOL_VERSION
from pipistrelle.protocol.messages import Hello, Notice, Refused, Reply, ReplyFrame, Restore, Save, Saved, Welcome

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
#: {name under ``$defs``: struct that the codec decodes}
FRAMES: Final[dict[str, type[msgspec.Struct]]] = {
    "Hello": Hello,
    "Welcome": Welcome,
    "Refused": Refused,
    "Notice": Notice,
    "Reply": ReplyFrame,
    "Save": Save,
    "Saved": Saved,
    "Restore": Restore,
}
_REF: Final = "#/$defs/{name}"


def build() -> dict[str, Any]:
    """Return the JSON Schema of all frames.

    Its ``$defs`` has the schemas of the single frames, events and decisions.
    """
    _, components = msgspec.json.schema_components(FRAMES.values(), ref_template=_REF)
    definitions = {_public(name): _tidied(component) for name, component in components.items()}
    # A peer sees only one kind of reply, so the schema does not show that `ReplyFrame` derives from `Reply`.
    definitions["Reply"] |= {"title": "Reply", "description": _one_line(Reply.__doc__ or "")}
    return {
        "$schema": DIALECT,
        "$id": f"urn:pipistrelle:protocol:{PROTOCOL_VERSION}",
        "title": f"pipistrelle/{PROTOCOL_VERSION}",
        "description": "Any frame of Pipistrelle's native dialect; SPEC.md explains what each one means.",
        "anyOf": [{"$ref": _REF.format(name=name)} for name in FRAMES],
        "$defs": dict(sorted(definitions.items())),
    }


def text() -> str:
    """Return the text of ``schema.json``."""
    return json.dumps(build(), indent=2, ensure_ascii=False) + "\n"


def _public(name: str) -> str:
    return "Reply" if name == ReplyFrame.__name__ else name


def _tidied(node: Any) -> Any:
    """Return a part of the schema without msgspec's extensions of JSON Schema.

    Descriptions are shortened to one line.
    """
    if isinstance(node, dict):
        # `discriminator` is from OpenAPI; strict validators refuse it.
        tidied = {key: _tidied(value) for key, value in node.items() if key != "discriminator"}
        if isinstance(tidied.get("description"), str):
            tidied["description"] = _one_line(tidied["description"])
        return tidied
    return [_tidied(item) for item in node] if isinstance(node, list) else node


def _one_line(description: str) -> str:
    return " ".join(description.replace("``", "`").split())


if __name__ == "__main__":
    sys.stdout.write(text())
