"""Paper 002: Maui as a simulator for PBS on Salomon (docs/reference/maui.md)."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from math import fsum
from typing import Any, Final

import numpy as np

from pipistrelle.papers.bench import Bench
from pipistrelle.papers.entry import Series
from pipistrelle.papers.sheet import Compute, Sheet
from pipistrelle.reports.report.accuracy import WEEK
from pipistrelle.reports.report.time_steps import FirstWaits, time_steps, week_of
from pipistrelle.runs.description.setup import Inputs, load_inputs, load_setup
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.description.spec_file import convert_spec
from pipistrelle.runs.execution.run import RunOptions, run
from pipistrelle.schedulers.maui.config.read import parse_maui_config
from pipistrelle.schedulers.maui.config.settings import Names
from pipistrelle.schedulers.maui.priority.credentials import Credentials
from pipistrelle.schedulers.maui.priority.fairshare import Fairshare
from pipistrelle.schedulers.maui.priority.priority import Priorities
from pipistrelle.schedulers.maui.priority.waiting import MauiQueue
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.server.setup.recorded import starts_of
from pipistrelle.traces.workload import Floats, Ints

_MEASURES: Final = ("mean", "median", "deviation")


def table_1(bench: Bench, sheet: Sheet) -> None:
    """Compare table 1 of paper 002 with priorities and limits in Maui's configuration."""
    classes = parse_maui_config(sheet.printed["config"])[0].credentials["CLASS"]
    for queue, said in sheet.printed["queues"].items():
        own = classes[queue]
        sheet.row("priority", own.priority, said["priority"], queue=queue)
        for name, per in (("nodes", None), ("user", "USER")):
            found = [limit.hard for limit in own.limits if (limit.metric, limit.per) == ("NODE", per)]
            if name in said:
                sheet.row(name, found[0] if found else None, said[name], queue=queue)
            elif found:
                sheet.row(name, found[0], "no limit", agrees=False, queue=queue)


def _priority(config: str, queue: str, waited: float, weight: int) -> float:
    """Return Maui's priority of a job whose account has 3/8 of the recent usage.

    Recent usage is that in the fairshare window. The job has waited for ``waited`` s. ``weight`` replaces the
    configuration's QUEUETIMEWEIGHT.
    """
    settings = parse_maui_config(config.replace("QUEUETIMEWEIGHT 1\n", f"QUEUETIMEWEIGHT {weight}\n"))[0]
    credentials = Credentials()
    fairshare = Fairshare(settings, credentials)
    priorities = Priorities(settings, credentials, fairshare, 1)
    waiting = MauiQueue()
    mine = Names("ann", "g", "OPEN-1-1", queue, "DEFAULT")
    fairshare.started(0.0, credentials.code(mine), 3)
    fairshare.started(0.0, credentials.code(Names("bob", "g", "OPEN-2-2", "qprod", "DEFAULT")), 5)
    now = 500_000.0
    job = SchedulerJob("w0!1", 0, 1, 3600.0, now - waited)
    waiting.add(job, walltime=3600.0, code=credentials.code(mine), access=0, since=now - waited)
    return priorities.breakdown(waiting, waiting.row_of[job.number], now).total


def equations(bench: Bench, sheet: Sheet) -> None:
    """Compare equation 1 of paper 002, multiplied by 864,000, with Maui's priority."""
    share = 10**6 * (1 - Fraction(3, 8))
    for queue in ("qexp", "qprod", "qfree"):
        for days in (0, 1, 5):
            waited = 86_400.0 * days
            p = 1000 * sheet.printed["queues"][queue]["priority"] + share / 1000 + Fraction(int(waited), 864_000)
            for weight, name in ((1, "as printed"), (60, "QUEUETIMEWEIGHT 60")):
                ours = _priority(sheet.printed["config"], queue, waited, weight)
                sheet.row("priority", ours, float(864_000 * p), queue=queue, days=days, weight=name)


