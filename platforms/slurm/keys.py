"""The keys of Slurm's files, and what Pipistrelle does with each.

They are read from `library/keys.toml`.
"""

import tomllib
from collections.abc import Iterator
from enum import Enum
from importlib.resources import files
from typing import Any, Final, NamedTuple


class KeySupport(Enum):
    """What Pipistrelle does with a key of Slurm's configuration."""

    HONOURED = "honoured"
    #: no decision of the scheduler depends on it
    IDLE = "ignored, no effect"
    #: Slurm might decide differently: a warning
    WARNED = "ignored, has an effect"
    REFUSED = "refused"


class ConfKey(NamedTuple):
    """A key of a file of Slurm.

    Attributes:
        kind: the form of the value, such as ``whole`` or ``choice:A|B``; empty for keys that are not honoured.
        default: Slurm's default, as text.
        meaning: what the key decides, or why it has no effect.
    """

    name: str
    support: KeySupport
    meaning: str
    kind: str = ""
    default: str = ""


#: sections of the table
SECTIONS: Final = (
    *("parameters", "nodes", "partitions", "nodesets", "downnodes", "frontends", "scheduler", "gres", "topology"),
)
#: {key that begins a line of its own, in lower case: its section}
HEADS: Final = {
    "nodename": "nodes",
    "partitionname": "partitions",
    "nodeset": "nodesets",
    "downnodes": "downnodes",
    "frontendname": "frontends",
}


def _keys(tables: dict[str, Any]) -> Iterator[ConfKey]:
    for name, (kind, default, meaning) in tables.get("honoured", {}).items():
        yield ConfKey(name, KeySupport.HONOURED, meaning, kind, default)
    for table, support in (("idle", KeySupport.IDLE), ("warned", KeySupport.WARNED), ("refused", KeySupport.REFUSED)):
        for why, names in tables.get(table, {}).items():
            for name in names.split():
                yield ConfKey(name, support, why)


_TABLES: Final = tomllib.loads(
    files("pipistrelle.platforms.slurm").joinpath("library/keys.toml").read_text(encoding="utf-8")
)
#: {section: {name in lower case: key}}, in the order of the documentation
KEYS: Final[dict[str, dict[str, ConfKey]]] = {
    section: {key.name.lower(): key for key in _keys(_TABLES[section])} for section in SECTIONS
}
