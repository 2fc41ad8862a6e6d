"""Why a job waited, as text on the terminal."""

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Final, TypeVar

from rich.cells import cell_len

from pipistrelle.cli.terminal.console import print_table, results, show
from pipistrelle.cli.terminal.dates import Dates
from pipistrelle.protocol.base.lengths import two_units_text
from pipistrelle.reports.explain.explanation import Explanation, Sample
from pipistrelle.reports.explain.limits import Stretch
from pipistrelle.reports.explain.looks import Look
from pipistrelle.reports.explain.passing import Holder, Passing
from pipistrelle.reports.explain.shares import Longest, Share, Shares
from pipistrelle.reports.explain.words import WORDS

#: most rows of a table; JSON has all
_MOST_ROWS: Final = 30
_MOST_SAMPLES: Final = 8
_MOST_HOLDERS: Final = 5
_MOST_NAMED: Final = 5
#: preferred width of tables
_WIDTH: Final = 80
SHORT: Final = {
    "dependency": "kept back by its dependency",
    "class": "limit of its class",
    "limit": "limit of the scheduler",
    "units": "fewer units free",
    "down": "units out of service",
    "nodes": "free units not as it asks",
    "window": "announced maintenance",
    "order": "free units kept for others",
    "poll": "the scheduler decides at its polling times only",
    "other": "a rule of the scheduler",
    "resources": "too little of a resource",
    "unknown": "units free, not known",
}
_T = TypeVar("_T")


def print_explanation(explanation: Explanation, at: float | None, look: Look | None) -> None:
    """Print why a job waited, with details.

    With ``at`` (s), print only the job's situation at that time. ``look`` is that situation as the scheduler last saw
    it; None: take it from the timeline in ``explanation``.
    """
    show(explanation.answer, "bold")
    walltime = "no walltime" if explanation.requested is None else f"walltime {two_units_text(explanation.requested)}"
    dates = Dates(explanation.epoch, explanation.timezone)
    started = "" if explanation.started is None else f", started {dates.beside(explanation.started)}"
    times = f"submitted {dates.beside(explanation.submitted)}{started}"
    show(f"{_units(explanation.size)}, {walltime}, {times}, scheduler {explanation.scheduler}")
    for remark in explanation.remarks:
        show(remark)
    if explanation.not_replayed is not None:
        show(
            f"Not known, because {explanation.not_replayed}: its place and priority, its reservation, and limits "
            "other than free units."
        )
    if at is not None:
        _print_moment(explanation, at, look, dates)
        return
    if explanation.passed:
        show(_passed(explanation))
    if not explanation.timeline:
        return
    _print_timeline(explanation.timeline, dates)
    for number, text in enumerate(_promises(explanation, dates)):
        show(f"  {text}" if number else text, "" if number else "bold")
    if explanation.priorities:
        _print_priorities(explanation.priorities)
    if explanation.holders:
        _print_holders(explanation.holders, dates)
    if explanation.passed_by:
        _print_passed_by(explanation.passed_by, dates)
    for one in _ends(explanation.meanwhile, _MOST_ROWS):
        what = {"failed": "failed", "maintenance": "went into maintenance", "repaired": "came back"}
        if one is None:
            show("...")
            continue
        which = f"node {one.nodes}" if one.nodes.isdecimal() else f"nodes {one.nodes}"
        show(f"{dates.beside(one.time)}: {which} {what[one.what]}, {_units(one.units)}")


