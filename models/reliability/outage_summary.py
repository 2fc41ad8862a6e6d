"""Summarise a log of outages as text."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.protocol.base.lengths import date_text, length_text
from pipistrelle.traces.outages.log import Lives, OutageLog

Floats = NDArray[np.float64]

_DAY: Final = 86400.0
_YEAR: Final = 365.25 * _DAY
#: upper bounds of the bins for the failure rate by time since the last repair (s)
_AGES: Final = (3600.0, 6 * 3600.0, _DAY, 7 * _DAY, 30 * _DAY, 90 * _DAY, _YEAR, 3 * _YEAR, np.inf)
_SHADES: Final = " .:-=+*#%@"
_COLUMNS: Final = 60
_ROWS: Final = 12
_WORST: Final = 5
_MOST_CLASSES: Final = 30
_CLUSTER: Final = 60.0  # seconds

Facts = list[tuple[str, str]]


def summarise(log: OutageLog) -> Facts:
    """Return (heading, text) pairs that describe a log of outages.

    The last pair has a picture drawn as text. Rates are failures per time that nodes were up and observed. Announced
    outages do not count as failures.
    """
    lives = log.watched()
    failures = np.isnan(log.announced)
    facts = [
        ("name", log.name),
        ("format", log.format),
        ("outages", f"{len(log):,} of {np.unique(log.node).size:,} nodes; {int((~failures).sum()):,} announced"),
        ("nodes", f"{len(log.nodes):,}{'' if log.watch_known or log.complete else ' named; there may be more'}"),
        ("watched", _span(log)),
        ("overlapping", f"{log.overlaps():,}"),
        *(("note", note) for note in log.notes),
    ]
    if not len(log):
        return facts
    facts += [("class", text) for text in _classes(log, lives)]
    facts += [("worst nodes", _worst(log)), ("causes", _causes(log)), ("hazard", "per node and year, by time since up")]
    facts += [("", text) for text in _hazard(lives)]
    facts += [("clustering", text) for text in _clustering(log)]
    facts += [("repair", _repairs(log)), ("picture", "nodes down over time, darker is more")]
    return facts + [("", text) for text in _picture(log)]


def clock_text(log: OutageLog, time: float) -> str:
    """Return a time of the log as a date.

    If the log has no dates, return it as a duration after time 0.
    """
    if not log.absolute:
        return length_text(time)
    return date_text(time) or f"{time:g} s"


def _span(log: OutageLog) -> str:
    if not log.nodes:
        return "nothing"
    begin, end = float(log.begin.min()), float(log.end.max())
    return f"{length_text(end - begin)}, from {clock_text(log, begin)} to {clock_text(log, end)}"


def _classes(log: OutageLog, lives: Lives) -> list[str]:
    texts = []
    exposure = np.bincount(lives.group, weights=lives.left - lives.entered, minlength=len(log.classes))
    failed = np.bincount(lives.group[lives.failed], minlength=len(log.classes))
    counts = np.bincount(log.group, minlength=len(log.classes))
    nodes = np.bincount(log.node_group[log.node_group >= 0], minlength=len(log.classes))
    for index, name in enumerate(log.classes):
        if not counts[index] and not exposure[index]:
            continue
        size = f"{nodes[index]:,} nodes, " if nodes[index] else ""
        text = f"{name}: {size}{counts[index]:,} outages in {exposure[index] / _YEAR:,.4g} node-years"
        if failed[index]:
            mtbf = exposure[index] / failed[index]
            text += f", MTBF of a node {length_text(float(mtbf))}"
            if nodes[index]:
                text += f", of the system {length_text(float(mtbf / nodes[index]))}"
        texts.append(text)
    more = len(texts) - _MOST_CLASSES
    return texts if more <= 0 else [*texts[:_MOST_CLASSES], f"and {more:,} more"]


def _worst(log: OutageLog) -> str:
    counts = np.bincount(log.node, minlength=len(log.nodes))
    order = np.lexsort((np.arange(counts.size), -counts))[:_WORST]
    share = counts[order].sum() / len(log)
    listed = ", ".join(f"{log.nodes[at]} ({counts[at]:,})" for at in order.tolist() if counts[at])
    return f"{listed}; {100 * share:.0f} % of all"


def _causes(log: OutageLog) -> str:
    counts: dict[str, int] = {}
    for cause in log.cause:
        kind = cause.partition(":")[0]
        counts[kind] = counts.get(kind, 0) + 1
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    more = f", {len(ordered) - 8:,} more" if len(ordered) > 8 else ""
    return ", ".join(f"{kind} {count:,}" for kind, count in ordered[:8]) + more


def _hazard(lives: Lives) -> list[str]:
    texts = []
    low = 0.0
    for high in _AGES:
        inside = np.clip(np.minimum(lives.left, high) - np.maximum(lives.entered, low), 0.0, None)
        exposure = float(inside.sum())
        count = int((lives.failed & (lives.left > low) & (lives.left <= high)).sum())
        if exposure > 0:
            bound = f"up to {length_text(high)}" if np.isfinite(high) else f"above {length_text(low)}"
            texts.append(f"{bound:<12}  {count / exposure * _YEAR:>10.4g}   {count:>7,} failures")
        low = high
    return texts


def _clustering(log: OutageLog) -> list[str]:
    down = np.sort(log.down)
    texts = []
    if down.size > 1 and down[-1] - down[0] >= 2 * _DAY:
        days = np.floor((down - down[0]) / _DAY).astype(np.int64)
        per_day = np.bincount(days)
        ratio = per_day.var() / per_day.mean()
        texts.append(f"variance over mean of failures a day {ratio:.3g} (1: independent); most {per_day.max():,} a day")
    near = np.zeros(down.size, dtype=np.bool_)
    close = np.diff(down) <= _CLUSTER
    near[1:] |= close
    near[:-1] |= close
    return [*texts, f"{100 * near.mean():.1f} % begin within a minute of another"]


def _repairs(log: OutageLog) -> str:
    lengths = (log.up - log.down)[np.isfinite(log.up)]
    if not lengths.size:
        return "the log does not say when outages end"
    quantiles = np.quantile(lengths, (0.05, 0.25, 0.5, 0.75, 0.95))
    listed = ", ".join(
        f"{share} % {length_text(float(value))}" for share, value in zip((5, 25, 50, 75, 95), quantiles, strict=True)
    )
    missing = len(log) - lengths.size
    return f"mean {length_text(float(lengths.mean()))}; {listed}" + (f"; {missing:,} without an end" if missing else "")


def _picture(log: OutageLog) -> list[str]:
    """Return a map of outages as text.

    Rows are groups of nodes, columns are parts of the time.
    """
    first, last = float(log.down.min()), float(log.down.max())
    width = (last - first) / _COLUMNS or 1.0
    column = np.minimum(((log.down - first) / width).astype(np.int64), _COLUMNS - 1)
    nodes = len(log.nodes)
    rows = min(_ROWS, nodes)
    row = log.node * rows // nodes
    counts = np.zeros((rows, _COLUMNS), dtype=np.int64)
    np.add.at(counts, (row, column), 1)
    # square root: one outage is visible beside a hundred
    shade = np.ceil(np.sqrt(counts / counts.max()) * (len(_SHADES) - 1)).astype(np.int64)
    names = [log.nodes[-(-at * nodes // rows)] for at in range(rows)]
    wide = max(len(name) for name in names)
    lines = [
        f"{name:>{wide}} |{''.join(_SHADES[cell] for cell in line)}|"
        for name, line in zip(names, shade.tolist(), strict=True)
    ]
    begin, end = clock_text(log, first), clock_text(log, last)
    return [*lines, f"{'':>{wide}}  {begin}{end:>{max(1, _COLUMNS - len(begin))}}"]
