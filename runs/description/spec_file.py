"""The description of a run as TOML or JSON, with digests of its input files."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import fields, replace

from pipistrelle.platforms import catalogue as platforms
from pipistrelle.protocol.base.errors import PipistrelleError, did_you_mean, printable, quoted
from pipistrelle.protocol.base.shapes import misfit
from pipistrelle.protocol.base.toml import read_toml, toml_value
from pipistrelle.protocol.base.whole import without_waiting
from pipistrelle.runs.description.policy import PolicySpec
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.schedulers.catalogue.names import registered
from pipistrelle.traces import catalogue as workloads
from pipistrelle.traces.files import read_text

_MANUAL: Final = "Keys are the names of options: see 'pipistrelle help cli'."
#: keys that accept one text instead of a list of texts
_LISTS: Final = ("workload", "failures", "maintenance")


class SpecError(PipistrelleError):
    """The description of a run is wrong."""


class InputChanged(SpecError):
    """An input file has changed since the run was described."""


def read_spec(path: str | Path) -> RunSpec:
    """Read the description of a run from TOML, or from a JSON ``out_command.json``.

    Raises:
        PipistrelleError: the file is unreadable, or a key or value in it is missing, unknown, repeated or wrong.
    """
    where = printable(str(path))
    if not os.path.exists(path):
        raise SpecError(
            f"there is no run description '{where}'",
            expected="a file in TOML, or a run's out_command.json",
            hint=_other_kind(where),
        )
    raw = read_raw(read_text(Path(path)), where)
    if not raw:
        raise SpecError(
            "the description is empty",
            where=where,
            expected='at least one key, such as workload = "demo"',
            hint="For the default run, use 'pipistrelle run' without a description.",
        )
    return convert_spec(raw, where)


def _other_kind(name: str) -> str:
    """Return a hint for the error about a file that is no run description.

    The hint says, for example, which command reads the file.
    """
    for kind, known, option in (("workload", workloads.names(), "-w"), ("platform", platforms.names(), "-p")):
        if name in known:
            return f"'{name}' is a {kind}: use {option} {name}."
    near = did_you_mean(name, registered()).replace("Known:", "Known schedulers:")
    return f"{near} 'pipistrelle run' also takes a scheduler's name. Give workloads with --workload."


def read_raw(text: str, where: str, *, once: bool = True) -> Any:
    """Parse a TOML or JSON text into plain values; raise SpecError if it is neither.

    Args:
        once: reject repeated keys in JSON; TOML always rejects them.
    """
    if not (where.endswith(".json") or text.lstrip().startswith("{")):
        return read_toml(text, where, SpecError, manual=_MANUAL, hint='Texts need quotes: scheduler = "fcfs".')
    try:
        raw = msgspec.json.decode(text)
        if once:
            json.loads(text, object_pairs_hook=partial(_once, where))
    except RecursionError:
        raise SpecError("arrays or objects are nested too deep", where=where, hint=_MANUAL) from None
    except ValueError as error:
        raise SpecError(f"the file is not JSON: {printable(str(error))[:200]}", where=where, hint=_MANUAL) from None
    if not isinstance(raw, dict):
        raise SpecError("this is not a run description", where=where, expected="a JSON object", hint=_MANUAL)
    return raw


def _once(where: str, pairs: list[tuple[str, Any]]) -> None:
    """Raise SpecError if a JSON object repeats a key, which the JSON decoder accepts."""
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise SpecError(f"the key {quoted(key)} is repeated", where=where, hint="Remove one of the two.")
        seen.add(key)


def find_spec(path: Path) -> RunSpec | None:
    """Return the run description in a file; None if the file is of another kind.

    Raises:
        SpecError: the description is wrong.
    """
    if path.suffix not in (".toml", ".json") or not path.is_file():
        return None
    try:
        raw = read_raw(read_text(path), str(path), once=False)
    except PipistrelleError:  # the readers of other kinds of files give better errors
        return None
    if not isinstance(raw, dict) or raw.keys() & {"pools", "name", "jobs", "profiles"}:
        return None
    if not raw.keys() & {one.encode_name for one in fields(RunSpec)} - {"failures"}:
        return None
    return read_spec(path)


def convert_spec(raw: Any, where: str) -> RunSpec:
    """Convert plain values to a run description.

    Raise SpecError with the path of a bad value.
    """
    if isinstance(raw, dict):
        raw = {key: [value] if key in _LISTS and isinstance(value, str) else value for key, value in raw.items()}
    for path, number in _numbers(raw, ""):
        if not isfinite(number):
            raise SpecError("a number is not finite", where=f"{where}: {path}", found=str(number))
    try:
        return msgspec.convert(raw, RunSpec)
    except msgspec.ValidationError as error:
        raise misfit(error, raw, RunSpec, where, SpecError, _MANUAL) from None


def checked(spec: RunSpec) -> RunSpec:
    """Validate a description made in Python as if read from a file.

    Raise SpecError if it is not valid.
    """
    return convert_spec(msgspec.to_builtins(spec), "the run")


def _numbers(raw: Any, path: str) -> Iterator[tuple[str, float]]:
    if isinstance(raw, float):
        yield path, raw
    elif isinstance(raw, dict | list):
        for key, value in raw.items() if isinstance(raw, dict) else enumerate(raw):
            yield from _numbers(value, f"{path}.{key}" if path else str(key))


def to_toml(spec: RunSpec) -> str:
    """Return the description as TOML text, without the fields at their defaults."""
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
    """Return the description with the SHA-256 of each input file.

    Raise InputChanged if the description already has a digest of a file and the file has changed.
    """
    bundled = {*platforms.names(), *workloads.names()}
    names = sorted({*spec.inputs} - bundled)
    files = {name: digest for name in names if (digest := _digest(name)) is not None}
    check_files({name: digest for name, digest in spec.files.items() if name in names})
    return replace(spec, files=files)


def recorded_spec(raw: Any, where: str) -> RunSpec:
    """Read the run description in a session or snapshot.

    The digests of its inputs are checked. The file may come from an untrusted source, so each input needs a digest.

    Raises:
        PipistrelleError: the description is wrong, or an input file has changed or has no digest. The message quotes no
            content of the input files.
    """
    spec = convert_spec(raw, where)
    bundled = {*platforms.names(), *workloads.names()}
    for name in sorted({*spec.inputs} - bundled - spec.files.keys()):
        if os.path.exists(name):
            raise InputChanged(
                "an input has no digest",
                where=f"{where}: {printable(name)}",
                expected="the SHA-256 that the run recorded",
                hint="If you trust the author, use 'pipistrelle run' with these inputs.",
            )
    return with_digests(spec)


def policy_digest(spec: RunSpec) -> str:
    """Return a digest of the scheduler, its options and the files they name."""
    values = [getattr(spec, one.name) for one in fields(PolicySpec)]
    code = spec.scheduler.rpartition(":")[0] if isinstance(spec.scheduler, str) else None
    names = [name for name in spec.files if name in values or name == code or name in spec.scheduler_files]
    return hashlib.sha256(msgspec.json.encode([values, [spec.files[name] for name in names]])).hexdigest()[:16]


def check_files(files: Mapping[str, str]) -> None:
    """Check the files in {name: SHA-256}; raise InputChanged if one has changed."""
    for name, digest in files.items():
        if _digest(name) != digest:
            there = os.path.isfile(name)
            raise InputChanged(
                "an input has changed since the run was described",
                where=printable(name),
                found="another content" if there else "no such file",
                hint="Restore it (relative names start at the current folder), or remove its digest here.",
            )


def _digest(name: str) -> str | None:
    if not os.path.isfile(name):
        return None
    try:
        with open(name, "rb", opener=without_waiting) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None
