"""Read and write the TOML form of a machine; callers open the files."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from pipistrelle.platforms.description import Platform, Property
from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.naming.rule import TopologyRule
from pipistrelle.platforms.node_rows import NodeRow, with_node_rows
from pipistrelle.platforms.resources.described import read_resources, written_resources
from pipistrelle.protocol.base.errors import shown
from pipistrelle.protocol.base.shapes import misfit
from pipistrelle.protocol.base.toml import read_toml, toml_value

#: a function that reads the table of nodes in the file of this name
ReadTable = Callable[[str], Sequence[NodeRow]]
_MANUAL: Final = "'pipistrelle help platforms' lists every key."


def parse_platform(text: str, where: str, read_table: ReadTable | None = None) -> Platform:
    """Parse the TOML description of a machine, see docs/reference/platforms.md.

    Args:
        where: the name of the text in messages, usually a file name.
        read_table: reads the table of nodes that the key ``node_table`` names; None: refuse the key.

    Raises:
        PlatformError: if the text is not TOML (with line and column if known), has an unknown or missing key, or an
            invalid value (with its path).
    """
    raw = read_toml(text, where, PlatformError, manual=_MANUAL, hint="Text needs quotes; a pool begins with [[pools]].")
    named = raw.pop("node_table", None)
    if named is not None and (read_table is None or not isinstance(named, str)):
        raise PlatformError(
            "a table of nodes cannot be read here" if read_table is None else "a value of the wrong type",
            where=f"{where}: node_table",
            expected="text in quotes: the name of a file",
            found=shown(named),
        )
    try:
        platform = msgspec.convert(raw, Platform)
        return platform if named is None or read_table is None else with_node_rows(platform, read_table(named))
    except PlatformError as error:
        raise error.at(f"{where}: {error.where}", PlatformError) from None
    except msgspec.ValidationError as error:
        raise misfit(error, raw, Platform, where, PlatformError, _MANUAL) from error


def to_toml(platform: Platform) -> str:
    """Return the machine as TOML; the inverse of `parse_platform`."""
    lines = [f"name = {toml_value(platform.name)}"]
    lines += [f"{key} = {toml_value(text)}" for key in ("description", "source") if (text := getattr(platform, key))]
    for pool in platform.pools:
        lines += [
            "",
            "[[pools]]",
            f"name = {toml_value(pool.name)}",
            f"nodes = {pool.nodes}",
        ]
        if pool.resources is msgspec.UNSET:
            lines += [f"units_per_node = {pool.units_per_node}", f"unit = {toml_value(pool.unit)}"]
        else:
            lines.append(f"resources = {_inline(written_resources(read_resources(pool.resources, pool.name)))}")
        if pool.weight is not msgspec.UNSET:
            lines.append(f"weight = {pool.weight}")
        lines += [f"{key} = {toml_value(time)}" for key in ("prologue", "epilogue") if (time := getattr(pool, key))]
        told = ((key, getattr(pool, key)) for key in ("names", "node_class", "mttf", "age"))
        lines += [f"{key} = {toml_value(value)}" for key, value in told if value is not msgspec.UNSET]
        lines += _properties("pools", pool.properties)
    for group in platform.groups or ():
        told = ((key, getattr(group, key)) for key in ("nodes", "node_class", "mttf", "age"))
        lines += ["", "[[groups]]"]
        lines += [f"{key} = {toml_value(value)}" for key, value in told if value is not msgspec.UNSET]
        lines += _properties("groups", group.properties)
    if platform.topology is not msgspec.UNSET:
        rule = msgspec.structs.asdict(platform.topology)
        default = msgspec.structs.asdict(TopologyRule(platform.topology.kind))
        lines += ["", "[topology]", f"kind = {toml_value(platform.topology.kind)}"]
        lines += [f"{key} = {toml_value(value)}" for key, value in rule.items() if value != default[key]]
    for failing in platform.failures:
        lines += ["", "[[failures]]", f"model = {toml_value(failing.model)}"]
        if failing.repair is not None:
            lines.append(f"repair = {toml_value(failing.repair)}")
    if platform.licenses is not msgspec.UNSET:
        lines += ["", "[licenses]", *(f"{toml_value(name)} = {count}" for name, count in platform.licenses.items())]
    for one in platform.classes:
        lines += ["", "[[classes]]", f"name = {toml_value(one.name)}"]
        for key, default in zip(one.__struct_fields__[1:], one.__struct_defaults__, strict=True):
            value = getattr(one, key)
            if value != default:
                lines.append(f"{key} = {toml_value(value)}")
    return "\n".join(lines) + "\n"


def _inline(table: Mapping[str, Any]) -> str:
    pairs = ((key, _inline(one) if isinstance(one, dict) else toml_value(one)) for key, one in table.items())
    return f"{{ {', '.join(f'{toml_value(key)} = {value}' for key, value in pairs)} }}"


def _properties(owner: str, properties: Mapping[str, Property]) -> list[str]:
    if not properties:
        return []
    return ["", f"[{owner}.properties]", *(f"{toml_value(key)} = {toml_value(one)}" for key, one in properties.items())]
