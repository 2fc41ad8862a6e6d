"""Read advance reservations from commands ``scontrol create reservation``.

A line of the file is a command alone, a time and a command, or an event with a command. Source: manual of scontrol,
Slurm 22.05.
"""

import re
import shlex
from collections.abc import Callable, Mapping
from math import inf
from typing import Final

from msgspec.structs import replace

from pipistrelle.platforms.naming.hostlists import NameLists
from pipistrelle.platforms.slurm.conf import SlurmConfigError
from pipistrelle.platforms.slurm.lines import WORD
from pipistrelle.platforms.slurm.values import SlurmValueError, read_count, read_licenses, read_names, read_time
from pipistrelle.protocol.base.errors import did_you_mean, legible, shown
from pipistrelle.schedulers.slurm.config.machine import ReservationSettings

#: {name of an option: field, or "" if it has no effect}
_OPTIONS: Final = {
    "reservation": "name",
    "reservationname": "name",
    "starttime": "start",
    "endtime": "end",
    "duration": "duration",
    "nodes": "nodes",
    "nodecnt": "node_count",
    "nodecount": "node_count",
    "partition": "partition",
    "partitionname": "partition",
    "features": "features",
    "users": "users",
    "user": "users",
    "accounts": "accounts",
    "account": "accounts",
    "flags": "flags",
    "licenses": "licenses",
    "comment": "",
    "maxstartdelay": "",
}
#: most characters of the commands of a file: to split them into words takes a second for each million
_LONGEST: Final = 1_000_000
#: flags that the scheduler knows; those with an empty reason are supported
_FLAGS: Final = {
    "MAINT": "",
    "FLEX": "",
    "IGNORE_JOBS": "",
    "DAILY": "",
    "WEEKLY": "",
    "OVERLAP": "",
    "ANY_NODES": "",
    "STATIC_ALLOC": "",
    "SPEC_NODES": "",
    "PART_NODES": "name the nodes of the partition",
    "NO_HOLD_JOBS_AFTER": "",
    "NO_HOLD_JOBS_AFTER_END": "",
    "WEEKDAY": "",
    "WEEKEND": "",
    "HOURLY": "",
    "PURGE_COMP": "reservations are not removed early",
    "REPLACE": "nodes of a reservation are not replaced",
    "REPLACE_DOWN": "nodes of a reservation are not replaced",
    "FIRST_CORES": "a reservation has whole nodes",
    "TIME_FLOAT": "the start of a reservation does not move",
    "MAGNETIC": "jobs name their reservation",
}
#: flags that the scheduler takes into account
SUPPORTED_FLAGS: Final = frozenset(flag for flag, why in _FLAGS.items() if not why)
_RELATIVE: Final = re.compile(r"now(?:\s*\+\s*(\d{1,9})(seconds?|minutes?|hours?|days?|weeks?)?)?", re.IGNORECASE)
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_EVENT: Final = re.compile(r"-dt\s+(\S+)\s+-e\s+(\S+)\s*\|(.*)|-e\s+(\S+)\s+-dt\s+(\S+)\s*\|(.*)")
_TIMED: Final = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)\s*,\s*\"?(.*?)\"?\s*$")
_EXAMPLE: Final = "scontrol create reservation starttime=... duration=... nodes=..."

#: a function from a date as text to simulated time (s), None if the text is no date
DateReader = Callable[[str], float | None]


def read_reservations(
    text: str, name: str, dates: DateReader, nodes: Mapping[str, int] | None = None
) -> tuple[ReservationSettings, ...]:
    """Return the reservations that the commands of a file create.

    A line has one of three forms: a command, with or without the word ``scontrol``; ``TIME,COMMAND``, where TIME is the
    simulated time (s) of the command; or an event ``-dt TIME -e scontrol | COMMAND``. Other lines of a file of events
    are ignored. A command without a time counts as given before the run.

    Args:
        name: the file's name in messages.
        dates: converts dates to simulated time.
        nodes: {name of a node: its number}; None: names are not checked.

    Raises:
        SlurmConfigError: with file and line, if a command is malformed or not supported.
    """
    found: dict[str, ReservationSettings] = {}
    lists, length = NameLists(), 0
    for number, raw in enumerate(text.splitlines(), start=1):
        where, line = f"{name}:{number}", raw.strip()
        if not line or line.startswith("#") or line.lower().replace(" ", "") == "t,command":
            continue
        announced, command = -inf, line
        event = _EVENT.match(line)
        timed = _TIMED.fullmatch(line)
        if event is not None:
            kind = event[2] or event[4]
            if kind != "scontrol":
                continue
            announced, command = _seconds(event[1] or event[5], where), (event[3] or event[6] or "").strip()
        elif timed is not None:
            announced, command = float(timed[1]), timed[2]
        length += len(command)
        if length > _LONGEST:
            raise SlurmConfigError("the file has too many commands", where=where, expected=f"{_LONGEST:,} characters")
        _apply(found, command, announced, where, dates, nodes, lists)
    return tuple(found.values())


