"""Load failure models and logs of real outages, and map the outages to a machine."""

import math
import os
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from pipistrelle.platforms.description import Platform
from pipistrelle.platforms.errors import OutageError
from pipistrelle.platforms.failures import catalogue as failure_catalogue
from pipistrelle.platforms.failures.durations import Durations
from pipistrelle.platforms.failures.fitted import parse_model
from pipistrelle.platforms.failures.models import draw_lengths
from pipistrelle.platforms.failures.outage import Outage, Outages, merge
from pipistrelle.platforms.failures.plan import FailurePlan
from pipistrelle.platforms.failures.text import FailureSpec, parse_failures
from pipistrelle.platforms.topology.nodes import numbers_by_name
from pipistrelle.protocol.base.errors import did_you_mean, shown
from pipistrelle.protocol.base.lengths import parse_seconds
from pipistrelle.traces.files import read_text
from pipistrelle.traces.outages.log import OutageLog
from pipistrelle.traces.outages.rows import iso_time

#: formats that may have overlapping outages of a node, because several people or programs wrote them
_MERGED = ("LANL", "Titan", "Slurm")
#: formats that describe one machine; names map to nodes in natural order
_OWN_NAMES = ("LANL", "Titan")
_LARGER = "Take a larger machine, or one class of the log's nodes."
_NAMELESS = 'The machine\'s nodes have no names: name them, such as names = "n[001-096]" (docs/reference/platforms.md).'


def failure_plan(
    texts: Sequence[str],
    platform: Platform,
    repair: Durations | None = None,
    factor: float = 1.0,
    where: str = "--failures",
) -> FailurePlan:
    """Return the failure plan for the texts of ``--failures``.

    Args:
        texts: as `parse_failures` reads them; a TOML file of ``pipistrelle failures fit`` may replace a model's name.
        repair: the duration of repairs; None: as in the model.
        factor: reliability factor, which multiplies all failure rates.
        where: name of the option, for errors.

    Raises:
        PipistrelleError: a text is wrong, a file is unreadable, or a repair time is missing.
    """
    sources = []
    for text in texts:
        spec = parse_failures(text, _known(text), where)
        try:
            sources.append(spec.source(platform, repair, factor))
        except OutageError as error:
            raise error.at(f"{where} {text}", OutageError) from None
    return FailurePlan(tuple(sources))


def _known(text: str) -> dict[str, Callable[[], FailureSpec]]:
    """Return {name: function that loads the failure model}.

    The models are those of the library, and the file in ``text``.
    """
    known = failure_catalogue.specs()
    name = text.partition(",")[0].strip()
    if name.endswith(".toml") and os.path.isfile(name):
        known[name] = lambda: parse_model(read_text(Path(name)), name).spec()
    return known


def on_machine(
    log: OutageLog,
    platform: Platform,
    *,
    start: float | None = None,
    repair: Durations | None = None,
    seed: int = 0,
    hosts: Sequence[str] = (),
) -> Outages:
    """Convert a log's outages to outages of the machine's nodes.

    The result's times are in seconds after time 0. A name in the log means the machine's node of that name, and a
    number means the node of that number. LANL's and Titan's tables have their own names of nodes. If the machine has
    none of these names:

    - In a log of a single LANL system, only the text after the slash counts as the name.
    - If all names are numbers, they are the numbers of the machine's nodes.
    - Otherwise the names, sorted in natural order, stand for the machine's nodes in order.

    An outage that ends before time 0 is dropped. An outage that began before time 0 begins at time 0.

    Args:
        start: time 0 on the log's clock (s). None: the start of observation if the log has dates, else 0.
        repair: the duration of outages without an end, drawn with ``seed`` in the log's order.
        hosts: node names, in order, instead of the names in the platform's pools.

    Raises:
        OutageError: a node is unknown or the machine's nodes have no names; an end is unknown and ``repair`` is None;
            or outages overlap in a format that forbids it.
    """
    numbers = _numbers(log, platform, hosts)
    zero = start
    if zero is None:
        zero = float(log.begin.min(initial=math.inf)) if log.absolute and log.nodes else 0.0
    up = log.up.copy()
    unknown = np.flatnonzero(np.isnan(up))
    if unknown.size:
        if repair is None:
            raise OutageError(
                "the log does not say when outages end",
                where=f"{log.source}, line {log.line[unknown[0]]}",
                expected="a repair time",
                found=f"{unknown.size:,} outages without an end",
                hint="Give --repair.",
            )
        up[unknown] = log.down[unknown] + draw_lengths(repair, unknown.size, seed)
    rows = [
        (Outage(numbers[node], max(down - zero, 0.0), end - zero, cause, known), line)
        for node, down, end, cause, known, line in zip(
            log.node.tolist(),
            log.down.tolist(),
            up.tolist(),
            log.cause,
            (None if math.isnan(time) else max(time - zero, 0.0) for time in log.announced.tolist()),
            log.line.tolist(),
            strict=True,
        )
        if end > zero
    ]
    rows.sort(key=lambda row: (row[0].node, row[0].down))
    if log.format not in _MERGED:
        _refuse_overlaps(rows, log)
        return Outages.of(row for row, _ in rows)
    return _merged(rows)