def print_shares(shares: Shares) -> None:
    """Print the waits of several jobs.

    This is the total, the shares by reason, and the longest waits.
    """
    whose = " and ".join(f"{label} {value}" for label, value in shares.of.items())
    jobs = "1 job" if shares.jobs == 1 else f"{shares.jobs:,} jobs"
    show(f"{jobs} of {whose}, {shares.waited:,} of which waited", "bold")
    if not shares.waited:
        return
    total, mean, median = map(two_units_text, (shares.total, shares.mean, shares.median))
    show(f"{total} in all, {mean} on average, median {median}")
    by_reason: dict[str, Callable[[Share], str]] = {
        "limited by": lambda one: SHORT[one.limit],
        "share": lambda one: f"{one.share:.1%}",
        "for": lambda one: two_units_text(one.seconds),
        "jobs": lambda one: f"{one.jobs:,}",
    }
    print_columns("What limited them", by_reason, shares.limits)
    dates = Dates(shares.epoch, shares.timezone)
    longest: dict[str, Callable[[Longest], str]] = {
        "job": lambda one: one.job,
        "units": lambda one: f"{one.size:,}",
        "submitted, s": lambda one: f"{one.submitted:.10g}",
        "date": lambda one: dates.at(one.submitted),
        "waited": lambda one: two_units_text(one.waited),
        "mostly": lambda one: SHORT[one.limit],
    }
    print_columns("Longest waits", longest, shares.longest, ("units",))


def _print_moment(explanation: Explanation, at: float, look: Look | None, dates: Dates) -> None:
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
            lines.append(f"to start by: {_by(look.reservation, dates)}")
        for name, value in (look.terms or {}).items():
            lines.append(f"{name}: {value:.10g}")
    since = "" if look is None or look.time == at else f", as the scheduler left it at {dates.beside(look.time)}"
    show(f"At {dates.beside(at)}{since}:")
    for line in lines:
        show(f"  {line}")


def _print_timeline(stretches: Sequence[Stretch], dates: Dates) -> None:
    """Print what limited the job over time; columns without known values are left out."""
    columns: dict[str, Callable[[Stretch], str]] = {
        "from, s": lambda one: f"{one.begin:.10g}",
        "date": lambda one: dates.at(one.begin),
        "for": lambda one: two_units_text(one.end - one.begin),
        "free": lambda one: _range(one.free, " to "),
        "place": lambda one: _range(one.place, " > "),
        "to start by, s": lambda one: _range(one.reservation, " > "),
        "priority": lambda one: _range(one.priority, " > "),
        "limited by": lambda one: SHORT[one.limit] + _in_brackets(_limited_by(one)),
    }
    print_columns("What limited it", columns, stretches, ("priority", "to start by, s", "place", "free"))


def _limited_by(one: Stretch) -> str:
    others = one.limit == "order" or (one.limit == "units" and one.place is not None and one.place[1] > 1)
    return f"{one.first} first" if others and one.first is not None else one.detail


def _promises(explanation: Explanation, dates: Dates) -> list[str]:
    """Return how the job's reservation changed over time, as text."""
    promises = explanation.reservations
    if not promises:
        return []
    texts = [
        f"at {dates.beside(one.time)}: {'none' if one.start is None else f'to start by {dates.beside(one.start)}'}"
        for one in _few(promises)
    ]
    first = next((one.start for one in promises if one.start is not None), None)
    if first is not None and explanation.started is not None:
        early = first - explanation.started
        kept = "as reserved" if not early else f"{two_units_text(abs(early))} {'earlier' if early > 0 else 'later'}"
        texts.append(f"started at {dates.beside(explanation.started)}, {kept}{' than reserved first' if early else ''}")
    return [f"Reservation, {len(promises)} in all" if len(promises) > 1 else "Reservation", *texts]


def _print_priorities(samples: Sequence[Sample]) -> None:
    """Print the job's queue positions and priority terms over time."""
    names = list(dict.fromkeys(name for one in samples for name in one.terms))
    idle = [name for name in names if name != "priority" and not any(one.terms.get(name) for one in samples)]
    names = [name for name in names if name not in idle]
    rows = []
    for one in _few(samples):
        values = [f"{one.terms[name]:.8g}" if name in one.terms else "" for name in names]
        rows.append([f"{one.time:.10g}", "" if one.place is None else f"{one.place:,}", *values])
    print_table("Priority", ["at, s", "place", *names], rows, ())
    if idle:
        show(f"  always 0: {', '.join(idle)}")


def _passed(explanation: Explanation) -> str:
    """Return a sentence that lists the jobs that the explained job passed."""
    first, *others = (one.job for one in explanation.passed)
    jobs = "1 job" if not others else f"{len(explanation.passed):,} jobs"
    named = ", ".join([first, *others[: _MOST_NAMED - 1], *(["..."] if len(others) >= _MOST_NAMED else [])])
    why = f"; the scheduler says: {explanation.why}" if explanation.why else ""
    return f"It was itself started before {jobs} that came earlier: {named}{why}"


