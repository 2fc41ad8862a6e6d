"""Names of metrics and axes in words, with their units, for tables and pictures."""

import re
from typing import Final, Literal, NamedTuple

from pipistrelle.studies.measures.job_classes import LABELS

Unit = Literal["s", "share", "%", "unit seconds", "node seconds", "kWh", ""]


class MetricWords(NamedTuple):
    """A metric in words.

    Attributes:
        name: the words, such as ``mean wait``.
        unit: the unit of the values in the table; ``share`` stands for numbers from 0 to 1.
        better: whether less or more is better.
    """

    name: str
    unit: Unit
    better: Literal["less", "more"]


#: {metric: its words}, if they do not follow from its name
_WORDS: Final = {
    "p95_wait": "95 % quantile of waits",
    "max_wait": "longest wait",
    "mean_execution": "mean run time",
    "mean_attempts": "mean number of starts",
    "slowdown_of_means": "slowdown of means",
    "computing": "time that jobs held units",
    "unavailable": "idle time of down units",
    "counted_from": "begin of the counted time",
    "counted_to": "end of the counted time",
    "cost": "cost of all node-hours",
    "energy": "energy",
    "energy_cost": "cost of energy",
}
_UNITS: Final[dict[str, Unit]] = {
    "makespan": "s",
    "horizon": "s",
    "counted_from": "s",
    "counted_to": "s",
    "mean_execution": "s",
    "utilisation": "share",
    "availability": "share",
    "computing": "unit seconds",
    "unavailable": "unit seconds",
}
#: ends of metric names and their units
_SUFFIXES: Final[dict[str, Unit]] = {"_wait": "s", "_turnaround": "s", "_mean_time_to_interruption": "s"}
#: metrics of which more is better
_MORE: Final = frozenset(("utilisation", "availability", "completed", "jobs", "computing", "unit_seconds_useful"))
#: a metric of a class of jobs: by size, or by a label such as the queue
_STEMS: Final = ("mean_wait", "mean_turnaround", "mean_bounded_slowdown", "jobs")
_AXES: Final = {"policy": "policy", "repair": "repair time", "reliability_factor": "factor of failure rates"}


def words_of(metric: str) -> MetricWords:
    """Return a metric's name in words and its unit.

    Also return whether less or more of it is better.
    """
    for stem in _STEMS:
        rest = metric.removeprefix(f"{stem}_")
        if rest == metric:
            continue
        found = words_of(stem)
        if match := re.fullmatch(r"(\d+)(?:_(\d+|up))?", rest):
            return found._replace(name=f"{found.name}, {size_words(match[1], match[2])}")
        kind, _, name = rest.partition("_")
        if kind in LABELS and name:
            return found._replace(name=f"{found.name}, {kind} {name}")
    if match := re.fullmatch(r"(allocated|fragmented)_(\d+)", metric):
        better: Literal["less", "more"] = "more" if match[1] == "allocated" else "less"
        return MetricWords(f"GPUs {match[1]} at {match[2]} % requested", "%", better)
    name = _WORDS.get(metric, metric.replace("_", " "))
    unit = _UNITS.get(metric, "")
    for suffix, of_suffix in _SUFFIXES.items():
        unit = of_suffix if metric.endswith(suffix) else unit
    if metric.startswith(("node_seconds_", "unit_seconds_")):
        kind, _, rest = metric.partition("_seconds_")
        name, unit = f"{kind} time {rest}".replace("_", " "), "node seconds" if kind == "node" else "unit seconds"
    if metric == "energy" or (metric.startswith("energy_") and metric != "energy_cost"):
        unit = "kWh"
    return MetricWords(name, unit, "more" if metric in _MORE else "less")


def size_words(low: str, high: str | None) -> str:
    """Return a class of job sizes in words.

    Examples are ``1 unit``, ``2-15 units`` and ``16 units or more``.
    """
    if high == "up":
        return f"{low} units or more"
    return f"{low}-{high} units" if high else f"{low} unit{'' if low == '1' else 's'}"


def axis_words(axis: str) -> str:
    """Return an axis's column name in words."""
    return _AXES.get(axis, axis.replace("_", " "))
