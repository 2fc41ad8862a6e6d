"""State as plain values, through JSON without a bit of difference: what snapshots of both sides are made of."""

import json
from functools import cache
from typing import Any, Final, Protocol

from msgspec import Raw, Struct


class Stateful(Protocol):
    """A part of a run whose state can be taken out, and put into another that was made alike."""

    def state(self) -> Any:
        """Return all that decides how it goes on: dictionaries with texts as keys, lists, texts, numbers, None."""

    def restore(self, state: Any) -> None:
        """Go on from a state of one made with the same arguments; this one has just been made."""


def to_json(state: Any) -> bytes:
    """Return plain values as JSON; unlike JSON proper it carries ``NaN`` and ``Infinity``.

    Raises
    ------
    TypeError
        when something in it is no plain value: a bug of the part that returned it.
    """
    return json.dumps(state, separators=(",", ":")).encode()


def from_json(text: bytes) -> Any:
    """Return the plain values again, every number as it was; tuples have become lists."""
    return json.loads(text)


#: what a list begins with that stands for a struct, or for JSON that is passed on as it is
_STRUCT: Final = "struct"
_RAW: Final = "raw"


def plain(message: Any) -> Any:
    """Return a message, or a part of one, as plain values that `message_of` makes the same message of."""
    if isinstance(message, Struct):
        kind = type(message).__name__
        return [_STRUCT, kind, *(plain(getattr(message, name)) for name in message.__struct_fields__)]
    if isinstance(message, Raw):
        return [_RAW, bytes(message).decode()]
    if isinstance(message, dict):
        return {key: plain(value) for key, value in message.items()}
    if isinstance(message, list | tuple):
        return [type(message).__name__, *map(plain, message)]
    return message


def message_of(state: Any) -> Any:
    """Return the message that `plain` made these values of; its struct's module must have been imported."""
    if isinstance(state, dict):
        return {key: message_of(value) for key, value in state.items()}
    if not isinstance(state, list):
        return state
    kind, *values = state
    if kind == _RAW:
        return Raw(values[0].encode())
    if kind == _STRUCT:
        struct = _struct(values[0])
        return struct(**dict(zip(struct.__struct_fields__, map(message_of, values[1:]), strict=True)))
    return tuple(map(message_of, values)) if kind == "tuple" else list(map(message_of, values))


@cache
def _struct(name: str) -> type[Struct]:
    """Return the struct of this name among the messages; no two have the same."""
    todo: list[type[Struct]] = [Struct]
    for some in todo:
        todo += some.__subclasses__()
    (found,) = {one for one in todo if one.__name__ == name and one.__module__.startswith("pipistrelle.protocol")}
    return found