def _merged(rows: Iterable[tuple[Outage, int]]) -> Outages:
    """Merge the overlapping outages of each node into one outage.

    ``rows`` are (outage, number of the node).
    """
    streams: list[list[Outage]] = []
    ends: list[dict[int, float]] = []
    for row, _ in rows:
        place = next((at for at, end in enumerate(ends) if end.get(row.node, 0.0) <= row.down), len(ends))
        if place == len(ends):
            streams.append([])
            ends.append({})
        streams[place].append(row)
        ends[place][row.node] = row.up
    return merge([Outages.of(stream) for stream in streams])


def _refuse_overlaps(rows: list[tuple[Outage, int]], log: OutageLog) -> None:
    for (first, line), (second, other) in pairwise(rows):
        if first.node == second.node and second.down < first.up:
            raise OutageError(
                "two outages of one node overlap",
                where=f"{log.source}, lines {line} and {other}",
                expected="an end before the next begin",
                found=f"node {first.node} down from {first.down!r} to {first.up!r} s and from {second.down!r} s",
                hint="Make them one outage.",
            )


def _numbers(log: OutageLog, platform: Platform, hosts: Sequence[str]) -> list[int]:
    """Return, for each node in the log, its number on the machine.

    Raise OutageError if it has none.
    """
    names = log.nodes
    known = {name: number for number, name in enumerate(hosts)} or numbers_by_name(platform)
    if log.format in _OWN_NAMES and not any(name in known for name in names):
        texts = [name.partition("/")[2] for name in names] if log.format == "LANL" and len(log.classes) == 1 else names
        numbers = [int(text) for text in texts] if all(map(_is_number, texts)) else list(range(len(names)))
    else:
        beyond = platform.nodes
        numbers = [known.get(name, int(name) if _is_number(name) else beyond) for name in names]
    used = {int(index): int(line) for index, line in zip(log.node[::-1], log.line[::-1], strict=True)}
    for index, line in sorted(used.items(), key=lambda item: item[1]):
        if numbers[index] >= platform.nodes:
            others = sum(numbers[other] >= platform.nodes for other in used) - 1
            nameless = log.format in _OWN_NAMES or _is_number(names[index])
            raise OutageError(
                "an outage names an unknown node",
                where=f"{log.source}, line {line}",
                expected=f"a node of '{platform.name}', which has {platform.nodes:,}",
                found=f"'{names[index]}'" + (f", and {others:,} more unknown nodes" if others else ""),
                hint=did_you_mean(names[index], list(known)) if known else _LARGER if nameless else _NAMELESS,
            )
    return numbers


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 15


def clock_time(log: OutageLog, text: str) -> float:
    """Return a date as time on the log's clock (s).

    If the log has no dates, ``text`` is a duration since the log's time 0.
    """
    if log.absolute:
        time = iso_time(text if len(text) > len("2017-01-29") else f"{text} 00:00")
        if time is None:
            raise OutageError(
                "a time cannot be read", expected="a date, such as 2017-01-29 or '2017-01-29 08:00'", found=shown(text)
            )
        return time
    return parse_seconds(text, "time", or_zero=True)