def _print_holders(holders: Sequence[Holder], dates: Dates) -> None:
    """Print the jobs that held units while this job waited."""
    columns: dict[str, Callable[[Holder], str]] = {
        "job": lambda one: one.job,
        "user": lambda one: one.user or "",
        "units": lambda one: f"{one.size:,}",
        "started, s": lambda one: f"{one.started:.10g}",
        "date": lambda one: dates.at(one.started),
        "ended, s": lambda one: "" if one.ended is None else f"{one.ended:.10g}",
        "share": lambda one: f"{one.share:.1%}",
    }
    print_columns("Jobs that held the units", columns, holders[:_MOST_HOLDERS], ("date",))
    if len(holders) > _MOST_HOLDERS:
        show(f"  ... {len(holders) - _MOST_HOLDERS:,} more (--json)")


def _print_passed_by(passed_by: Sequence[Passing], dates: Dates) -> None:
    """Print the jobs that were behind a job in the queue but started before it.

    Jobs that may have delayed it come first.
    """
    columns: dict[str, Callable[[Passing], str]] = {
        "job": lambda one: one.job,
        "units": lambda one: f"{one.size:,}",
        "walltime": lambda one: "none" if one.requested is None else two_units_text(one.requested),
        "submitted, s": lambda one: f"{one.submitted:.10g}",
        "started, s": lambda one: f"{one.started:.10g}",
        "date": lambda one: dates.at(one.started),
        "ended, s": lambda one: "" if one.ended is None else f"{one.ended:.10g}",
        "delay": lambda one: "maybe" if one.may_delay else "no",
        "why": lambda one: one.why,
    }
    print_columns("Passed by", columns, sorted(passed_by, key=lambda one: not one.may_delay), _SPARE)


#: columns of the table "Passed by" that a narrow terminal does without, the least useful first
_SPARE: Final = ("submitted, s", "walltime", "ended, s", "units", "date")


def print_columns(
    title: str, columns: Mapping[str, Callable[[_T], str]], all_: Sequence[_T], spare: Sequence[str] = ()
) -> None:
    """Print a table with one row for each object in ``all_``.

    ``columns`` is {heading: function that returns the cell of an object}. Columns without known values are left out.
    If there are many rows, the rows in the middle are left out.

    If the table is wider than the terminal (or than 80 columns, if the terminal is narrower), the columns in ``spare``
    are left out one by one, in this order, until the table fits.
    """
    columns = {name: cell for name, cell in columns.items() if any(map(cell, all_))}
    shown = _ends(all_, _MOST_ROWS)
    for name in spare:
        texts = ([header, *(cell(one) for one in shown if one is not None)] for header, cell in columns.items())
        if sum(2 + max(map(cell_len, column)) for column in texts) <= max(results().width, _WIDTH):
            break
        columns = {header: cell for header, cell in columns.items() if header != name}
    rows = [
        [f"... {len(all_) - _MOST_ROWS:,} more (--json)"] if one is None else [cell(one) for cell in columns.values()]
        for one in shown
    ]
    print_table(title, list(columns), rows, ("job", "limited by", "mostly", "why"))


def _units(count: int) -> str:
    return "1 unit" if count == 1 else f"{count:,} units"


def _by(time: float, dates: Dates) -> str:
    return dates.beside(time) if time < inf else "unknown"


def _few(rows: Sequence[_T]) -> list[_T]:
    """Return at most `_MOST_SAMPLES` rows, evenly spread.

    The first and the last row are among them.
    """
    if len(rows) <= _MOST_SAMPLES:
        return list(rows)
    return [rows[round(number * (len(rows) - 1) / (_MOST_SAMPLES - 1))] for number in range(_MOST_SAMPLES)]


def _ends(rows: Sequence[_T], most: int) -> list[_T | None]:
    """Return the first and the last rows, ``most`` in all.

    None stands in place of the rows between them.
    """
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