def _redrawn_rows(bench: Bench) -> list[dict[str, Any]]:
    """Return how fixed time steps change waits of jobs drawn like Grizzly's.

    The result has a row per week and step.
    """
    size = bench.size
    redraw = {"step": "redraw", "model": "grizzly", "load": 0.85, "duration": size.stepped, "seed": 1}
    spec = convert_spec({"platform": "grizzly", "transform": [redraw]}, "paper 002")
    weeks = range(2, int(size.stepped.removesuffix("d")) // 7 + 1)
    return _step_rows(bench, f"grizzly, {size.stepped}", spec, weeks)


def _log_rows(bench: Bench, log: str) -> list[dict[str, Any]]:
    """Return how fixed time steps change waits of the jobs in KTH's log.

    The result has a row per week and step.
    """
    path, digest = bench.trace(log)
    weeks = bench.size.weeks
    name = f"{log}, {digest}, weeks {','.join(map(str, weeks))}"
    return _step_rows(bench, name, RunSpec(workload=(path,), platform="kth-sp2"), weeks)


def _step_rows(bench: Bench, name: str, spec: RunSpec, weeks: Sequence[int]) -> list[dict[str, Any]]:
    """Simulate weeks with decisions at fixed time steps.

    Return a row per week and step. Wall-clock times are left out. ``name`` states what determines the result, for the
    journal of finished parts.
    """
    steps = bench.size.steps

    def make() -> list[dict[str, Any]]:
        rows = time_steps(spec, list(weeks), steps, tell=bench.tell)
        return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]

    found: list[dict[str, Any]] = bench.part(f"002/steps/{name}, {','.join(steps)}", make)
    return found


def _step_seconds(step: str) -> float:
    return float(step.removesuffix("s"))


def _apart(rows: list[dict[str, Any]], step: str) -> float:
    """Return the mean absolute change (s) of waits by fixed time steps.

    With such steps, the scheduler decides only at fixed times. Waits are compared with those of the event-driven run.
    ``step`` is the length of the time step.
    """
    chosen = [row for row in rows if row["step"] == step]
    jobs: int = sum(row["jobs"] for row in chosen)
    total: float = fsum(row["jobs"] * row["against_events"]["mean_absolute"] for row in chosen)
    return total / jobs


def figure_3(bench: Bench, sheet: Sheet) -> None:
    """Simulate how fixed time steps change the waits of random jobs like Grizzly's."""
    rows = _redrawn_rows(bench)
    steps = sorted({row["step"] for row in rows if row["step"]}, key=_step_seconds)
    for row in rows:
        for name in _MEASURES if row["step"] is not None else ():
            sheet.row("error", row["against_events"][name], week=row["week"], step=row["step"], name=name)
    errors = [_apart(rows, step) for step in steps]
    told = ", ".join(f"{error:,.1f} s at {step}" for step, error in zip(steps, errors, strict=True))
    sheet.claim("converges", all(before < after for before, after in pairwise(errors)), errors=told)
    least = min((row for row in rows if row["step"] == steps[0]), key=lambda row: row["week"])["against_events"]
    most = max(abs(median) for _, step, _, median, _ in sheet.printed["errors"] if step == "5s")
    labels = {"most": most, "median": least["median"], "mean": least["mean"], "step": steps[0]}
    sheet.claim("small", abs(least["median"]) <= most, **labels)
    large = min(mean for _, step, mean, *_ in sheet.printed["errors"] if step == "60s")
    sheet.claim("large", errors[-1] >= large, least=large, error=errors[-1], step=steps[-1])
    sheet.chart("errors", [Series("jobs like Grizzly's", [_step_seconds(step) for step in steps], errors)])


def figure_3_log(bench: Bench, sheet: Sheet) -> None:
    """Simulate how fixed time steps change the waits of the jobs in KTH's log."""
    log = sheet.entry.needs[0]
    rows = _log_rows(bench, log)
    said = {(week, step): errors for week, step, *errors in sheet.printed["errors"]}
    for row in rows:
        step = row["step"] or "events"
        papers = said.get((row["week"], step), (None, None, None))
        for name, paper in zip(_MEASURES, papers, strict=True):
            sheet.row("error", row["against_log"][name], paper, agrees=None, week=row["week"], step=step, name=name)
    order = sorted((_step_seconds(step), _apart(rows, step)) for step in bench.size.steps)
    falls = all(before[1] <= after[1] for before, after in pairwise(order))
    sheet.claim("converges", falls, errors=", ".join(f"{error:,.1f} s at {step:g} s" for step, error in order))
    series = []
    for name, waits in _week(bench, log)["waits"].items():
        ordered = np.maximum(np.sort(np.array(waits)), 1.0)
        shares = (np.arange(len(ordered)) + 1) / len(ordered)
        series.append(Series(name, ordered.tolist(), shares.tolist(), paper=name == "real"))
    sheet.chart("waits", series, week=bench.size.weeks[0])


