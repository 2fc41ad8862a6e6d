"""Read tables of nodes from CSV, TOML, or the lifetimes of Titan's GPUs."""

import os
import re
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any, Final

from pipistrelle.platforms.description import Property
from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.node_rows import NodeRow
from pipistrelle.protocol.base.errors import PipistrelleError, did_you_mean, shown
from pipistrelle.protocol.base.toml import read_toml
from pipistrelle.traces.clusters.csv_rows import CsvLines
from pipistrelle.traces.files import open_trace
from pipistrelle.traces.outages.rows import iso_time
from pipistrelle.traces.outages.titan import SIGNS, gpus_at

_TEXT: Final = re.compile(r"(?P<file>.+?)(?:,at=(?P<at>[^,]*))?", re.DOTALL)
_WHOLE: Final = re.compile(r"-?[0-9]{1,19}")
#: how much of a TOML file decides whether it is a table of nodes (bytes)
_SNIFFED: Final = 1 << 16
_OWN: Final = ("name", "location", "class", "mttf", "age", "installed")
_MANUAL: Final = "'pipistrelle help placement' describes tables of nodes."
_DATE: Final = "a date, such as 2017-05-01 or '2017-05-01 08:00'"


def load_node_rows(text: str, folder: str = "") -> list[NodeRow]:
    """Read the rows of a table of nodes.

    Args:
        text: ``FILE`` or ``FILE,at=DATE``. FILE is CSV with a header, TOML with ``[[nodes]]`` tables, or
            lifetimes of Titan's GPUs. DATE is the date of time 0. GPU lifetimes and dates of installation require it.
        folder: FILE is relative to this folder; empty: the working directory.

    Raises:
        PipistrelleError: the file is unreadable, a row is malformed, or a date is missing or later than time 0.
    """
    found = _TEXT.fullmatch(text)
    if found is None:
        raise PlatformError("a table of nodes has no name", expected="FILE or FILE,at=DATE", found=shown(text))
    name = os.path.join(folder, found["file"])
    at = None if found["at"] is None else _date(found["at"], f"at of {text}")
    if name.endswith(".toml"):
        return _of_toml(name, at)
    with open_trace(name, what="a table of nodes") as stream:
        head = stream.peek().partition(b"\n")[0].decode("utf-8-sig", "replace")
        if {cell.strip() for cell in head.split(",")}.issuperset(SIGNS):
            if at is None:
                raise PlatformError(
                    "a table of GPU lives needs a date, to select those in service",
                    where=name,
                    expected=f"{found['file']},at=2017-05-01",
                )
            return [
                NodeRow(where=name, name=place, node_class=group, age=age)
                for place, (group, age) in sorted(gpus_at(stream, name, at).items())
            ]
        lines = CsvLines(stream, name)
        return [_row(cells, f"{name}, line {cells.line}", at, _plain) for cells in lines]


def file_of(text: str) -> str:
    """Return the file of ``FILE`` or ``FILE,at=DATE``."""
    found = _TEXT.fullmatch(text)
    return text if found is None else found["file"]


def is_node_table(text: str) -> bool:
    """Return whether ``FILE`` or ``FILE,at=DATE`` is a table of nodes.

    An existing file is a table of nodes in these cases: a date is given; its CSV header has a name or location and
    another column for nodes; it has the header of Titan's GPU lifetimes; its TOML begins with ``[[nodes]]``.
    """
    found = _TEXT.fullmatch(text)
    if found is None or (found["at"] is None and not os.path.isfile(text)):
        return False
    if found["at"] is not None and os.path.isfile(found["file"]):
        return True
    try:
        with open_trace(text, what="a table of nodes") as stream:
            if not text.endswith(".toml"):
                head = stream.peek().partition(b"\n")[0].decode("utf-8-sig", "replace")
                cells = {cell.strip() for cell in head.split(",")}
                return cells.issuperset(SIGNS) or (bool(cells & {"name", "location"}) and len(cells & {*_OWN}) > 1)
            text = stream.read(_SNIFFED).decode("utf-8-sig", "replace")
            lines = (line.strip() for line in text.splitlines())
            return next((line for line in lines if line and line[0] != "#"), "").startswith("[[nodes]]")
    except PipistrelleError:  # its own reader reports the error better
        return False


def _of_toml(name: str, at: float | None) -> list[NodeRow]:
    hint = "A table of nodes has one [[nodes]] table per node."
    with open_trace(name, what="a table of nodes") as stream:
        text = stream.read().decode("utf-8-sig", "replace")
    raw = read_toml(text, name, PlatformError, manual=_MANUAL, hint=hint)
    tables = raw.get("nodes")
    if set(raw) != {"nodes"} or not isinstance(tables, list) or not all(isinstance(one, dict) for one in tables):
        raise PlatformError("this is not a table of nodes", where=name, expected="[[nodes]] tables, and nothing else")
    rows = []
    for index, table in enumerate(tables):
        where = f"{name}: nodes[{index}]"
        dates = {key: str(value) for key, value in table.items() if isinstance(value, date)}
        rows.append(_row({**table, **dates}, where, at, _told))
    return rows


def _row(cells: Mapping[str, Any], where: str, at: float | None, read: Callable[[Any, str, str], Property]) -> NodeRow:
    said = {key: value for key, value in cells.items() if value != ""}
    name, location = str(said.get("name", "")), str(said.get("location", ""))
    if not name and not location:
        raise PlatformError(
            "a row names no node", where=where, expected="a name or a location", hint=did_you_mean("name", list(cells))
        )
    times = {key: _time(said[key], f"{where}, {key}") for key in ("mttf", "age") if key in said}
    if "installed" in said:
        if "age" in said:
            raise PlatformError(
                "a node has both an age and a date of installation", where=where, expected="one of them"
            )
        times["age"] = _age(str(said["installed"]), at, where)
    return NodeRow(
        where=where,
        name=name,
        location=location,
        node_class=str(said.get("class", "")),
        mttf=times.get("mttf"),
        age=times.get("age"),
        properties={key: read(value, key, where) for key, value in said.items() if key not in _OWN},
    )


def _time(value: Any, where: str) -> float | str:
    """Return a time as a number of seconds, or as a text with a unit.

    Such a text is parsed later.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, str):
        raise PlatformError(
            "a time is malformed", where=where, expected="seconds, or a time such as 3y", found=shown(value)
        )
    try:
        return float(value)
    except ValueError:
        return value


def _age(text: str, at: float | None, where: str) -> float:
    if at is None:
        raise PlatformError(
            "a date of installation needs the date of time 0", where=where, expected="FILE,at=DATE instead of FILE"
        )
    age = at - _date(text, f"{where}, installed")
    if age < 0:
        raise PlatformError(
            "a node was installed after time 0",
            where=where,
            found=shown(text),
            hint="Remove the node, or use a later at=DATE.",
        )
    return age


def _date(text: str, where: str) -> float:
    time = iso_time(text if len(text) > len("2017-05-01") else f"{text} 00:00")
    if time is None:
        raise PlatformError("a date cannot be read", where=where, expected=_DATE, found=shown(text))
    return time


def _plain(text: str, _key: str, _where: str) -> Property:
    if text in ("true", "false"):
        return text == "true"
    if _WHOLE.fullmatch(text):
        return int(text)
    try:
        return float(text)
    except ValueError:
        return text


def _told(value: Any, key: str, where: str) -> Property:
    if not isinstance(value, str | int | float | bool):
        raise PlatformError(
            "a value of the wrong type",
            where=f"{where}.{key}",
            expected="text, a number, true or false",
            found=shown(value),
        )
    return value
