"""Start estimates for queued jobs, at times spread over a run."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pipistrelle.reports.page.packing import ColumnPack
from pipistrelle.reports.page.rows import AttemptRows
from pipistrelle.runs.folders.cells import TextColumn


def estimates(
    folder: Path, rows: AttemptRows, pack: ColumnPack, moments: int, *, trust: bool = False
) -> dict[str, Any]:
    """Pack the expected and the actual starts of queued jobs.

    They are given at regularly spaced times of the run.

    Returns:
        The packed columns. ``times`` are these times (s), the middles of equal parts of the run. All other columns have
        a row for each time and each job queued then: ``moment`` is the index in ``times``. ``job`` is the job's index,
        or -1 if the outputs do not have it. ``expected`` and ``started`` are seconds after that time, or -1 if there is
        no estimate or no start.

    Args:
        rows: the run's attempts, as packed.
        moments: number of times, at least 1.

    Raises:
        PipistrelleError: the run cannot be repeated, or the policy does not report its state.
    """
    # Imported here, because repeating a run needs slow imports and most pages have no estimates.
    from pipistrelle.reports.estimates.moments import glimpses
    from pipistrelle.reports.estimates.queue_estimates import repeatable
    from pipistrelle.reports.explain.making import setup_again

    spec, files = repeatable(folder, trust=trust)
    first = float(rows.submit.min(initial=files.until)) if len(rows.names) else 0.0
    times = (first + (np.arange(moments) + 0.5) / moments * (files.until - first)).round(6)
    found = glimpses(spec, setup_again(spec, files), files, times.tolist())
    names: list[str] = []
    columns: list[tuple[int, float, float]] = []
    for number, glimpse in enumerate(found):
        for name in glimpse.jobs:
            expected, _ = glimpse.foreseen.starts.get(name, (None, ""))
            started = files.starts.get(name)
            names.append(name)
            columns.append((number, _after(expected, glimpse.time), _after(started, glimpse.time)))
    table = np.array(columns, dtype=np.float64).reshape(len(columns), 3)
    return {
        "times": pack.numbers(times, deltas=True),
        "moment": pack.numbers(table[:, 0], deltas=True),
        "job": pack.numbers(_jobs(names, rows)),
        "expected": pack.numbers(table[:, 1]),
        "started": pack.numbers(table[:, 2]),
    }


def _after(time: float | None, moment: float) -> float:
    return -1.0 if time is None else round(max(time - moment, 0.0), 6)


def _jobs(names: Sequence[str], rows: AttemptRows) -> Any:
    """Return, for each attempt in ``names``, the index of its job in ``rows.jobs``.

    The index is -1 if the job is not in ``rows``.
    """
    at = TextColumn.of(names).places_in(rows.names)
    return np.where(at < 0, -1, rows.job[np.maximum(at, 0)] if len(rows.job) else -1)
