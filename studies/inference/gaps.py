"""Find the trials without a value of a metric, and write remarks about them.

Such trials are called gaps. The remarks say why the values are missing. A cell is one combination of the values of all
axes; its trials differ only in their random numbers.
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from pipistrelle.protocol.base.errors import legible
from pipistrelle.studies.inference.trials import Cell, TrialTable, Value, label

#: maximum characters of a cause, and maximum number of causes and of cells in a remark
_LONGEST: Final = 240
_MOST_CAUSES: Final = 3
_MOST_CELLS: Final = 3
#: metrics of classes of jobs: ``mean_wait_queue_batch`` has the number of its jobs in ``jobs_queue_batch``
_STEMS: Final = ("mean_wait_", "mean_turnaround_", "mean_bounded_slowdown_", "jobs_")
_ENDED: Final = ("completed", "killed_at_walltime", "killed")


class Gap(Struct, frozen=True):
    """A trial (one simulation) that has no value of a metric.

    Attributes:
        cell: {axis: value} of the trial.
        replica: number of the replica (repetition with other random numbers).
        cause: why the trial has no value. The text continues a sentence that begins with "3 trials", such as
            ``in which no job ended`` or ``stalled: no event is left``.
    """

    cell: dict[str, Value]
    replica: int
    cause: str

    @property
    def kind(self) -> str:
        """Return the cause of the missing value in a few words, for a picture."""
        return self.cause.partition(":")[0]


def gaps_of(trials: TrialTable, cell: Cell, metric: str) -> list[Gap]:
    """Return the trials of a cell that have no value of a metric."""
    known = trials.sample(cell, metric)
    named = dict(zip(trials.axes, cell.key, strict=True))
    rows = ((replica, row) for replica, row in sorted(cell.rows.items()) if replica not in known)
    return [Gap(named, replica, _cause(trials, row, metric)) for replica, row in rows]


def gaps(trials: TrialTable, metric: str) -> list[Gap]:
    """Return all trials without a value of a metric, cell by cell."""
    return [gap for cell in trials.cells for gap in gaps_of(trials, cell, metric)]


def _cause(trials: TrialTable, row: int, metric: str) -> str:
    def told(name: str) -> Value:
        column = trials.columns.get(name)
        value: Value = None if column is None else column[row]
        return value

    reason = told("reason")
    if reason == "stalled":
        return f"stalled: {legible(str(told('cause') or told('message') or 'without a message'), _LONGEST)}"
    for stem in _STEMS:
        count = f"jobs_{metric.removeprefix(stem)}"
        if metric.startswith(stem) and count in trials.columns:
            return "in which none of these jobs ended" if told(count) else "whose workload has no such jobs"
    if all(name in trials.columns for name in _ENDED) and not any(told(name) for name in _ENDED):
        return "in which no job ended"
    return "without this metric" if reason is None else f"without this metric ({label(reason)})"


def once(found: Iterable[Gap]) -> list[Gap]:
    """Return one gap per trial.

    If a trial lacks several metrics, all its gaps but one are dropped.
    """
    return list({(*gap.cell.values(), gap.replica): gap for gap in found}.values())


def counted_causes(found: Iterable[Gap]) -> dict[str, int]:
    """Return {cause of a missing value: number of trials}, most frequent first."""
    counts: dict[str, int] = {}
    for gap in found:
        counts[gap.cause] = counts.get(gap.cause, 0) + 1
    return dict(sorted(counts.items(), key=lambda one: (-one[1], one[0])))


def causes_text(found: Iterable[Gap]) -> str:
    """Return the causes of missing values, with their numbers of trials, on one line.

    The text is empty without gaps.
    """
    return "; ".join(f"{count:,} {cause}" for cause, count in counted_causes(found).items())


def gap_remarks(metric: str, found: Iterable[Gap], total: int) -> list[str]:
    """Return the remarks below a table about trials without a value of a metric.

    The lines say how many trials lack the metric, why, and in which cells.

    Args:
        found: the gaps; a gap that occurs twice counts once.
        total: number of trials in the table.
    """
    trials = once(found)
    if not trials:
        return []
    lines = [
        f"* {len(trials):,} of {total:,} trials have no {metric}. A marked mean leaves them out,",
        "  so it may look better than it is:",
    ]
    causes = counted_causes(trials)
    for cause, count in list(causes.items())[:_MOST_CAUSES]:
        cells = list(dict.fromkeys(_cell_text(gap.cell) for gap in trials if gap.cause == cause))
        where = ", ".join(cells[:_MOST_CELLS])
        where += f" and {len(cells) - _MOST_CELLS:,} other points" if len(cells) > _MOST_CELLS else ""
        lines.append(f"  {count:,} {cause}" + (f" ({where})" if where else ""))
    if len(causes) > _MOST_CAUSES:
        rest = sum(list(causes.values())[_MOST_CAUSES:])
        lines.append(f"  {rest:,} for {len(causes) - _MOST_CAUSES:,} other causes: column 'message' of the trials")
    return lines


def _cell_text(cell: dict[str, Value]) -> str:
    return " ".join(label(value) for value in cell.values())
