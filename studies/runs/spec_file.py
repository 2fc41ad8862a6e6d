"""The description of a run as a file, in TOML or JSON: read with clear errors, written, and its inputs compared."""

import hashlib
import os
import re
import typing
from collections.abc import Iterator
from math import isfinite
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import fields, replace

from pipistrelle.platforms import catalogue as platforms
from pipistrelle.protocol.base.errors import PipistrelleError, did_you_mean, printable
from pipistrelle.protocol.base.toml import read_toml, toml_value
from pipistrelle.studies.inputs.named import read_text
from pipistrelle.studies.runs.spec import BatsimSpec, RunSpec
from pipistrelle.studies.workloads.steps import STEPS
from pipistrelle.traces import catalogue as workloads

_MANUAL: Final = "docs/cli.md lists every key: they are the options' names."
_AT: Final = re.compile(r"(.*?)(?: - at `(key in )?\$\.?(.*?)`)?", re.DOTALL)
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_TYPES: Final = re.compile(r"Expected `(.*)`, got `(.*)`")
_KINDS: Final = {"str": "text", "int": "a whole number", "float": "a number", "bool": "true or false"}
#: keys of which one text may stand for a list of one
_LISTS: Final = ("workload", "failures", "maintenance")


class SpecError(PipistrelleError):
    """The description of a run is wrong."""


class InputChanged(SpecError):
    """A file that a run reads is not what it was when the run was described."""


def read_spec(path: str | Path) -> RunSpec:
    """Return the run that a file describes: TOML, or JSON as ``out_command.json`` is.

    Raises
    ------
    PipistrelleError
        if the file cannot be read, is neither, has an unknown key or a value of the wrong type.
    """
    where = printable(str(path))
    if not os.path.exists(path):
        raise SpecError(
            f"there is no description of a run '{where}'",
            expected="a file in TOML, or a run's out_command.json",
            hint="A scheduler is named with --scheduler, a workload with --workload.",
        )
    raw = read_raw(read_text(Path(path)), where)
    return convert_spec(raw, where)


def read_raw(text: str, where: str) -> Any:
    """Return the plain values that a text in TOML or JSON stands for; SpecError if it is neither."""
    if not (where.endswith(".json") or text.lstrip().startswith("{")):
        return read_toml(text, where, SpecError, manual=_MANUAL, hint='Texts need quotes, as in scheduler = "fcfs".')
    try:
        raw = msgspec.json.decode(text)
    except RecursionError:
        raise SpecError("arrays or objects are nested too deep", where=where, hint=_MANUAL) from None
    except ValueError as error:
        raise SpecError(f"this is no JSON: {printable(str(error))[:200]}", where=where, hint=_MANUAL) from None
    if not isinstance(raw, dict):
        raise SpecError("this is no description of a run", where=where, expected="a JSON object", hint=_MANUAL)
    return raw


def find_spec(path: Path) -> RunSpec | None:
    """Return the run that a file describes, None if it is rather a machine or a workload; SpecError if it is wrong."""
    if path.suffix not in (".toml", ".json") or not path.is_file():
        return None
    try:
        raw = read_raw(read_text(path), str(path))
    except PipistrelleError:  # who reads the other kinds says better what is wrong
        return None
    if not isinstance(raw, dict) or raw.keys() & {"pools", "name", "jobs", "profiles"}:
        return None
    if not raw.keys() & {one.encode_name for one in fields(RunSpec)} - {"failures"}:
        return None
    return convert_spec(raw, printable(str(path)))


def convert_spec(raw: Any, where: str) -> RunSpec:
    """Return the run that plain values describe; SpecError, with the value's path, if they describe none."""
    if isinstance(raw, dict):
        raw = {key: [value] if key in _LISTS and isinstance(value, str) else value for key, value in raw.items()}
    for path, number in _numbers(raw, ""):
        if not isfinite(number):
            raise SpecError("a number is not finite", where=f"{where}: {path}", found=str(number))
    try:
        return msgspec.convert(raw, RunSpec)
    except msgspec.ValidationError as error:
        raise _shape_error(str(error), raw, where) from None


def checked(spec: RunSpec) -> RunSpec:
    """Return a description that was made in Python as a file would give it; SpecError if a value is none."""
    return convert_spec(msgspec.to_builtins(spec), "the run")