def figure_4(bench: Bench, sheet: Sheet) -> None:
    """Count the scheduler's decisions by time step (figure 4 of paper 002)."""
    rows = _redrawn_rows(bench)
    steps = sorted({row["step"] for row in rows if row["step"] is not None}, key=_step_seconds)
    asked = {step: sum(row["asked"] for row in rows if row["step"] == step) for step in steps}
    sheet.row("events", sum(row["asked"] for row in rows if row["step"] is None))
    for step, count in asked.items():
        sheet.row("steps", count, step=step)
    finest, coarsest = steps[0], steps[-1]
    ratio, times = asked[finest] / asked[coarsest], _step_seconds(coarsest) / _step_seconds(finest)
    at_five, at_one = sheet.printed["hours"]
    sheet.row("hours", at_one / at_five)
    sheet.claim("proportion", ratio > times / 2, steps=times, coarsest=coarsest, finest=finest, ratio=ratio)


def _week(bench: Bench, log: str) -> dict[str, Any]:
    """Return the waits and hourly curves of a week of KTH's log.

    They are given as recorded and as simulated under EASY.
    """
    path, digest = bench.trace(log)
    week = bench.size.weeks[0]
    found: dict[str, Any] = bench.part(f"002/week/{log}, {digest}, week {week}", lambda: week_beside(path, week))
    return found


def week_beside(path: str, week: int) -> dict[str, Any]:
    """Return the waits and curves of a week of KTH's log, as recorded and under EASY.

    ``waits`` has the wait of each of the week's jobs (s). ``curves`` has the share of units in use and the number of
    queued jobs in each hour of this week and the one before it. Each has ``real`` and ``simulated`` values.
    """
    spec = RunSpec(workload=(path,), platform="kth-sp2")
    trace, machine = load_inputs(spec)
    part = week_of(trace, week, WEEK)
    watch = FirstWaits()
    setup = load_setup(spec, Inputs(workload=part, machine=machine))
    run(spec, RunOptions(setup=setup, observers=[watch]))
    known = [place for place, name in enumerate(part.ids) if name in watch.of]
    submit, size, runtime = part.submit[known], part.size[known], part.runtime[known]
    waits = {
        "real": (starts_of(part) - part.submit)[known],
        "simulated": np.array([watch.of[part.ids[place]] for place in known]),
    }
    begin = float(submit[0]) + WEEK
    edges: Floats = float(submit[0]) + 3600.0 * np.arange(int(2 * WEEK / 3600) + 1, dtype=np.float64)
    units = setup.platform.units
    mine = (submit >= begin) & ~np.isnan(waits["real"])
    curves: dict[str, Any] = {"hours": list(range(len(edges) - 1))}
    for name, waited in waits.items():
        start = np.nan_to_num(submit + waited)
        curves[f"used, {name}"] = (_held(edges, start, start + runtime, size) / units).tolist()
        curves[f"waiting, {name}"] = _held(edges, submit, start, np.ones(len(start))).tolist()
    return {"waits": {name: waited[mine].tolist() for name, waited in waits.items()}, "curves": curves}


def _held(edges: Floats, begin: Floats, end: Floats, weight: Floats | Ints) -> Floats:
    """Return the mean weight of overlapping intervals between successive edges.

    The result has one value for each span between two edges. Interval i lasts from ``begin[i]`` to ``end[i]`` (s) and
    counts ``weight[i]`` while it lasts. ``edges`` are times (s).
    """
    low, high = edges[:-1, None], edges[1:, None]
    inside = np.clip(np.minimum(end, high) - np.maximum(begin, low), 0.0, None)
    held: Floats = (inside * weight).sum(axis=1) / (edges[1:] - edges[:-1])
    return held


def figure_1_log(bench: Bench, sheet: Sheet) -> None:
    """Compare a week of KTH's log with the same week under EASY."""
    week = _week(bench, sheet.entry.needs[0])
    curves = week["curves"]
    half = len(curves["hours"]) // 2
    real, simulated = (np.array(curves[f"used, {name}"][half:]) for name in ("real", "simulated"))
    sheet.row("used", 100 * float(real.mean()), name="real")
    sheet.row("used", 100 * float(simulated.mean()), name="simulated")
    apart = 100 * float(np.abs(real - simulated).mean())
    sheet.claim("similar", apart < 15, apart=apart)
    waits = {name: float(np.median(np.array(values))) for name, values in week["waits"].items()}
    sheet.claim("lower", waits["simulated"] <= waits["real"], **waits)
    for chart in ("used", "waiting"):
        lines = [
            Series(name, curves["hours"], curves[f"{chart}, {name}"], paper=name == "real")
            for name in ("real", "simulated")
        ]
        sheet.chart(chart, lines, before=bench.size.weeks[0] - 1, week=bench.size.weeks[0])


COMPUTED: Final[Mapping[str, Compute]] = {
    "equations": equations,
    "table-1": table_1,
    "figure-1-log": figure_1_log,
    "figure-3": figure_3,
    "figure-3-log": figure_3_log,
    "figure-4": figure_4,
}
