"""The text form of a machine: TOML in, TOML out. Files are the caller's business."""

import re
from typing import Any, Final

import msgspec

from pipistrelle.platforms.classes import JobClass
from pipistrelle.platforms.description import Failing, Platform, Pool, Property
from pipistrelle.platforms.errors import PlatformError
from pipistrelle.protocol.base.errors import did_you_mean, shown
from pipistrelle.protocol.base.toml import read_toml, toml_value

_MANUAL: Final = "docs/platforms.md lists every key."
_AT: Final = re.compile(r"(.*) - at `\$([\w.\[\]]*)`", re.DOTALL)
#: {key of tables, empty for the top: (what one is, the keys that it must have)}
_TABLES: Final[dict[str, tuple[type[msgspec.Struct], str]]] = {
    "": (Platform, "name, pools"),
    "pools": (Pool, "name, nodes"),
    "failures": (Failing, "model"),
    "classes": (JobClass, "name"),
}
_STEP: Final = re.compile(r"\w+")
_KINDS: Final = {
    "int": "a whole number",
    "str": "text in quotes",
    "str | null": "text in quotes",
    "float": "a number",
    "float | null": "a number",
    "int | null": "a whole number",
    "array": "tables, each headed [[pools]], [[failures]] or [[classes]]",
    "array | str": "texts in brackets",
    "object": "a table",
    "float | str": "seconds, or text such as 3y in quotes",
    "bool | int | float | str": "text, a number, true or false",
}


def parse_platform(text: str, where: str) -> Platform:
    """Return the machine that the TOML `text` describes.

    Parameters
    ----------
    text
        the whole file; docs/platforms.md has the format.
    where
        what the text is called in messages, usually the file's name.

    Raises
    ------
    PlatformError
        if the text is no TOML (with line and column where the parser gives them), has an unknown, missing or repeated
        key, a value of the wrong type or out of range, or describes no valid machine (with the value's path).
    """
    raw = read_toml(text, where, PlatformError, manual=_MANUAL, hint="Text needs quotes; a pool begins with [[pools]].")
    try:
        return msgspec.convert(raw, Platform)
    except PlatformError as error:
        raise error.at(f"{where}: {error.where}", PlatformError) from None
    except msgspec.ValidationError as error:
        raise _shape_error(str(error), raw, where) from error


def to_toml(platform: Platform) -> str:
    """Return TOML text that `parse_platform` reads as the same machine; no line depends on anything but its value."""
    lines = [f"name = {toml_value(platform.name)}"]
    lines += [f"{key} = {toml_value(text)}" for key in ("description", "source") if (text := getattr(platform, key))]
    for pool in platform.pools:
        lines += [
            "",
            "[[pools]]",
            f"name = {toml_value(pool.name)}",
            f"nodes = {pool.nodes}",
            f"units_per_node = {pool.units_per_node}",
            f"unit = {toml_value(pool.unit)}",
        ]
        lines += [f"{key} = {toml_value(time)}" for key in ("prologue", "epilogue") if (time := getattr(pool, key))]
        told = ((key, getattr(pool, key)) for key in ("names", "node_class", "mttf", "age"))
        lines += [f"{key} = {toml_value(value)}" for key, value in told if value is not msgspec.UNSET]
        if pool.properties:
            lines += ["", "[pools.properties]"]
            lines += [f"{toml_value(key)} = {toml_value(value)}" for key, value in pool.properties.items()]
    for failing in platform.failures:
        lines += ["", "[[failures]]", f"model = {toml_value(failing.model)}"]
        if failing.repair is not None:
            lines.append(f"repair = {toml_value(failing.repair)}")
    for one in platform.classes:
        lines += ["", "[[classes]]", f"name = {toml_value(one.name)}"]
        for key, default in zip(one.__struct_fields__[1:], one.__struct_defaults__, strict=True):
            value = getattr(one, key)
            if value != default:
                lines.append(f"{key} = {toml_value(value)}")
    return "\n".join(lines) + "\n"


def _shape_error(complaint: str, raw: dict[str, Any], where: str) -> PlatformError:
    """Return the error of a TOML text whose keys or types are not those of a platform."""
    at = _AT.fullmatch(complaint)
    said, path = (at[1], at[2].lstrip(".")) if at else (complaint, "")
    path = path.removesuffix("[...]")
    value: Any = raw
    for step in _STEP.findall(path):
        value = value[int(step) if isinstance(value, list) else step]
    place = f"{where}: {path}" if path else where
    if said.startswith(("Object contains unknown field", "Object missing required field")):
        table, needed = _TABLES[path.partition("[")[0]]
        known = list(table.__struct_fields__)
        unknown = [key for key in value if key not in known]
        what = f"in {path}" if path else "at the top"
        if unknown:
            return PlatformError(
                f"unknown key {shown(unknown[0])} {what}",
                where=where,
                hint=f"{did_you_mean(unknown[0], known)} {_MANUAL}",
            )
        missing = next(key for key in needed.split(", ") if key not in value)
        return PlatformError(f"the key '{missing}' is missing {what}", where=where, expected=needed, hint=_MANUAL)
    if said.startswith("Invalid enum value"):
        return PlatformError(
            "a unit of an unknown kind",
            where=place,
            expected="'node', 'core' or 'gpu'",
            found=shown(value),
            hint=did_you_mean(value, ["node", "core", "gpu"]),
        )
    if path.endswith(".properties") and isinstance(value, dict):
        key = next(key for key, entry in value.items() if not isinstance(entry, Property))
        place, value = f"{place}.{key if key.isidentifier() else shown(key)}", value[key]
    kind = said.removeprefix("Expected `").partition("`")[0]
    if path.startswith("classes["):
        kind = kind.replace("array", "array | str")
    return PlatformError("a value of the wrong type", where=place, expected=_KINDS[kind], found=shown(value))
