"""Why a job waited, as text on the terminal."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import inf
from typing import Final, TypeVar

from rich.console import Console

from pipistrelle.cli.console import print_table, show
from pipistrelle.studies.explain.explanation import Explanation, Sample
from pipistrelle.studies.explain.limits import Stretch
from pipistrelle.studies.explain.passing import Passing
from pipistrelle.studies.explain.replay import Look
from pipistrelle.studies.explain.words import WORDS, duration

#: rows of a table; the rest is in the JSON
_MOST_ROWS: Final = 30
_MOST_SAMPLES: Final = 8
_SHORT: Final = {
    "dependency": "kept back by its dependency",
    "class": "limit of its class",
    "limit": "limit of the scheduler",
    "units": "fewer units free",
    "down": "units out of service",
    "window": "announced maintenance",
    "order": "free units kept for others",
    "poll": "the scheduler does not look",
    "other": "a rule of the scheduler",
    "unknown": "units free, not known",
}
_T = TypeVar("_T")


def print_explanation(explanation: Explanation, at: float | None, look: Look | None, console: Console) -> None:
    """Print the answer in one sentence, then what it is made of; with ``at`` (s) that moment alone."""
    say = partial(show, console)
    say(explanation.answer, "bold")
    walltime = "no walltime" if explanation.requested is None else f"walltime {duration(explanation.requested)}"
    started = "" if explanation.started is None else f", started {explanation.started:.10g} s"
    times = f"submitted {explanation.submitted:.10g} s{started}"
    say(f"{_units(explanation.size)}, {walltime}, {times}, scheduler {explanation.scheduler}")
    for remark in explanation.remarks:
        say(remark)
    if explanation.not_replayed is not None:
        say(
            f"Not known, as {explanation.not_replayed}: its place and priority, its reservation, and what else limited "
            "it than free units."
        )
    if at is not None:
        _print_moment(explanation, at, look, console)
        return
    if not explanation.timeline:
        return
    _print_timeline(explanation.timeline, console)
    for number, text in enumerate(_promises(explanation)):
        say(f"  {text}" if number else text, "" if number else "bold")
    if explanation.priorities:
        _print_priorities(explanation.priorities, console)
    if explanation.passed_by:
        _print_passed_by(explanation.passed_by, console)
    for one in _ends(explanation.meanwhile, _MOST_ROWS):
        what = {"failed": "failed", "maintenance": "went into maintenance", "repaired": "came back"}
        if one is None:
            say("...")
            continue
        which = f"node {one.nodes}" if one.nodes.isdecimal() else f"nodes {one.nodes}"
        say(f"{one.time:.10g} s: {which} {what[one.what]}, {_units(one.units)}")


def _print_moment(explanation: Explanation, at: float, look: Look | None, console: Console) -> None:
    stretch = next((one for one in explanation.timeline if one.begin <= at < one.end), None)
    lines = []
    if look is None:
        if stretch is not None:
            lines.append(WORDS[stretch.limit] + _in_brackets(stretch.detail))
            if stretch.free is not None:
                lines.append(f"free: {_units(stretch.free[0])}, it needs {explanation.size:,}")
        if explanation.not_replayed is None:
            lines.append("the scheduler had not decided since it was submitted")
    else:
        lines.append(WORDS[look.limit] + _in_brackets(look.detail))
        lines.append(f"free: {_units(look.free)}, it needs {explanation.size:,}")
        if look.place is not None:
            lines.append(f"place in the queue: {look.place:,} of {look.waiting:,}, first is {look.first}")
        if look.reservation is not None:
            lines.append(f"to start by: {_by(look.reservation)}")
        for name, value in (look.terms or {}).items():
            lines.append(f"{name}: {value:.10g}")
    since = "" if look is None or look.time == at else f", as the scheduler left it at {look.time:.10g} s"
    show(console, f"At {at:.10g} s{since}:")
    for line in lines:
        show(console, f"  {line}")


def _print_timeline(stretches: Sequence[Stretch], console: Console) -> None:
    """Print what limited the job when, without the columns of which nothing is known."""
    columns: dict[str, Callable[[Stretch], str]] = {
        "from, s": lambda one: f"{one.begin:.10g}",
        "for": lambda one: duration(one.end - one.begin),
        "limited by": lambda one: _SHORT[one.limit] + _in_brackets(_limited_by(one)),
        "free": lambda one: _range(one.free, " to "),
        "place": lambda one: _range(one.place, " > "),
        "to start by, s": lambda one: _range(one.reservation, " > "),
        "priority": lambda one: _range(one.priority, " > "),
    }
    columns = {name: cell for name, cell in columns.items() if any(map(cell, stretches))}
    _print_table("What limited it", columns, stretches, console)


def _limited_by(one: Stretch) -> str:
    others = one.limit == "order" or (one.limit == "units" and one.place is not None and one.place[1] > 1)
    return f"{one.first} first" if others and one.first is not None else one.detail


def _promises(explanation: Explanation) -> list[str]:
    """Return how the reservation changed, in words."""
    promises = explanation.reservations
    if not promises:
        return []
    texts = [
        f"at {one.time:.10g} s: {'none' if one.start is None else f'to start by {one.start:.10g} s'}"
        for one in _few(promises)
    ]
    first = next((one.start for one in promises if one.start is not None), None)
    if first is not None and explanation.started is not None:
        early = first - explanation.started
        kept = "as reserved" if not early else f"{duration(abs(early))} {'earlier' if early > 0 else 'later'}"
        texts.append(f"started at {explanation.started:.10g} s, {kept}{' than reserved first' if early else ''}")
    return [f"Reservation, {len(promises)} in all" if len(promises) > 1 else "Reservation", *texts]


def _print_priorities(samples: Sequence[Sample], console: Console) -> None:
    """Print places and terms over time; terms that are always 0 are named below."""
    names = list(dict.fromkeys(name for one in samples for name in one.terms))
    idle = [name for name in names if name != "priority" and not any(one.terms.get(name) for one in samples)]
    names = [name for name in names if name not in idle]
    rows = []
    for one in _few(samples):
        values = [f"{one.terms[name]:.8g}" if name in one.terms else "" for name in names]
        rows.append([f"{one.time:.10g}", "" if one.place is None else f"{one.place:,}", *values])
    print_table(console, "Priority", ["at, s", "place", *names], rows, ())
    if idle:
        show(console, f"  always 0: {', '.join(idle)}")


def _print_passed_by(passed_by: Sequence[Passing], console: Console) -> None:
    """Print who passed the job, first those that may have delayed it."""
    columns: dict[str, Callable[[Passing], str]] = {
        "job": lambda one: one.job,
        "units": lambda one: f"{one.size:,}",
        "walltime": lambda one: "none" if one.requested is None else duration(one.requested),
        "submitted, s": lambda one: f"{one.submitted:.10g}",
        "started, s": lambda one: f"{one.started:.10g}",
        "ended, s": lambda one: "" if one.ended is None else f"{one.ended:.10g}",
        "delay": lambda one: "maybe" if one.may_delay else "no",
        "why": lambda one: one.why,
    }
    _print_table("Passed by", columns, sorted(passed_by, key=lambda one: not one.may_delay), console)


def _print_table(title: str, columns: Mapping[str, Callable[[_T], str]], all_: Sequence[_T], console: Console) -> None:
    """Print a row for each of some, without those in the middle of many."""
    rows = [
        [f"... {len(all_) - _MOST_ROWS:,} more (--json)"] if one is None else [cell(one) for cell in columns.values()]
        for one in _ends(all_, _MOST_ROWS)
    ]
    print_table(console, title, list(columns), rows, ("job", "limited by", "why"))


def _units(count: int) -> str:
    return "1 unit" if count == 1 else f"{count:,} units"


def _by(time: float) -> str:
    return f"{time:.10g} s" if time < inf else "no one can tell"


def _few(rows: Sequence[_T]) -> list[_T]:
    """Return some of many rows, evenly spread, with the first and the last."""
    if len(rows) <= _MOST_SAMPLES:
        return list(rows)
    return [rows[round(number * (len(rows) - 1) / (_MOST_SAMPLES - 1))] for number in range(_MOST_SAMPLES)]


def _ends(rows: Sequence[_T], most: int) -> list[_T | None]:
    """Return the first and the last of many rows, with None in the place of the others."""
    if len(rows) <= most:
        return list(rows)
    return [*rows[: most // 2], None, *rows[len(rows) - (most - most // 2) :]]


def _range(values: tuple[float | None, float | None] | None, sign: str) -> str:
    if values is None or values[0] is None or values[1] is None:
        return ""
    first, last = values
    return f"{first:.10g}" if first == last else f"{first:.10g}{sign}{last:.10g}"


def _in_brackets(text: str) -> str:
    return f" ({text})" if text else ""
