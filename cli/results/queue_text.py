"""Print the queue at a given time with expected starts, as a table or CSV."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from pipistrelle.cli.results.explain_text import SHORT, print_columns
from pipistrelle.cli.terminal.console import show
from pipistrelle.cli.terminal.dates import Dates
from pipistrelle.protocol.base.lengths import two_units_text
from pipistrelle.reports.estimates.queue_estimates import QueueEstimate, QueueThen
from pipistrelle.server.engine.jobs import LABEL_NAMES
from pipistrelle.server.outputs.csv_file import csv_text
from pipistrelle.traces.files import write_trace

_OUTCOMES: Final = {"rejected": "rejected", "cancelled": "cancelled", "none": "never"}
_COLUMNS: Final = (
    *("job", "size", "requested", "submitted", "waited", *LABEL_NAMES, "place", "limit", "detail", "expected", "why"),
    *("refusal", "outcome", "happened", "error"),
)


def print_queue(found: QueueThen) -> None:
    """Print the queued jobs by expected start, and the errors of the estimates."""
    dates = Dates(found.epoch, found.timezone)
    jobs = "1 job" if len(found.jobs) == 1 else f"{len(found.jobs):,} jobs"
    whose = " and ".join(f"{label} {value}" for label, value in found.of.items())
    show(f"{jobs}{f' of {whose}' if whose else ''} waited at {dates.beside(found.at)}", "bold")
    free = "1 unit" if found.free == 1 else f"{found.free:,} units"
    show(f"scheduler {found.scheduler}, as it had decided at {dates.beside(found.as_of)}; {free} free")
    columns: dict[str, Callable[[QueueEstimate], str]] = {
        "job": lambda one: one.job,
        "user": lambda one: one.labels.get("user", ""),
        "units": lambda one: f"{one.size:,}",
        "walltime": lambda one: "none" if one.requested is None else two_units_text(one.requested),
        "waited": lambda one: two_units_text(one.waited),
        "place": lambda one: "" if one.place is None else f"{one.place:,}",
        "expected, s": _expected,
        "date": lambda one: "" if one.expected is None else dates.at(one.expected),
        "started, s": _started,
        "error": lambda one: "" if one.error is None else _signed(one.error),
        "limited by": _limited_by,
        "why": lambda one: one.why,
    }
    spare = ("date", "user", "place", "why", "waited", "walltime", "units")
    print_columns("Waiting jobs", columns, found.jobs, spare)
    errors = found.errors
    mean, median, size = errors.mean, errors.median, errors.mean_absolute
    if mean is None or median is None or size is None:
        show("None of these jobs had an expected start and started.")
        return
    count = "1 job" if errors.jobs == 1 else f"{errors.jobs:,} jobs"
    show(
        f"Error (actual start minus expected start) of {count}: mean {_signed(mean)}, median "
        f"{_signed(median)}, mean absolute error {two_units_text(size)}; {errors.later:,} started "
        f"later by more than a minute, {errors.earlier:,} earlier"
    )


def write_queue(path: Path, found: QueueThen) -> None:
    """Write one CSV line per queued job; raise OutputFailed if that fails."""
    lines = [",".join(("at", *_COLUMNS))]
    for one in found.jobs:
        cells = [one.labels.get(name, "") if name in LABEL_NAMES else _cell(getattr(one, name)) for name in _COLUMNS]
        lines.append(",".join((repr(found.at), *map(csv_text, cells))))
    write_trace(path, [f"{line}\n".encode() for line in lines])


def _cell(value: object) -> str:
    return "" if value is None else value if isinstance(value, str) else repr(value)


def _expected(one: QueueEstimate) -> str:
    if one.expected is not None:
        return f"{one.expected:.10g}"
    return "not known" if one.refusal is None else "to be rejected"


def _started(one: QueueEstimate) -> str:
    if one.outcome == "started" and one.happened is not None:
        return f"{one.happened:.10g}"
    return _OUTCOMES[one.outcome]


def _signed(seconds: float) -> str:
    return "0 s" if not seconds else f"{'+' if seconds > 0 else '-'}{two_units_text(abs(seconds))}"


def _limited_by(one: QueueEstimate) -> str:
    return "" if one.limit is None else SHORT[one.limit] + (f" ({one.detail})" if one.detail else "")
