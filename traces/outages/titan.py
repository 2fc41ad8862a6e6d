"""Read OLCF's table of the lives of Titan's GPUs, 2013 to 2019.

Source: G. Ostrouchov et al., "GPU Lifetimes on Titan Supercomputer: Survival Analysis and Reliability", SC20; table
TitanGPULife.
"""

import io
from collections import defaultdict
from dataclasses import dataclass
from typing import Final

import numpy as np

from pipistrelle.traces.clusters.csv_rows import Cells, CsvLines
from pipistrelle.traces.files import PathText, trace_name
from pipistrelle.traces.outages.log import Lives, OutageLog
from pipistrelle.traces.outages.rows import OUTAGE_HINT, Row, assemble, iso_time, seconds, unix_time

_NEEDED: Final = ("SN", "location", "insert", "remove", "duration", "event")
#: columns that identify this table
SIGNS: Final = ("SN", "location", "insert", "remove", "event")
_DATE: Final = "a time such as 2017-04-09 21:36:19"
_EVENTS: Final = ("DBE", "OTB")  # a double-bit error; a GPU that fell off the bus
#: "new" GPUs were first seen from 2016 on, when GPUs were exchanged, as in TitanGPULife's own summary
CLASSES: Final = ("old", "new")
_EXCHANGE: Final = unix_time(2016, 1, 1)


@dataclass(frozen=True, slots=True)
class _Life:
    line: int
    serial: str
    place: str
    insert: float | None
    remove: float
    length: float
    event: str


def parse_titan(stream: io.BufferedReader, path: PathText) -> OutageLog:
    """Parse the failures of Titan's GPUs, and the lives of the GPUs.

    A node is a location, such as ``c11-2c1s4n1``. A row with an event is an outage that begins when the GPU was
    removed. Its end is unknown, because `insert` is the date of an inventory. A row without `insert` is a further event
    of a GPU that has another row. It is an outage, but not a further life. The class of a GPU is ``new`` if it was
    first seen from 2016 on, otherwise ``old``. A GPU's age includes its time in earlier locations. Local times are
    taken as UTC.
    """
    where = str(path)
    found, by_gpu, batch = _read(stream, where)
    known = [life.insert for life in found if life.insert is not None]
    span = (min(known, default=0.0), max((life.remove for life in found), default=0.0))
    without = sum(life.insert is None for life in found)
    return assemble(
        [
            Row(life.line, life.place, life.remove, float("nan"), life.event, group=batch[life.serial])
            for life in found
            if life.event
        ],
        name=trace_name(path).removesuffix(".csv"),
        source=where,
        format="Titan",
        absolute=True,
        watch_known=True,
        known={life.place for life in found},
        span=span,
        class_of=lambda _: "",
        classes=CLASSES,
        lives=_lives(by_gpu, batch),
        notes=(f"{len(found):,} rows; {without:,} of them are further events within another row's life",),
    )


def gpus_at(stream: io.BufferedReader, path: PathText, time: float) -> dict[str, tuple[str, float]]:
    """Return {location: (class, age in s)} of the GPUs installed at a Unix time.

    A GPU is installed from `insert` until before `remove`; of two GPUs in one location, the one with the later `insert`
    counts. Classes, ages and errors are as in `parse_titan`.
    """
    _, by_gpu, batch = _read(stream, str(path))
    there: dict[str, tuple[float, str, float]] = {}
    for serial, lives in by_gpu.items():
        age = 0.0
        for life in sorted(lives, key=lambda one: (one.insert or 0.0, one.line)):
            if life.insert is None:
                continue
            if life.insert <= time < life.remove:
                found = (life.insert, batch[serial], age + time - life.insert)
                there[life.place] = max(there.get(life.place, found), found)
            age += life.length
    return {place: (group, age) for place, (_, group, age) in there.items()}


def _read(stream: io.BufferedReader, where: str) -> tuple[list[_Life], dict[str, list[_Life]], dict[str, str]]:
    """Return all rows of the table, the rows of each GPU, and each GPU's class."""
    found = [
        _life(cells)
        for cells in CsvLines(stream, where, _NEEDED, "the columns of TitanGPULife's table of lives", OUTAGE_HINT)
    ]
    by_gpu: dict[str, list[_Life]] = defaultdict(list)
    for life in found:
        by_gpu[life.serial].append(life)
    return found, by_gpu, {serial: _batch(lives) for serial, lives in by_gpu.items()}


def _life(cells: Cells) -> _Life:
    insert = iso_time(cells["insert"]) if cells["insert"] else None
    remove = iso_time(cells["remove"])
    length = seconds(cells["duration"]) if cells["duration"] else 0.0
    for column, value, form in (("insert", insert, _DATE), ("remove", remove, _DATE), ("duration", length, "seconds")):
        if value is None and cells[column]:
            raise cells.fault(f"'{column}' cannot be read", form, column)
    if remove is None or length is None:
        raise cells.fault("'remove' is missing", _DATE, "remove")
    if insert is not None and not (remove > insert and length > 0):
        raise cells.fault("the life is not longer than 0 s", "remove after insert", "remove")
    if cells["event"] and cells["event"] not in _EVENTS:
        raise cells.fault("the event is unknown", " or ".join(_EVENTS), "event")
    for column in ("SN", "location"):
        if not cells[column] or not cells[column].isprintable():
            raise cells.fault(f"'{column}' is missing", "a printable name", column)
    return _Life(cells.line, cells["SN"], cells["location"], insert, remove, length, cells["event"])


def _batch(lives: list[_Life]) -> str:
    first = min(life.remove if life.insert is None else life.insert for life in lives)
    return CLASSES[first >= _EXCHANGE]


def _lives(by_gpu: dict[str, list[_Life]], batch: dict[str, str]) -> Lives:
    rows: list[tuple[float, float, bool, float, int]] = []
    for serial, lives in by_gpu.items():
        age = 0.0
        for life in sorted(lives, key=lambda one: (one.insert or 0.0, one.line)):
            if life.insert is not None:
                group = CLASSES.index(batch[serial])
                rows.append((age, age + life.length, bool(life.event), life.insert, group))
                age += life.length
    table = np.array(rows, dtype=np.float64).reshape(-1, 5)
    return Lives(table[:, 0], table[:, 1], table[:, 2] > 0, table[:, 3], table[:, 4].astype(np.int64))
