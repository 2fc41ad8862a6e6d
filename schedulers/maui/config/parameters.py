"""The parameters of a maui.cfg; `library/parameters.toml` has most of them."""

import tomllib
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, Final, NamedTuple


class Support(Enum):
    """How a parameter in a file is handled."""

    YES = "supported"
    #: only for the running daemon (logs, ports, files, statistics, its simulator), not for decisions
    DAEMON = "of the daemon"
    #: no decision here depends on it
    IDLE = "without effect"
    #: Maui would decide differently
    NO = "not supported"


class Kind(Enum):
    """The type of a parameter's text."""

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
    """One parameter; ``lacking`` has the choices that only Maui itself supports."""

    name: str
    kind: Kind
    default: Value
    unit: str
    meaning: str
    support: Support = Support.YES
    choices: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()


def _cap(name: str, what: str) -> Parameter:
    return Parameter(name, Kind.NUMBER, 0.0, "", f"largest value of {what} before its weight; 0: none")


#: (component, name of its weight, weight's default, name of its cap)
COMPONENTS: Final = (
    ("SERV", "SERVICEWEIGHT", 1, "SERVCAP"),
    ("TARG", "TARGWEIGHT", 0, "TARGCAP"),
    ("CRED", "CREDWEIGHT", 1, "CREDCAP"),
    ("FS", "FSWEIGHT", 0, "FSCAP"),
    ("RES", "RESWEIGHT", 0, "RESCAP"),
)
#: (component, subcomponent, weight's default, the factor); the weight is subcomponent + WEIGHT
SUBCOMPONENTS: Final = (
    ("SERV", "QUEUETIME", 1, "effective queue time in minutes"),
    ("SERV", "XFACTOR", 0, "expansion factor, 1 + queue time / walltime"),
    ("SERV", "BYPASS", 0, "number of jobs of lower priority that were backfilled before it"),
    ("TARG", "TARGETQUEUETIME", 0, "(QTTARGET - queue time in seconds)^-2"),
    ("TARG", "TARGETXFACTOR", 0, "(XFTARGET - expansion factor)^-2"),
    ("CRED", "USER", 0, "PRIORITY of the user"),
    ("CRED", "GROUP", 0, "PRIORITY of the group"),
    ("CRED", "ACCOUNT", 0, "PRIORITY of the account"),
    ("CRED", "QOS", 0, "PRIORITY of the QOS"),
    ("CRED", "CLASS", 0, "PRIORITY of the class"),
    ("FS", "FSUSER", 0, "FSTARGET - usage in percent, of the user"),
    ("FS", "FSGROUP", 0, "FSTARGET - usage in percent, of the group"),
    ("FS", "FSACCOUNT", 0, "FSTARGET - usage in percent, of the account"),
    ("FS", "FSQOS", 0, "FSTARGET - usage in percent, of the QOS"),
    ("FS", "FSCLASS", 0, "FSTARGET - usage in percent, of the class"),
    ("RES", "NODE", 0, "nodes asked for"),
    ("RES", "PROC", 0, "processors asked for"),
    ("RES", "PS", 0, "processors x walltime in seconds"),
    ("RES", "PE", 0, "processor equivalents, here the processors"),
    ("RES", "WALLTIME", 0, "walltime in seconds"),
)

#: {old parameter: attribute of a QOS}
OLD_QOS: Final = {
    "QOSPRIORITY": "PRIORITY",
    "QOSQTWEIGHT": "QTWEIGHT",
    "QOSXFWEIGHT": "XFWEIGHT",
    "QOSQTTARGET": "QTTARGET",
    "QOSXFTARGET": "XFTARGET",
    "QOSFLAGS": "QFLAGS",
}


def _parameters() -> Iterator[Parameter]:
    tables = tomllib.loads((Path(__file__).parent / "library" / "parameters.toml").read_text(encoding="utf-8"))
    for component, weight, default, _ in COMPONENTS:
        yield Parameter(weight, Kind.NUMBER, default, "", f"weight of the component {component}")
    for _, name, default, what in SUBCOMPONENTS:
        yield Parameter(f"{name}WEIGHT", Kind.NUMBER, default, "", what)
    for component, _, _, cap in COMPONENTS:
        yield _cap(cap, f"the component {component}")
    for _, name, _, _ in SUBCOMPONENTS:
        yield _cap(f"{name}CAP", f"the factor {name}")
    for name, keys in tables["decisions"].items():
        default, choices, lacking = (_tuples(keys.get(key, ())) for key in ("default", "choices", "lacking"))
        yield Parameter(
            name, Kind(keys["kind"]), default, keys.get("unit", ""), keys["meaning"], Support.YES, choices, lacking
        )
    for name, meaning in tables["objects"].items():
        yield Parameter(name, Kind.ATTRIBUTES, "", "", meaning)
    for old, new in OLD_QOS.items():
        yield Parameter(old, Kind.TEXT, "", "", f"old way to write QOSCFG[X] {new}=")
    for support, table in ((Support.IDLE, "without_effect"), (Support.NO, "not_supported"), (Support.DAEMON, "daemon")):
        for why, names in tables[table].items():
            for name in names.split():
                yield Parameter(name, Kind.TEXT, "", "", why, support)


def _tuples(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


#: {name: parameter}, in the order of the documentation
PARAMETERS: Final = {parameter.name: parameter for parameter in _parameters()}

#: {other name: name}, from the manual's own examples and older versions
ALIASES: Final[dict[str, str]] = {
    "SERVWEIGHT": "SERVICEWEIGHT",
    "TARGETWEIGHT": "TARGWEIGHT",
    "RESOURCEWEIGHT": "RESWEIGHT",
    "AFSWEIGHT": "FSACCOUNTWEIGHT",
    "XFWEIGHT": "XFACTORWEIGHT",
    "SYSTEMCFG": "SYSCFG",
    "SYSTEMMAXJOBPROC": "SYSTEMMAXPROCPERJOB",
    "SYSTEMMAXJOBPROCSECOND": "SYSTEMMAXPROCSECONDPERJOB",
}
#: {parameter: {other value: its meaning in Maui}}: booleans of older versions, and values of its sample file
SYNONYMS: Final[dict[str, dict[str, str]]] = {
    "FSPOLICY": dict.fromkeys(("TRUE", "ON", "YES", "1"), "DEDICATEDPS")
    | dict.fromkeys(("FALSE", "OFF", "NO", "0", "PSDEDICATED"), "NONE")
}
