"""Errors for values of a file or command line that have the wrong structure."""

import re
from collections.abc import Iterator
from typing import Any, Final, Literal, TypeVar, get_args, get_origin

import msgspec
from msgspec.structs import fields

from pipistrelle.protocol.base.errors import PipistrelleError, did_you_mean, printable, shown

_E = TypeVar("_E", bound=PipistrelleError)
_T = TypeVar("_T")
_AT: Final = re.compile(r"(.*?)(?: - at `(?:key in )?\$\.?([\w.\[\]-]*)`)?", re.DOTALL)
_STEP: Final = re.compile(r"[\w-]+|\.\.\.")
_TYPE: Final = re.compile(r"Expected `([^`]*)`(.*?)(?:, got `[^`]*`)?")
_RULE: Final = re.compile(r"expected (.*), found (.*)", re.DOTALL)
_KINDS: Final = {
    "int": "a whole number",
    "float": "a number",
    "str": "text in quotes",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
}


def convert_table(raw: Any, kind: type[_T], where: str, make: type[_E], manual: str = "") -> _T:
    """Convert plain values to a struct of class ``kind``; parameters as for `misfit`.

    Raises:
        PipistrelleError: of class ``make``, for an unknown or missing key or an invalid value.
    """
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        raise misfit(error, raw, kind, where, make, manual) from None


def misfit(error: msgspec.ValidationError, raw: Any, kind: Any, where: str, make: type[_E], manual: str = "") -> _E:
    """Return the error for plain values that msgspec has rejected.

    Args:
        error: msgspec's error. If a struct raised a ValueError, its text should read ``expected ..., found ...``.
        raw: the rejected values.
        kind: the type they should have.
        where: what the error calls the values, such as a file's name. The path of the wrong value is appended to it,
            after ": ", or directly if ``where`` ends with a dot.
        make: the class of the error.
        manual: a sentence that says where keys and values are documented.
    """
    found = _AT.fullmatch(str(error))
    assert found is not None  # the pattern matches any text
    said, path = found[1], found[2] or ""
    for step in _STEP.findall(path):
        raw, kind, name = _below(raw, kind, step)
        if step == "...":
            path = path.replace("[...]", f".{name if name.isidentifier() else shown(name)}", 1)
    place = f"{where}{path}" if where.endswith(".") else f"{where}: {path}"
    place = printable(place.rstrip(".: "))
    keys = {one.encode_name: one.required for one in _fields(kind, raw)}
    if said.startswith("Object contains unknown field"):
        tags = [one.__struct_config__.tag_field for one in _structs(kind)]
        unknown = next((key for key in raw if key not in keys and key not in tags), said.split("`")[1])
        what, hint = f"unknown key {shown(unknown)}", did_you_mean(unknown, list(keys))
        return make(what, where=place, hint=f"{hint} {manual}".strip())
    if said.startswith("Object missing required field"):
        missing = said.split("`")[1]
        needed = [key for key, required in keys.items() if required]
        if missing not in keys:  # the key that selects one struct of a union
            needed = [f"{missing} = {_any_of([repr(one.__struct_config__.tag) for one in _structs(kind)])}"]
        return make(f"the key '{missing}' is missing", where=place, expected=", ".join(needed), hint=manual)
    if said.startswith("Invalid "):
        choices = [choice for one in _alternatives(kind) if get_origin(one) is Literal for choice in get_args(one)]
        hint = f"{did_you_mean(raw, choices) if isinstance(raw, str) else ''} {manual}".strip()
        return make(
            "not one of the choices",
            where=place,
            expected=_any_of([repr(choice) for choice in choices]),
            found=shown(raw),
            hint=hint,
        )
    if (rule := _RULE.fullmatch(said)) is not None:
        return make("an invalid value", where=place, expected=printable(rule[1]), found=printable(rule[2]))
    if (rule := _TYPE.fullmatch(said)) is None:
        return make(printable(said)[:200], where=place, hint=manual)
    kinds = [_KINDS.get(word, word) for word in rule[1].split(" | ") if word != "null"]
    if rule[1] == "array" and any(_structs(item) for one in _alternatives(kind) for item in get_args(one)):
        kinds = [f"tables, each headed [[{place.rpartition(': ')[2]}]]"]
    what = "an invalid value" if rule[2] else "a value of the wrong type"
    return make(what, where=place, expected=_any_of(kinds) + rule[2], found=shown(raw))


def _any_of(words: list[str]) -> str:
    return " or ".join(part for part in (", ".join(words[:-1]), *words[-1:]) if part)


def _below(raw: Any, kind: Any, step: str) -> tuple[Any, Any, str]:
    """Return the value at the key or index ``step`` of ``raw``.

    Also return its type, and that key. ``kind`` is the type of ``raw``. The step ``...`` stands for a key that msgspec
    does not name.
    """
    if step == "...":  # msgspec does not name the key: use the first value that cannot be converted
        (inner,) = (get_args(one)[1] for one in _alternatives(kind) if get_origin(one) is dict)
        keys = (key for key, value in raw.items() if not _fits(value, inner))
        key = next(keys, next(iter(raw)))  # a key of another type than its struct's may be the fault
        return raw[key], inner, key
    if isinstance(raw, dict):
        types = {one.encode_name: one.type for one in _fields(kind, raw)}
        tags = tuple(one.__struct_config__.tag for one in _structs(kind))
        return raw[step], types.get(step, Literal[tags]), step
    (inner,) = (get_args(one)[0] for one in _alternatives(kind) if get_origin(one) in (list, tuple))
    return raw[int(step)], inner, step


def _fits(value: Any, kind: Any) -> bool:
    try:
        msgspec.convert(value, kind)
    except (msgspec.ValidationError, PipistrelleError):
        return False
    return True


def _alternatives(kind: Any) -> Iterator[Any]:
    """Yield the members of a union, or the type itself if it is no union.

    Annotations are removed.
    """
    if get_origin(kind) is Literal or isinstance(kind, type) or get_origin(kind) in (list, tuple, dict):
        yield kind
    else:
        for one in get_args(kind)[:1] if hasattr(kind, "__metadata__") else get_args(kind):
            yield from _alternatives(one)


def _structs(kind: Any) -> list[type[msgspec.Struct]]:
    return [one for one in _alternatives(kind) if isinstance(one, type) and issubclass(one, msgspec.Struct)]


def _fields(kind: Any, raw: Any) -> tuple[msgspec.structs.FieldInfo, ...]:
    """Return the fields of a struct type.

    ``kind`` can be a union. Then the tag in ``raw`` selects one of its structs.
    """
    for one in _structs(kind):
        config = one.__struct_config__
        if config.tag is None or (isinstance(raw, dict) and raw.get(config.tag_field or "") == config.tag):
            return fields(one)
    return ()