def _seconds(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < inf:
        raise SlurmConfigError("the time of an event is malformed", where=where, expected="seconds", found=shown(text))
    return value


def _apply(
    found: dict[str, ReservationSettings],
    command: str,
    announced: float,
    where: str,
    dates: DateReader,
    nodes: Mapping[str, int] | None,
    lists: NameLists,
) -> None:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise SlurmConfigError(f"a command cannot be split into words ({error})", where=where) from None
    if words and words[0].rpartition("/")[2] == "scontrol":
        words = words[1:]
    while words and words[0].startswith("-"):
        words = words[1:]
    verb = words[0].lower() if words else ""
    if verb != "create" or len(words) < 2 or not words[1].lower().startswith("res"):
        raise SlurmConfigError(
            "this command is not supported", where=where, expected=_EXAMPLE, found=f"'{legible(command, WORD)}'"
        )
    first, mark, own = words[1].partition("=")
    pairs = [word.partition("=") for word in words[2:]] + ([("reservation", "=", own)] if mark else [])
    del first
    values: dict[str, str] = {}
    for key, sign, value in pairs:
        field = _OPTIONS.get(key.lower().rstrip("+-"))
        if field is None or not sign:
            hint = did_you_mean(key.lower(), list(_OPTIONS))
            raise SlurmConfigError(
                f"a reservation has no option '{legible(key, WORD)}'", where=where, expected="OPTION=VALUE", hint=hint
            )
        if field:
            values[field] = value
    made = _reservation(values, announced, where, dates, nodes, lists, len(found) + 1)
    if made.name in found:
        raise SlurmConfigError(f"the reservation {shown(made.name)} is made twice", where=where)
    found[made.name] = made


def _reservation(
    values: Mapping[str, str],
    announced: float,
    where: str,
    dates: DateReader,
    nodes: Mapping[str, int] | None,
    lists: NameLists,
    number: int,
) -> ReservationSettings:
    zero = max(announced, 0.0)
    start = _moment(values.get("start", ""), zero, where, dates)
    if "duration" in values:
        try:
            end = start + read_time(values["duration"])
        except SlurmValueError as error:
            raise SlurmConfigError("the duration is malformed", where=where, expected=error.expected) from None
    elif "end" in values:
        end = _moment(values["end"], zero, where, dates)
    else:
        raise SlurmConfigError("a reservation has no end", where=where, expected="duration=TIME or endtime=TIME")
    if end <= start:
        raise SlurmConfigError("a reservation ends before it begins", where=where)
    flags = tuple(flag.upper() for flag in read_names(values.get("flags", "")))
    for flag in flags:
        why = _FLAGS.get(flag.partition(":")[0].partition("=")[0])
        if why is None or why:
            hint = f"{why[:1].upper()}{why[1:]}." if why else did_you_mean(flag, list(_FLAGS))
            raise SlurmConfigError(f"the flag {legible(flag, WORD)} is not supported", where=where, hint=hint)
    made = ReservationSettings(
        name=values.get("name", f"resv_{number}"),
        start=start,
        end=end,
        announced=announced,
        partition=values.get("partition", ""),
        features=tuple(read_names(values.get("features", "").replace("&", ","))),
        users=read_names(values.get("users", "")),
        accounts=read_names(values.get("accounts", "")),
        flags=flags,
        licenses=_licenses(values.get("licenses", ""), where),
        node_count=_node_count(values.get("node_count", "0"), where),
    )
    named = values.get("nodes", "")
    if named.upper() == "ALL":
        return replace(made, nodes=("ALL",) if nodes is None else tuple(nodes))
    members = tuple(lists.expanded(named, where)) if named else ()
    for member in members if nodes is not None else ():
        if member not in nodes:  # type: ignore[operator]
            raise SlurmConfigError(f"there is no node {shown(member)}", where=where)
    if not (members or made.node_count or made.licenses):
        raise SlurmConfigError("a reservation has no nodes", where=where, expected="nodes=NAMES or nodecnt=NUMBER")
    return replace(made, nodes=members)


def _moment(text: str, zero: float, where: str, dates: DateReader) -> float:
    relative = _RELATIVE.fullmatch(text or "now")
    if relative is not None:
        return zero + int(relative[1] or 0) * _UNITS[(relative[2] or "s")[0].lower()]
    found = dates(text)
    if found is None:
        raise SlurmConfigError(
            "a time of a reservation cannot be read",
            where=where,
            expected="now+TIME, or a date as 2026-01-05T08:00:00 in a run whose time 0 has a date",
            found=f"'{legible(text, WORD)}'",
            hint="Add ',zero=DATE' to the file's name to give the date of time 0.",
        )
    return found


def _node_count(text: str, where: str) -> int:
    try:
        return sum(read_count(part) or 0 for part in read_names(text))
    except SlurmValueError as error:
        raise SlurmConfigError("the number of nodes is malformed", where=where, expected=error.expected) from None


def _licenses(text: str, where: str) -> dict[str, int]:
    try:
        return read_licenses(text)
    except SlurmValueError as error:
        raise SlurmConfigError("the licences are malformed", where=where, expected=error.expected) from None