def _numbers(raw: Any, path: str) -> Iterator[tuple[str, float]]:
    if isinstance(raw, float):
        yield path, raw
    elif isinstance(raw, dict | list):
        for key, value in raw.items() if isinstance(raw, dict) else enumerate(raw):
            yield from _numbers(value, f"{path}.{key}" if path else str(key))


def _shape_error(message: str, raw: Any, where: str) -> SpecError:
    """Return msgspec's complaint in our words."""
    found = _AT.fullmatch(message)
    what, path = (found[1], found[3] or "") if found is not None else (message, "")
    at = printable(f"{where}: {path}" if path else where)
    if unknown := _UNKNOWN.fullmatch(what):
        known = [one.encode_name for one in fields(_form_at(raw, path))]
        hint = f"{did_you_mean(unknown[1], known)} {_MANUAL}".strip()
        return SpecError(f"unknown key '{printable(unknown[1])[:60]}'", where=at, hint=hint)
    if types := _TYPES.fullmatch(what):
        expected = [_KINDS.get(kind, kind) for kind in types[1].split(" | ") if kind != "null"]
        return SpecError(
            "a value of the wrong type",
            where=at,
            expected=" or ".join(expected).replace("array", "a list").replace("object", "a table"),
            found=_KINDS.get(types[2], types[2]).replace("array", "a list").replace("object", "a table"),
        )
    if path.endswith(".step"):
        hint = did_you_mean(str(what.partition("'")[2].rstrip("'")), list(STEPS))
        return SpecError("there is no such step", where=at, found=what.removeprefix("Invalid value "), hint=hint)
    return SpecError(printable(f"{what[:1].lower()}{what[1:]}"), where=at, expected=_choices(path), hint=_MANUAL)


def _form_at(raw: Any, path: str) -> type[msgspec.Struct]:
    """Return what stands at a path."""
    if path.startswith("transform["):
        number = int(path.removeprefix("transform[").partition("]")[0])
        return STEPS[raw["transform"][number]["step"]]
    return BatsimSpec if path == "batsim" else RunSpec


def _choices(path: str) -> str | None:
    """Return the texts that a key of the whole may have, None if that is no list of them."""
    hints = typing.get_type_hints(RunSpec)
    kind = hints.get(path.replace("-", "_"))
    alternatives = [one for one in (kind, *typing.get_args(kind)) if typing.get_origin(one) is typing.Literal]
    return ", ".join(map(str, typing.get_args(alternatives[0]))) if alternatives else None


def to_toml(spec: RunSpec) -> str:
    """Return TOML text that reads as the same run; what is as it is without being said is left out."""
    plain, default = msgspec.to_builtins(spec), msgspec.to_builtins(RunSpec())
    said = {key: value for key, value in plain.items() if value != default[key]}
    steps = said.pop("transform", [])
    lines = [f"{key} = {toml_value(value)}" for key, value in said.items() if not isinstance(value, dict)]
    for step in steps:
        lines += ["", "[[transform]]", *(f"{key} = {toml_value(one)}" for key, one in step.items() if one is not None)]
    for key, table in said.items():
        if isinstance(table, dict):
            lines += ["", f"[{key}]"]
            lines += [f"{toml_value(name)} = {toml_value(one)}" for name, one in table.items() if one is not None]
    return "\n".join(lines) + "\n"


def with_digests(spec: RunSpec) -> RunSpec:
    """Return the run with the digests of all files that it reads.

    Raises
    ------
    InputChanged
        if the description has the digest of one, and the file has another content by now, or is not there.
    """
    bundled = {*platforms.names(), *workloads.names()}
    names = sorted({*spec.inputs} - bundled)
    files = {name: digest for name in names if (digest := _digest(name)) is not None}
    for name, digest in spec.files.items():
        if name in names and files.get(name) != digest:
            there = os.path.isfile(name)
            raise InputChanged(
                "an input has changed since the run was described",
                where=printable(name),
                found="its content is not that of the run" if there else "it is not there",
                hint="Bring it back (relative names are looked up from the present folder), or take its digest out of "
                "the description.",
            )
    return replace(spec, files=files)


def _digest(name: str) -> str | None:
    if not os.path.isfile(name):
        return None
    try:
        with open(name, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None
