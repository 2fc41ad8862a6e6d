"""The text form of a machine: TOML in, TOML out. Files are the caller's business."""

from typing import Final

import msgspec

from pipistrelle.platforms.description import Platform
from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.topology.rule import TopologyRule
from pipistrelle.protocol.base.shapes import misfit
from pipistrelle.protocol.base.toml import read_toml, toml_value

_MANUAL: Final = "'pipistrelle help platforms' lists every key."


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
        raise misfit(error, raw, Platform, where, PlatformError, _MANUAL) from error


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
    if platform.topology is not msgspec.UNSET:
        rule = msgspec.structs.asdict(platform.topology)
        default = msgspec.structs.asdict(TopologyRule(platform.topology.kind))
        lines += ["", "[topology]", f"kind = {toml_value(platform.topology.kind)}"]
        lines += [f"{key} = {toml_value(value)}" for key, value in rule.items() if value != default[key]]
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
