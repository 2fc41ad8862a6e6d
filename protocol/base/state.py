"""Convert the state of a run's parts to plain values for snapshots, and back."""

import json
from array import array
from collections import Counter, deque
from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar, Final

from msgspec import Raw, Struct
from mypy_extensions import mypyc_attr


def to_json(state: Any) -> bytes:
    """Return plain values as JSON, extended by ``NaN`` and ``Infinity``.

    Raises:
        TypeError: if a value is not plain, which is a bug in the part of the run that returned it.
    """
    return json.dumps(state, separators=(",", ":")).encode()


def from_json(text: bytes | bytearray) -> Any:
    """Return the values of a JSON text; numbers stay exact, tuples become lists."""
    return json.loads(text)


@mypyc_attr(allow_interpreted_subclasses=True)
class Kept:
    """Base class of parts of a run whose state can be saved and restored.

    The state is the values of the attributes whose names are in ``_kept``. To restore it, make the part with the same
    arguments as before and call `restore`. The new part then behaves as the saved part would.

    An attribute that has its own methods `state` and `restore` is saved and restored by them. The same holds for each
    member of an attribute that is a tuple of such objects. `plain` converts all other values.
    """

    __slots__ = ()
    _kept: ClassVar[tuple[str, ...]] = ()

    def state(self) -> Any:
        """Return the state as plain values."""
        return {name: plain(getattr(self, name)) for name in self._kept}

    def restore(self, state: Any, *made: Any, **more: Any) -> None:
        """Restore a state.

        Args:
            state: a result of the method `state`.
            made, more: further arguments for the method `restore` of attributes that have one.
        """
        for name in self._kept:
            mine: Any = getattr(self, name, None)
            if hasattr(mine, "restore"):
                mine.restore(state[name], *made, **more)
            elif isinstance(mine, tuple) and mine and all(hasattr(part, "restore") for part in mine):
                for part, known in zip(mine, state[name][1:], strict=True):
                    part.restore(known, *made, **more)
            else:
                setattr(self, name, message_of(state[name]))


#: first item of a list that represents a struct
_STRUCT: Final = "struct"
#: {first item of a list: how to read the rest}; {type: (that item, how to write the rest)}
_READ: Final[dict[str, Callable[[list[Any]], Any]]] = {}
_WRITTEN: Final[dict[type, tuple[str, Callable[[Any], list[Any]]]]] = {}


def register(kind: type, written: Callable[[Any], list[Any]], read: Callable[[list[Any]], Any]) -> None:
    """Let `plain` convert values of a type, and `message_of` convert them back.

    Args:
        kind: the type.
        written: converts a value to a list of plain values.
        read: makes a value from such a list.
    """
    _WRITTEN[kind] = (kind.__name__, written)
    _READ[kind.__name__] = read


def _each(values: Any) -> list[Any]:
    return [plain(value) for value in values]


def _values(state: list[Any]) -> list[Any]:
    return [message_of(value) for value in state]


register(list, _each, _values)
register(tuple, _each, lambda state: tuple(_values(state)))
register(deque, _each, lambda state: deque(_values(state)))
register(set, sorted, set)
register(bytes, lambda text: [text.decode()], lambda state: state[0].encode())
register(Raw, lambda raw: [bytes(raw).decode()], lambda state: Raw(state[0].encode()))
register(Counter, lambda counts: _each(counts.items()), lambda state: Counter(dict(_values(state))))
register(dict, lambda pairs: _each(pairs.items()), lambda state: dict(_values(state)))
register(array, lambda numbers: [numbers.typecode, numbers.tolist()], lambda state: array(*state))


def plain(message: Any) -> Any:
    """Convert a message, a value or the state of a part to plain values.

    `message_of` is the inverse.
    """
    name, written = _WRITTEN.get(type(message), (None, None))
    if written is not None:
        if name == "dict" and all(isinstance(key, str) for key in message):
            return {key: plain(value) for key, value in message.items()}
        return [name, *written(message)]
    if isinstance(message, Struct):
        kind = type(message).__name__
        return [_STRUCT, kind, *(plain(getattr(message, name)) for name in message.__struct_fields__)]
    return message.state() if hasattr(message, "state") else message


def message_of(state: Any) -> Any:
    """Return the value that `plain` converted.

    The modules of its structs must be imported.
    """
    if isinstance(state, dict):
        return {key: message_of(value) for key, value in state.items()}
    if not isinstance(state, list):
        return state
    kind, *values = state
    if kind == _STRUCT:
        struct = _struct(values[0])
        return struct(**dict(zip(struct.__struct_fields__, map(message_of, values[1:]), strict=True)))
    return _READ[kind](values)


@cache
def _struct(name: str) -> type[Struct]:
    todo: list[type[Struct]] = [Struct]
    for some in todo:
        todo += some.__subclasses__()
    (found,) = {one for one in todo if one.__name__ == name and one.__module__.startswith("pipistrelle.protocol")}
    return found
