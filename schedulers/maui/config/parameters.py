"""The parameters of a maui.cfg, read from `library/parameters.toml`."""

import tomllib
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Final, NamedTuple


class Support(Enum):
    """How Pipistrelle handles a parameter of a maui.cfg."""

    YES = "supported"
    #: concerns only Maui's daemon (logs, ports, files, statistics, its simulator), not decisions
    DAEMON = "of the daemon"
    #: read, but no decision of this policy depends on it
    IDLE = "without effect"
    #: not supported: Maui would decide differently
    NO = "not supported"


class Kind(Enum):
    """The type of a parameter's value in a maui.cfg."""

    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    TIME = "time"
    CHOICE = "choice"
    NAMES = "names"
    ATTRIBUTES = "attributes"
    TEXT = "text"


Value = int | float | bool | str | tuple[str, ...]


class Parameter(NamedTuple):
    """A parameter of maui.cfg.

    ``lacking`` lists the values that Maui supports but Pipistrelle does not.
    """

    name: str
    kind: Kind
    default: Value
    unit: str
    meaning: str
    support: Support = Support.YES
    choices: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()


TABLES: Final = tomllib.loads((Path(__file__).parent / "library" / "parameters.toml").read_text(encoding="utf-8"))
#: (component, name of its weight, weight's default, name of its cap)
COMPONENTS: Final[tuple[tuple[str, str, int, str], ...]] = tuple(tuple(row) for row in TABLES["components"])
#: (component, subcomponent, weight's default, the factor); the weight is subcomponent + WEIGHT
SUBCOMPONENTS: Final[tuple[tuple[str, str, int, str], ...]] = tuple(tuple(row) for row in TABLES["subcomponents"])
#: {old parameter: attribute of a QOS}
OLD_QOS: Final[dict[str, str]] = TABLES["old_qos"]
#: {other name of a parameter: name}
ALIASES: Final[dict[str, str]] = TABLES["aliases"]
#: {parameter: {other value: its meaning in Maui}}
SYNONYMS: Final[dict[str, dict[str, str]]] = TABLES["synonyms"]


def reasons(table: Mapping[str, str]) -> dict[str, str]:
    """Return {name: reason} from a table {reason: names separated by spaces}."""
    return {name: why for why, names in table.items() for name in names.split()}


def _cap(name: str, what: str) -> Parameter:
    return Parameter(name, Kind.NUMBER, 0.0, "", f"largest value of {what} before its weight; 0: none")


def _parameters() -> Iterator[Parameter]:
    for component, weight, default, _ in COMPONENTS:
        yield Parameter(weight, Kind.NUMBER, default, "", f"weight of the component {component}")
    for _, name, default, what in SUBCOMPONENTS:
        yield Parameter(f"{name}WEIGHT", Kind.NUMBER, default, "", what)
    for component, _, _, cap in COMPONENTS:
        yield _cap(cap, f"the component {component}")
    for _, name, _, _ in SUBCOMPONENTS:
        yield _cap(f"{name}CAP", f"the factor {name}")
    for name, keys in TABLES["decisions"].items():
        default, choices, lacking = (_tuples(keys.get(key, ())) for key in ("default", "choices", "lacking"))
        yield Parameter(
            name, Kind(keys["kind"]), default, keys.get("unit", ""), keys["meaning"], Support.YES, choices, lacking
        )
    for name, meaning in TABLES["objects"].items():
        yield Parameter(name, Kind.ATTRIBUTES, "", "", meaning)
    for old, new in OLD_QOS.items():
        yield Parameter(old, Kind.TEXT, "", "", f"old way to write QOSCFG[X] {new}=")
    for support, table in ((Support.IDLE, "without_effect"), (Support.NO, "not_supported"), (Support.DAEMON, "daemon")):
        for name, why in reasons(TABLES[table]).items():
            yield Parameter(name, Kind.TEXT, "", "", why, support)


def _tuples(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


#: {name: parameter}, in the order of the documentation
PARAMETERS: Final = {parameter.name: parameter for parameter in _parameters()}
