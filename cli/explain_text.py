"""Why a job waited, as text on the terminal."""

from collections.abc import Callable, Sequence
from math import inf
from typing import Final, TypeVar

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipistrelle.protocol.errors import printable
from pipistrelle.studies.explain import WORDS, Explanation, Passing, Sample, Stretch, duration
from pipistrelle.studies.explain_replay import Look

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

    def say(text: str, style: str = "") -> None:
        console.print(_plain(text, style), soft_wrap=True)

    say(explanation.answer, "bold")
    walltime = "no walltime" if explanation.requested is None else f"walltime {duration(explanation.requested)}"
    started = "" if explanation.started is None else f", started {explanation.started:.10g} s"
    say(
        f"{explanation.size:,} {'unit' if explanation.size == 1 else 'units'}, {walltime}, submitted {explanation.submitted:.10g} s{started}, "
        f"scheduler {explanation.scheduler}"
    )
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
    console.print(_timeline(explanation.timeline))
    for number, text in enumerate(_promises(explanation)):
        say(f"  {text}" if number else text, "" if number else "bold")
    if explanation.priorities:
        console.print(_priorities(explanation.priorities))
    if explanation.passed_by:
        console.print(_passed_by(explanation.passed_by))
    for one in _ends(explanation.meanwhile, _MOST_ROWS):
        what = {"failed": "failed", "maintenance": "went into maintenance", "repaired": "came back"}
        say("..." if one is None else f"{one.time:.10g} s: nodes {one.nodes} ({one.units:,} units) {what[one.what]}")


def _print_moment(explanation: Explanation, at: float, look: Look | None, console: Console) -> None:
    stretch = next((one for one in explanation.timeline if one.begin <= at < one.end), None)
    lines = []
    if look is None:
        if stretch is not None:
            lines.append(WORDS[stretch.limit] + _in_brackets(stretch.detail))
            if stretch.free is not None:
                lines.append(f"free: {stretch.free[0]:,} of the {explanation.size:,} units that it needs")
        if explanation.not_replayed is None:
            lines.append("the scheduler had not decided since it was submitted")
    else:
        lines.append(WORDS[look.limit] + _in_brackets(look.detail))
        lines.append(f"free: {look.free:,} of the {explanation.size:,} units that it needs")
        if look.place is not None:
            lines.append(f"place in the queue: {look.place:,} of {look.waiting:,}, first is {look.first}")
        if look.reservation is not None:
            lines.append(f"to start by: {_by(look.reservation)}")
        for name, value in (look.terms or {}).items():
            lines.append(f"{name}: {value:.10g}")
    since = "" if look is None or look.time == at else f", as the scheduler left it at {look.time:.10g} s"
    console.print(_plain(f"At {at:.10g} s{since}:"), soft_wrap=True)
    for line in lines:
        console.print(_plain(f"  {line}"), soft_wrap=True)


def _timeline(rows: Sequence[Stretch]) -> Table:
    """Return what limited the job when, without the columns of which nothing is known."""
    columns: dict[str, Callable[[Stretch], str]] = {
        "from, s": lambda one: f"{one.begin:.10g}",
        "for": lambda one: duration(one.end - one.begin),
        "limited by": lambda one: _SHORT[one.limit] + _in_brackets(_limited_by(one)),
        "free": lambda one: _range(one.free, " to "),
        "place": lambda one: _range(one.place, " > "),
        "to start by, s": lambda one: _range(one.reservation, " > "),
        "priority": lambda one: _range(one.priority, " > "),
    }
    columns = {name: cell for name, cell in columns.items() if any(map(cell, rows))}
    table = _table("What limited it", *columns)
    table.columns[2].justify = "left"
    for one in _ends(rows, _MOST_ROWS):
        if one is None:
            table.add_row("...", "", f"{len(rows) - _MOST_ROWS} more (--json)")
        else:
            table.add_row(*(_plain(cell(one)) for cell in columns.values()))
    return table


def _limited_by(one: Stretch) -> str:
    if one.limit == "order" and one.first is not None:
        return f"{one.first} first"
    return one.detail


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


def _priorities(samples: Sequence[Sample]) -> Table:
    """Return places and terms over time."""
    shown = _few(samples)
    names = list(dict.fromkeys(name for one in shown for name in one.terms))
    table = _table("Priority", "at, s", "place", *names)
    for one in shown:
        values = [f"{one.terms[name]:.8g}" if name in one.terms else "" for name in names]
        table.add_row(f"{one.time:.10g}", "" if one.place is None else f"{one.place:,}", *values)
    return table


def _passed_by(passed_by: Sequence[Passing]) -> Table:
    """Return who passed the job."""
    table = _table("Passed by", "job", "units", "walltime", "submitted, s", "started, s", "ended, s", "delay?", "why")
    table.columns[-1].justify = "left"
    for one in _ends(sorted(passed_by, key=lambda one: not one.may_delay), _MOST_ROWS):
        if one is None:
            table.add_row("...", f"{len(passed_by) - _MOST_ROWS} more (--json)", "", "", "", "", "", "")
            continue
        table.add_row(
            _plain(one.job),
            f"{one.size:,}",
            "none" if one.requested is None else duration(one.requested),
            f"{one.submitted:.10g}",
            f"{one.started:.10g}",
            "" if one.ended is None else f"{one.ended:.10g}",
            "may be" if one.may_delay else "no",
            _plain(one.why),
        )
    return table


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


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left", no_wrap=True)
    return table


def _plain(text: str, style: str = "") -> Text:
    """Return what may quote a scheduler or a file: no markup, no control of the terminal."""
    return Text(printable(text), style)
