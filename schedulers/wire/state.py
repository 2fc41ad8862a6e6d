"""A scheduler's state as it is sent to the server.

It is JSON with the scheduler's identity.
"""

from math import isfinite
from typing import Any, Final

from msgspec import Raw

from pipistrelle.protocol.base.errors import PipistrelleError, legible
from pipistrelle.protocol.base.state import from_json, to_json
from pipistrelle.protocol.fields import MAX_STATE, package_version
from pipistrelle.protocol.messages import SavedData
from pipistrelle.schedulers.policy.errors import PolicyFailed
from pipistrelle.schedulers.runtime.runtime import Runtime

#: key of the JSON object that encodes a number such as NaN
_NUMBER: Final = "float"
#: {key that identifies a scheduler's state: name of the key in messages}
_MARKS: Final = {
    "pipistrelle": "version of pipistrelle",
    "scheduler": "scheduler",
    "policy": "policy (options or files of the scheduler)",
    "seq": "notice",
}
#: most characters of a foreign text that a message quotes
_SHOWN: Final = 200
_NONE: Final = Raw(b"null")


def give_state(runtime: Runtime, seq: int, mark: str, longest: int | None = None) -> SavedData:
    """Return a scheduler's state after its reply to notice ``seq``.

    If the policy cannot save its state, or the state is longer than ``longest`` bytes, the result has a reason instead.

    Args:
        mark: digest of the policy's options; only a scheduler with the same digest can restore the state.
    """
    try:
        state = to_json({**_marks(runtime, seq, mark), "state": _without(runtime.state())})
    except PipistrelleError as error:
        return SavedData(seq, _NONE, str(error))
    except Exception as error:  # a user's policy may raise any exception or return values that JSON lacks
        return SavedData(seq, _NONE, f"{type(error).__name__}: {error}")
    longest = MAX_STATE if longest is None else longest
    if len(state) > longest:
        return SavedData(seq, _NONE, f"it has {len(state):,} bytes, and {longest:,} are allowed")
    return SavedData(seq, Raw(state))


def take_back(runtime: Runtime, text: bytes, mark: str, seq: int) -> None:
    """Restore a scheduler's saved state.

    Args:
        text: the saved state, as JSON.
        mark: digest of the policy's options.
        seq: number of the notice after which the state was saved.

    Raises:
        PolicyFailed: the state is invalid, or was saved by another scheduler or with other options.
    """
    try:
        known = from_json(text)
        found = {key: known.get(key) for key in _MARKS} if isinstance(known, dict) else {}
    except (ValueError, RecursionError) as error:
        raise _wrong("the server returned an invalid state", found=str(error)) from None
    for key, expected in _marks(runtime, seq, mark).items():
        if found.get(key) != expected:
            what = f"the state of another {_MARKS[key]}" if found.get(key) is not None else "an invalid state"
            raise _wrong(f"the server returned {what}", str(expected), str(found.get(key)))
    if runtime.view is not None:
        raise _wrong("the server returned a state in the middle of a simulation")
    try:
        runtime.restore(_with(known["state"]))
    except Exception as error:  # the state or a user's policy may cause any exception
        why = f"{type(error).__name__}: {error}"
        raise _wrong("cannot restore the state that the server returned", found=why) from error


def _marks(runtime: Runtime, seq: int, mark: str) -> dict[str, Any]:
    hello = runtime.hello()
    return {"pipistrelle": package_version(), "scheduler": hello.name, "policy": mark, "seq": seq}


def _wrong(what: str, expected: str | None = None, found: str | None = None) -> PolicyFailed:
    return PolicyFailed(
        what,
        expected=expected,
        found=None if found is None else legible(found, _SHOWN),
        hint="A state can be restored only by the same scheduler with the same options and version.",
    )


def _without(value: Any) -> Any:
    """Return a copy of the value without numbers that JSON lacks, such as NaN.

    Each of them is replaced by an object that contains the number as text.
    """
    if isinstance(value, float):
        return value if isfinite(value) else {_NUMBER: repr(value)}
    if isinstance(value, list | tuple):
        return [_without(one) for one in value]
    if isinstance(value, dict):
        values = {key: _without(one) for key, one in value.items()}
        return {_NUMBER: [values[_NUMBER]]} if values.keys() == {_NUMBER} else values
    return value


def _with(value: Any) -> Any:
    if isinstance(value, list):
        return [_with(one) for one in value]
    if isinstance(value, dict):
        if value.keys() == {_NUMBER}:
            number = value[_NUMBER]
            return float(number) if isinstance(number, str) else {_NUMBER: _with(number[0])}
        return {key: _with(one) for key, one in value.items()}
    return value
