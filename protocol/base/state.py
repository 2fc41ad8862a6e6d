"""State as plain values, through JSON without a bit of difference: what snapshots of both sides are made of."""

import json
from typing import Any, Protocol


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
