"""Values in a maui.cfg: numbers, times, lists, and attributes such as USERCFG's."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import inf, isfinite
from typing import Any, Final

from pipistrelle.protocol.units.text import LARGEST_UNIT
from pipistrelle.schedulers.maui.config.hosts import check_host
from pipistrelle.schedulers.maui.config.parameters import SYNONYMS, TABLES, Kind, Parameter, Value, reasons
from pipistrelle.schedulers.maui.config.settings import (
    KINDS,
    PREEMPTEE,
    PREEMPTOR,
    Credential,
    Limit,
    Standing,
    TargetMode,
)

_TIME: Final = re.compile(r"(?:(?:(?:(\d{1,9}):)?(\d{1,9}):)?(\d{1,9}):)?(\d{1,12})")
_TIME_FORMAT: Final = "[[[DD:]HH:]MM:]SS or INFINITY"
_ENDLESS: Final = ("INFINITY", "INFINITE", "UNLIMITED")
_SEPARATORS: Final = re.compile(r"[\s,:]+")
_LARGEST: Final = 1e15


class BadValue(Exception):
    """A value of the wrong kind; ``expected`` describes a correct value."""

    def __init__(self, expected: str) -> None:
        self.expected = expected
        super().__init__(expected)


class NotSupported(Exception):
    """A value or an attribute that Maui supports but Pipistrelle does not.

    The error's text gives the reason.
    """


class WithoutEffect(NotSupported):
    """An unsupported value or attribute that affects no decision."""


def read_time(text: str) -> float:
    """Return a time in seconds.

    INFINITY gives inf, and -1 gives -1. Raise BadValue for other text.
    """
    if text.upper() in _ENDLESS:
        return inf
    if text == "-1":
        return -1.0
    match = _TIME.fullmatch(text)
    if match is None:
        raise BadValue(_TIME_FORMAT)
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def read_number(text: str, *, whole: bool = False) -> float:
    """Parse a finite number; with ``whole``, it must be a whole number.

    Raise BadValue for other text.
    """
    expected = "a whole number" if whole else "a number"
    try:
        value = float(text) if text.isascii() and "_" not in text else inf
    except ValueError:
        raise BadValue(expected) from None
    if not isfinite(value) or (whole and value != int(value)):
        raise BadValue(expected)
    if abs(value) > _LARGEST:
        raise BadValue(f"{expected} from {-_LARGEST:g} to {_LARGEST:g}")
    return value


def read_boolean(text: str) -> bool:
    """Parse a boolean in any spelling that Maui accepts.

    Raise BadValue for other text.
    """
    upper = text.upper()
    if upper in ("TRUE", "ON", "YES", "1"):
        return True
    if upper in ("FALSE", "OFF", "NO", "0"):
        return False
    raise BadValue("TRUE or FALSE")


def read_names(text: str) -> tuple[str, ...]:
    """Return names separated by commas, colons or spaces; BadValue if there are none."""
    names = tuple(name for name in _SEPARATORS.split(text) if name)
    if not names:
        raise BadValue("a list of names")
    return names


def read_value(parameter: Parameter, text: str) -> Value:
    """Parse the value of a parameter.

    Raises:
        BadValue: the value is wrong.
        NotSupported: Maui supports the value, but Pipistrelle does not.
    """
    if parameter.kind is Kind.CHOICE:
        upper = SYNONYMS.get(parameter.name, {}).get(text.upper(), text.upper())
        if upper in parameter.lacking:
            raise NotSupported(f"known are {', '.join(parameter.choices)}; {parameter.default} stays")
        if upper not in parameter.choices:
            raise BadValue(f"one of {', '.join(parameter.choices)}")
        return upper
    if parameter.kind is Kind.NAMES:
        return read_names(text)
    if len(text.split()) > 1:
        raise BadValue("one value")
    if parameter.kind is Kind.TIME:
        value = read_time(text)
    elif parameter.kind is Kind.BOOLEAN:
        return read_boolean(text)
    else:
        value = read_number(text, whole=parameter.kind is Kind.INTEGER)
    least, most = _RANGES.get(parameter.name, (-inf, inf))
    if not least <= value <= most:
        raise BadValue(f"a value of at least {least:g}" + (f" and at most {most:g}" if most != inf else ""))
    return int(value) if parameter.kind is Kind.INTEGER else value


_RANGES: Final = {
    "FSDEPTH": (1, 1024),
    "FSINTERVAL": (1, inf),
    "FSDECAY": (0, 1),
    "BACKFILLDEPTH": (0, inf),
    "RESERVATIONDEPTH": (0, inf),
    "RESDEPTH": (1, inf),
    "DEFERTIME": (0, _LARGEST),
    "SYSTEMDEFAULTJOBWALLTIME": (1, _LARGEST),
}

#: {attribute: (metric, whether its values are times)}
_METRICS: Final = {
    "MAXJOB": ("JOB", False),
    "MAXNODE": ("NODE", False),
    "MAXPROC": ("PROC", False),
    "MAXPE": ("PROC", False),
    "MAXPS": ("PS", False),
    "MAXWC": ("WC", True),
    "MAXIJOB": ("IJOB", False),
}


def _read_limit(text: str) -> float:
    """Parse a limit; return inf for 0, -1 and INFINITY, which mean no limit."""
    if text.upper() in _ENDLESS:
        return inf
    value = read_number(text, whole=True)
    if value < -1:
        raise BadValue("a whole number, or INFINITY")
    return value if value > 0 else inf


#: {attribute: (field, reader of its value)}
_FIELDS: Final[dict[str, tuple[str, Callable[[str], Any]]]] = {
    "MAXNODEPERJOB": ("most_nodes_per_job", _read_limit),
    "MAX.NODE": ("most_nodes_per_job", _read_limit),
    "MAXPROCPERJOB": ("most_units_per_job", _read_limit),
    "MAX.PROC": ("most_units_per_job", _read_limit),
    "MAX.WCLIMIT": ("longest_job", lambda text: read_time(text) or inf),
    "QDEF": ("default_qos", lambda text: read_names(text)[0]),
    "QTWEIGHT": ("queue_time_weight", read_number),
    "XFWEIGHT": ("xfactor_weight", read_number),
    "QTTARGET": ("queue_time_target", read_time),
    "XFTARGET": ("xfactor_target", read_number),
}
_QOS_ONLY: Final = ("QTWEIGHT", "XFWEIGHT", "QTTARGET", "XFTARGET")
#: {attribute: why no decision depends on it}, and {attribute: why it is not supported}
_CREDENTIAL_IDLE, _CREDENTIAL_LACKING = map(reasons, TABLES["credential"].values())
_FLAGS: Final = ("FLAGS", "QFLAGS", "JOBFLAGS")
_KNOWN_FLAGS: Final = (PREEMPTOR, PREEMPTEE)
_MARKS: Final = {mode.value: mode for mode in TargetMode if mode.value}
_LIMIT: Final = re.compile(r"(MAX[A-Z]+?)(?:PER(USER|GROUP|ACCOUNT|CLASS|QOS)|\[([A-Z]+)\])?")

#: known attributes of USERCFG, GROUPCFG, ..., whether supported or not
CREDENTIAL_ATTRIBUTES: Final = frozenset(
    {"PRIORITY", "FSTARGET", *_FLAGS, *_METRICS, *_FIELDS, *_CREDENTIAL_IDLE, *_CREDENTIAL_LACKING}
    | {f"{metric}PER{kind}" for metric in _METRICS for kind in KINDS}
)


def credential_attribute(credential: Credential, kind: str, attribute: str, value: str) -> Credential:
    """Return a copy of a credential with one attribute from maui.cfg added.

    ``kind`` is the kind of credential: USER, ..., QOS or SYS.

    Raises:
        KeyError: unknown attribute.
        NotSupported: only Maui itself supports the attribute or its value.
        BadValue: the value is of the wrong kind.
    """
    _refuse(attribute, _CREDENTIAL_IDLE, _CREDENTIAL_LACKING)
    if (match := _LIMIT.fullmatch(attribute)) is not None and match[1] in _METRICS:
        return _with_limit(credential, match[1], match[2] or match[3], value)
    if kind == "SYS" and attribute in ("PRIORITY", "FSTARGET"):
        raise NotSupported("it would be the same for all jobs")
    if attribute == "PRIORITY":
        return replace(credential, priority=read_number(value))
    if attribute == "FSTARGET":
        mode = _MARKS.get(value[-1:], TargetMode.TARGET)
        target = read_number(value[: len(value) - len(mode.value)])
        if target < 0:
            raise BadValue("a percentage of at least 0, optionally followed by + - % or ^")
        return replace(credential, target=target, mode=mode)
    if attribute in _FLAGS:
        return replace(credential, flags=credential.flags | _read_flags(kind, attribute, value))
    field, reader = _FIELDS[attribute]
    if attribute in _QOS_ONLY and kind != "QOS":
        raise NotSupported("it is an attribute of QOSCFG")
    return replace(credential, **{field: reader(value)})


def _read_flags(kind: str, attribute: str, value: str) -> frozenset[str]:
    if kind == "SYS":
        raise NotSupported("it would be the same for all jobs")
    if attribute == "QFLAGS" and kind != "QOS":
        raise NotSupported("it is an attribute of QOSCFG")
    flags = frozenset(name.upper() for name in re.split(r"[\s,:;]+", value) if name)
    if not flags:
        raise BadValue("a list of flags")
    for name in sorted(flags - {*_KNOWN_FLAGS}):
        raise NotSupported(f"the flags are {' and '.join(_KNOWN_FLAGS)}, not {name}")
    return flags


def _refuse(attribute: str, idle: Mapping[str, str], lacking: Mapping[str, str]) -> None:
    if attribute in idle:
        raise WithoutEffect(idle[attribute])
    if attribute in lacking:
        raise NotSupported(lacking[attribute])


def _with_limit(credential: Credential, attribute: str, per: str | None, value: str) -> Credential:
    if per is not None and per not in KINDS:
        raise NotSupported(f"a limit is per {', '.join(KINDS)}, or for all together")
    metric, is_time = _METRICS[attribute]
    if metric == "IJOB" and per is not None:
        raise NotSupported("MAXIJOB is for all together")
    read: Callable[[str], float] = read_time if is_time else _read_limit
    parts = value.split(",")
    if len(parts) > 2:
        raise BadValue("HARD or SOFT,HARD")
    numbers = [inf if (number := read(part)) <= 0 else number for part in parts]
    soft, hard = numbers[0], numbers[-1]
    if soft > hard:
        raise BadValue("SOFT,HARD with a soft limit not above the hard one")
    others = tuple(limit for limit in credential.limits if (limit.metric, limit.per) != (metric, per))
    return replace(credential, limits=(*others, Limit(metric, per, soft, hard)))


_DAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_STANDING_IDLE, _STANDING_LACKING = map(reasons, TABLES["standing"].values())
_ACCESS: Final = {f"{kind}LIST": kind for kind in KINDS}


def standing_attribute(standing: Standing, attribute: str, value: str) -> Standing:
    """Return a copy of a standing reservation with one attribute from maui.cfg added.

    Raises the errors of `credential_attribute`.
    """
    _refuse(attribute, _STANDING_IDLE, _STANDING_LACKING)
    if attribute in _ACCESS:
        names = read_names(value)
        if any(name[0] in "!&+-*" or name[-1] in "+-*&=" for name in names):
            raise NotSupported("marks of access (! - + * &) are not read")
        return replace(standing, access={**standing.access, _ACCESS[attribute]: names})
    field, reader = _STANDING[attribute]
    return replace(standing, **{field: reader(value)})


def _read_period(text: str) -> str:
    if text.upper() not in ("DAY", "WEEK", "INFINITY"):
        raise BadValue("DAY, WEEK or INFINITY")
    return text.upper()


def _read_days(text: str) -> tuple[int, ...]:
    days = [name.upper() for name in read_names(text)]
    if any(day[:3] not in _DAYS for day in days if day != "ALL"):
        raise BadValue("days such as Mon,Tue,Wed, or ALL")
    return tuple(range(7)) if "ALL" in days else tuple(sorted({_DAYS.index(day[:3]) for day in days}))


def _read_count(text: str) -> int:
    number = int(read_number(text, whole=True))
    if not 0 <= number <= LARGEST_UNIT:
        raise BadValue(f"a whole number from 0 to {LARGEST_UNIT}")
    return number


def _read_hosts(text: str) -> tuple[str, ...] | None:
    """Parse a list of hosts, separated by commas; return None for ALL.

    The hosts are mapped to units of the machine later.
    """
    if text.upper() == "ALL":
        return None
    hosts = tuple(host for host in text.split(",") if host)
    try:
        for host in hosts:
            check_host(host)
    except ValueError as error:
        raise BadValue(str(error)) from None
    if not hosts:
        raise BadValue("hosts, separated by commas, or ALL")
    return hosts


def _read_resources(text: str) -> int:
    units = 1
    for piece in text.split(";"):
        name, mark, value = piece.partition(":" if ":" in piece else "=")
        if name.upper() != "PROCS" or not mark:
            raise NotSupported("a task has only processors, such as RESOURCES=PROCS:4")
        number = read_number(value, whole=True)
        if number == 0 or not -1 <= number <= LARGEST_UNIT:
            raise BadValue("a number of processors, or -1 for a whole node")
        units = int(number) if number > 0 else 1
    return units


#: {attribute of SRCFG: (field of a standing reservation, reader of its value)}
_STANDING: Final[dict[str, tuple[str, Callable[[str], Any]]]] = {
    "PERIOD": ("period", _read_period),
    "STARTTIME": ("start", read_time),
    "ENDTIME": ("end", read_time),
    "TIMELIMIT": ("time_limit", read_time),
    "DAYS": ("days", _read_days),
    "DEPTH": ("depth", _read_count),
    "TASKCOUNT": ("tasks", _read_count),
    "HOSTLIST": ("hosts", _read_hosts),
    "RESOURCES": ("units_per_task", _read_resources),
}
#: known attributes of SRCFG, whether supported or not
STANDING_ATTRIBUTES: Final = frozenset(
    _STANDING.keys() | _STANDING_IDLE.keys() | _STANDING_LACKING.keys() | _ACCESS.keys()
)
