"""The state of a scheduler on its way over the wire: JSON that says whose it is."""

from math import isfinite
from typing import Any, Final

from msgspec import Raw

from pipistrelle.protocol.base.errors import PipistrelleError, legible
from pipistrelle.protocol.base.state import from_json, to_json
from pipistrelle.protocol.fields import MAX_STATE, package_version
from pipistrelle.protocol.messages import SavedData
from pipistrelle.schedulers.policy.errors import PolicyFailed
from pipistrelle.schedulers.runtime.runtime import Runtime

#: the key of the object that stands for a number which JSON has not
_NUMBER: Final = "float"
#: {what a state is checked by: what it is, in words}
_MARKS: Final = {
    "pipistrelle": "version of pipistrelle",
    "scheduler": "scheduler",
    "policy": "policy (options or files of the scheduler)",
    "seq": "notice",
}
#: characters of a foreign text that a message shows
_SHOWN: Final = 200
_NONE: Final = Raw(b"null")


def give_state(runtime: Runtime, seq: int, mark: str, longest: int | None = None) -> SavedData:
    """Return what a scheduler answers when it is asked for its state, after its reply to notice ``seq``.

    There is none, and a text says why, where its policy does not tell it, or where it has more than ``longest`` bytes.
    """
    try:
        state = to_json({**_marks(runtime, seq, mark), "state": _without(runtime.state())})
    except PipistrelleError as error:
        return SavedData(seq, _NONE, str(error))
    except Exception as error:  # a policy of somebody's own may do anything, and its state may be no plain values
        return SavedData(seq, _NONE, f"{type(error).__name__}: {error}")
    longest = MAX_STATE if longest is None else longest
    if len(state) > longest:
        return SavedData(seq, _NONE, f"it has {len(state):,} bytes, and {longest:,} are allowed")
    return SavedData(seq, Raw(state))


def take_back(runtime: Runtime, text: bytes, mark: str, seq: int) -> None:
    """Let a scheduler that has just been made go on from such a state.

    Raises
    ------
    PolicyFailed
        when it is that of another scheduler, or none at all.
    """
    try:
        known = from_json(text)
        found = {key: known.get(key) for key in _MARKS} if isinstance(known, dict) else {}
    except (ValueError, RecursionError) as error:
        raise _wrong("what the server gives back is no state", found=str(error)) from None
    for key, expected in _marks(runtime, seq, mark).items():
        if found.get(key) != expected:
            what = f"the state of another {_MARKS[key]}" if key in found and found[key] is not None else "no state"
            raise _wrong(f"what the server gives back is {what}", str(expected), str(found.get(key)))
    if runtime.view is not None:
        raise _wrong("the server gives a state back in the middle of a simulation")
    try:
        runtime.restore(_with(known["state"]))
    except Exception as error:  # it may be anything, as may what a policy of somebody's own does with it
        why = f"{type(error).__name__}: {error}"
        raise _wrong("the state that the server gives back cannot be taken", found=why) from error


def _marks(runtime: Runtime, seq: int, mark: str) -> dict[str, Any]:
    hello = runtime.hello()
    return {"pipistrelle": package_version(), "scheduler": hello.name, "policy": mark, "seq": seq}


def _wrong(what: str, expected: str | None = None, found: str | None = None) -> PolicyFailed:
    return PolicyFailed(
        what,
        expected=expected,
        found=None if found is None else legible(found, _SHOWN),
        hint="A scheduler takes back only what one made alike has given, of the same version.",
    )


def _without(value: Any) -> Any:
    """Return plain values without the numbers that JSON has not: an object of one text stands for each."""
    if isinstance(value, float):
        return value if isfinite(value) else {_NUMBER: repr(value)}
    if isinstance(value, list | tuple):
        return [_without(one) for one in value]
    if isinstance(value, dict):
        values = {key: _without(one) for key, one in value.items()}
        return {_NUMBER: [values[_NUMBER]]} if values.keys() == {_NUMBER} else values
    return value


def _with(value: Any) -> Any:
    """Return the plain values again."""
    if isinstance(value, list):
        return [_with(one) for one in value]
    if isinstance(value, dict):
        if value.keys() == {_NUMBER}:
            number = value[_NUMBER]
            return float(number) if isinstance(number, str) else {_NUMBER: _with(number[0])}
        return {key: _with(one) for key, one in value.items()}
    return value
