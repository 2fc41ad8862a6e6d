"""Paper 002: Maui as a simulator for PBS, on IT4Innovations' Salomon (docs/maui.md, docs/reality.md)."""

from fractions import Fraction
from itertools import pairwise
from math import fsum
from typing import Any, Final

import numpy as np

from pipistrelle.papers.bench import Bench
from pipistrelle.papers.entry import (
    Chart,
    Entry,
    FigureRow,
    Finding,
    Paper,
    Series,
    Tolerance,
    claimed,
    compared,
)
from pipistrelle.reports.report.accuracy import WEEK
from pipistrelle.reports.report.time_steps import FirstWaits, time_steps, week_of
from pipistrelle.runs.description.setup import load_inputs, setup_of
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.description.spec_file import convert_spec
from pipistrelle.runs.execution.run import run
from pipistrelle.schedulers.maui.config.read import parse_maui_config
from pipistrelle.schedulers.maui.config.settings import Names
from pipistrelle.schedulers.maui.priority.credentials import Credentials
from pipistrelle.schedulers.maui.priority.fairshare import Fairshare
from pipistrelle.schedulers.maui.priority.priority import Priorities
from pipistrelle.schedulers.maui.priority.waiting import MauiQueue
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.server.setup.recorded import starts_of
from pipistrelle.traces.workload import Floats, Ints

_LOG: Final = "KTH-SP2-1996-2.1-cln.swf.gz"
#: section 2.1, as the paper prints it
_CONFIG: Final = """
ENABLENEGJOBPRIORITY TRUE
REJECTNEGPRIOJOBS FALSE
CREDWEIGHT 864000
CLASSWEIGHT 1000
FSWEIGHT 8640000
FSACCOUNTWEIGHT 1
SERVICEWEIGHT 1
QUEUETIMEWEIGHT 1
FSPOLICY DEDICATEDPS
FSDEPTH 1
FSINTERVAL 168:00:00
FSDECAY 0.50
ACCOUNTCFG[DEFAULT] FSTARGET=100
"""
#: table 1: {queue: (priority, nodes in all, nodes of a user, its line of the configuration)}
_QUEUES: Final[dict[str, tuple[int, int | None, int | None, str]]] = {
    "qexp": (150, 32, 8, "CLASSCFG[qexp] PRIORITY=150 MAXNODE=32 MAXNODEPERUSER=8"),
    "qprod": (0, None, None, "CLASSCFG[qprod] PRIORITY=0"),
    "qlong": (0, 256, None, "CLASSCFG[qlong] PRIORITY=0 MAXNODE=256"),
    "qmpp": (0, None, None, "CLASSCFG[qmpp] PRIORITY=0"),
    "qfree": (-1024, 752, None, "CLASSCFG[qfree] PRIORITY=-1024 MAXNODE=752"),
    "qmic": (0, None, None, "CLASSCFG[qmic] PRIORITY=0"),
    "SERVICE": (512, None, None, "CLASSCFG[SERVICE] PRIORITY=512"),
}
#: figure 3: {week: {step: (mean, median, deviation) of the errors of waits, s}}, as section 3.4.1 tells them
_ERRORS: Final = {
    6: {"60s": (103_386, 116_932, 53_415), "5s": (-52, 171, 7_557)},
    7: {"60s": (39_617, 18_984, 53_245), "5s": (-2_223, -10, 21_137)},
    29: {"60s": (27_951, 951, 70_094), "5s": (167, 2, 2_952)},
}
#: section 3.4.2: hours that week 7 took at 5 and at 1 s
_HOURS: Final = (42.0, 239.0)
_MEASURES: Final = ("mean", "median", "deviation")


def _config() -> str:
    return _CONFIG + "".join(f"{line}\n" for *_, line in _QUEUES.values())


def _table_1(bench: Bench) -> Finding:
    classes = parse_maui_config(_config())[0].credentials["CLASS"]
    rows = []
    for queue, (priority, most, user, _) in _QUEUES.items():
        own = classes[queue]
        rows.append(compared(f"{queue}: priority", priority, own.priority, Tolerance()))
        for name, said, per in (("nodes in all", most, None), ("nodes of a user", user, "USER")):
            found = [limit.hard for limit in own.limits if (limit.metric, limit.per) == ("NODE", per)]
            if said is not None:
                rows.append(compared(f"{queue}: {name}", said, found[0] if found else None, Tolerance()))
            elif found:
                rows.append(claimed(f"{queue}: {name}", "no limit", holds=False, ours=f"{found[0]:g}"))
    return Finding(rows)


def _priority(queue: str, waited: float, weight: int) -> float:
    """Return Maui's priority of a job whose account has used 3/8 of what was used in the window."""
    settings = parse_maui_config(_config().replace("QUEUETIMEWEIGHT 1\n", f"QUEUETIMEWEIGHT {weight}\n"))[0]
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


def _equations(bench: Bench) -> Finding:
    """Return 864,000 times equation 1 beside Maui's priority, with the paper's weights and with 60 for the wait."""
    rows = []
    share = 10**6 * (1 - Fraction(3, 8))
    for queue in ("qexp", "qprod", "qfree"):
        for days in (0, 1, 5):
            waited = 86_400.0 * days
            p = 1000 * _QUEUES[queue][0] + share / 1000 + Fraction(int(waited), 864_000)
            exact = float(864_000 * p)
            name = f"{queue}, {days} days waited"
            rows.append(compared(f"{name}: as printed", exact, _priority(queue, waited, 1), Tolerance()))
            rows.append(compared(f"{name}: QUEUETIMEWEIGHT 60", exact, _priority(queue, waited, 60), Tolerance()))
    return Finding(rows)


def _step_rows(bench: Bench) -> list[dict[str, Any]]:
    """Return the weeks of jobs drawn like Grizzly's, decided at time steps."""
    size = bench.size
    redraw = {"step": "redraw", "model": "grizzly", "load": 0.85, "duration": size.stepped, "seed": 1}
    weeks = range(2, int(size.stepped.removesuffix("d")) // 7 + 1)

    def make() -> list[dict[str, Any]]:
        spec = _spec(platform="grizzly", transform=[redraw])
        return [_without_time(row) for row in time_steps(spec, list(weeks), size.steps, tell=bench.tell)]

    found: list[dict[str, Any]] = bench.part(f"002/steps/grizzly, {size.stepped}, {','.join(size.steps)}", make)
    return found


def _log_rows(bench: Bench) -> list[dict[str, Any]]:
    """Return the weeks of KTH's log, decided at time steps."""
    path, digest = bench.trace(_LOG)
    size = bench.size

    def make() -> list[dict[str, Any]]:
        spec = RunSpec(workload=(path,), platform="kth-sp2")
        return [_without_time(row) for row in time_steps(spec, size.weeks, size.steps, tell=bench.tell)]

    weeks = ",".join(map(str, size.weeks))
    found: list[dict[str, Any]] = bench.part(f"002/steps/{_LOG}, {digest}, weeks {weeks}, {','.join(size.steps)}", make)
    return found


def _spec(**told: Any) -> RunSpec:
    return convert_spec(told, "paper 002")


def _without_time(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of the time-step study without what the wall clock says: that is another each time."""
    return {name: value for name, value in row.items() if name != "seconds"}


def _step_seconds(step: str) -> float:
    return float(step.removesuffix("s"))


def _apart(rows: list[dict[str, Any]], step: str) -> float:
    """Return the mean absolute error over all weeks of a step, s, against the run driven by events."""
    chosen = [row for row in rows if row["step"] == step]
    jobs: int = sum(row["jobs"] for row in chosen)
    total: float = fsum(row["jobs"] * row["against_events"]["mean_absolute"] for row in chosen)
    return total / jobs


def _figure_3(bench: Bench) -> Finding:
    rows = _step_rows(bench)
    steps = sorted({row["step"] for row in rows if row["step"]}, key=_step_seconds)
    found = []
    for row in rows:
        if row["step"] is not None:
            apart = row["against_events"]
            found += [
                FigureRow(f"week {row['week']}, step {row['step']}: {name} of errors", None, apart[name], "s")
                for name in _MEASURES
            ]
    errors = [_apart(rows, step) for step in steps]
    told = ", ".join(f"{error:,.1f} s at {step}" for step, error in zip(steps, errors, strict=True))
    falls = all(before < after for before, after in pairwise(errors))
    found.append(claimed("the finer the step, the smaller the error", "it converges", falls, told))
    least = min((row for row in rows if row["step"] == steps[0]), key=lambda row: row["week"])["against_events"]
    most = max(abs(weeks["5s"][1]) for weeks in _ERRORS.values())
    told = f"median {least['median']:,.0f} s, mean {least['mean']:,.0f} s at {steps[0]}"
    found.append(
        claimed("at 5 s half of the errors are small", f"medians up to {most} s", abs(least["median"]) <= most, told)
    )
    large = min(weeks["60s"][0] for weeks in _ERRORS.values())
    told = f"{errors[-1]:,.0f} s on average at {steps[-1]}"
    found.append(claimed("60 s steps lead to large errors", f"means from {large:,} s on", errors[-1] >= large, told))
    chart = Chart(
        "mean size of errors by time step",
        "step, s",
        "s",
        [Series("jobs like Grizzly's", [_step_seconds(step) for step in steps], errors)],
        log_x=True,
        log_y=True,
    )
    return Finding(found, [chart])


def _figure_3_log(bench: Bench) -> Finding:
    rows = _log_rows(bench)
    found = []
    for row in rows:
        told = row["against_log"]
        step = row["step"] or "events"
        said = _ERRORS.get(row["week"], {}).get(step, (None, None, None))
        for name, paper in zip(_MEASURES, said, strict=True):
            value = told[name]
            found.append(FigureRow(f"week {row['week']}, {step}: {name} of errors", paper, value, "s"))
    errors = [_apart(rows, step) for step in bench.size.steps]
    order = sorted(zip(map(_step_seconds, bench.size.steps), errors, strict=True))
    falls = all(before[1] <= after[1] for before, after in pairwise(order))
    spread = ", ".join(f"{error:,.1f} s at {step:g} s" for step, error in order)
    found.append(claimed("the finer the step, the smaller the error", "it converges", falls, spread))
    notes = ["The paper's numbers are Salomon's, ours KTH's: they stand beside each other, and are not compared."]
    return Finding(found, [_distribution(bench)], notes)


def _figure_4(bench: Bench) -> Finding:
    rows = _step_rows(bench)
    steps_there = sorted({row["step"] for row in rows if row["step"] is not None}, key=_step_seconds)
    asked = {step: sum(row["asked"] for row in rows if row["step"] == step) for step in steps_there}
    events = sum(row["asked"] for row in rows if row["step"] is None)
    found = [FigureRow("decisions when driven by events", None, events)]
    found += [FigureRow(f"decisions at steps of {step}", None, count) for step, count in asked.items()]
    finest, coarsest = min(asked, key=_step_seconds), max(asked, key=_step_seconds)
    ratio = asked[finest] / asked[coarsest]
    steps = _step_seconds(coarsest) / _step_seconds(finest)
    found.append(
        compared(
            "week 7: time at 1 s over that at 5 s, said to be in the order of 5",
            5.0,
            _HOURS[1] / _HOURS[0],
            Tolerance(relative=0.2),
        )
    )
    found.append(
        claimed(
            "simulation time grows in proportion to the resolution",
            f"{steps:g} times from {coarsest} to {finest}",
            ratio > steps / 2,
            f"{ratio:.2f} times as many decisions",
        )
    )
    return Finding(found)


def _week(bench: Bench) -> dict[str, Any]:
    """Return a week of KTH's log under EASY: waits of its jobs, and curves by the hour, with the week before it."""
    path, digest = bench.trace(_LOG)
    week = bench.size.weeks[0]
    found: dict[str, Any] = bench.part(f"002/week/{_LOG}, {digest}, week {week}", lambda: week_beside(path, week))
    return found


def week_beside(path: str, week: int) -> dict[str, Any]:
    """Return how a week of KTH's log, with the one before it, was and how it is under EASY, as plain values.

    ``waits`` has those of the week's jobs (s), ``curves`` by the hour the share of units in use and how many jobs wait,
    each ``real`` and ``simulated``; hours are counted from the begin of the week before.
    """
    spec = RunSpec(workload=(path,), platform="kth-sp2")
    trace, machine = load_inputs(spec)
    part = week_of(trace, week, WEEK)
    watch = FirstWaits()
    setup = setup_of(spec, part, machine)
    run(spec, setup=setup, observers=[watch])
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
    """Return the mean, from each edge to the next, of the sum of the weights of what lasts from begin to end."""
    low, high = edges[:-1, None], edges[1:, None]
    inside = np.clip(np.minimum(end, high) - np.maximum(begin, low), 0.0, None)
    held: Floats = (inside * weight).sum(axis=1) / (edges[1:] - edges[:-1])
    return held


def _figure_1_log(bench: Bench) -> Finding:
    week = _week(bench)
    curves = week["curves"]
    half = len(curves["hours"]) // 2
    rows = []
    used = {name: np.array(curves[f"used, {name}"][half:]) for name in ("real", "simulated")}
    for name, values in used.items():
        rows.append(FigureRow(f"units in use in the week, {name}", None, 100 * float(values.mean()), "%"))
    apart = 100 * float(np.abs(used["real"] - used["simulated"]).mean())
    rows.append(
        claimed(
            "the simulation shows similar utilisation", "similar", apart < 15, f"{apart:.1f} points apart on average"
        )
    )
    waits = {name: np.array(values) for name, values in week["waits"].items()}
    lower = float(np.median(waits["simulated"])) <= float(np.median(waits["real"]))
    told = ", ".join(f"{name} {np.median(values):,.0f} s" for name, values in waits.items())
    rows.append(claimed("waits are tentatively lower than for the real system", "lower", lower, f"medians: {told}"))
    names = ("real", "simulated")
    charts = [
        Chart(
            f"units in use, KTH, weeks {bench.size.weeks[0] - 1} and {bench.size.weeks[0]}",
            "hours from the begin of the week before",
            "share of units",
            [Series(name, curves["hours"], curves[f"used, {name}"], paper=name == "real") for name in names],
            kind="steps",
        ),
        Chart(
            "jobs that wait",
            "hours from the begin of the week before",
            "jobs",
            [Series(name, curves["hours"], curves[f"waiting, {name}"], paper=name == "real") for name in names],
            kind="steps",
        ),
    ]
    return Finding(rows, charts)


def _distribution(bench: Bench) -> Chart:
    """Return the distributions of waits of the log and of EASY."""
    series = []
    for name, waits in _week(bench)["waits"].items():
        ordered = np.maximum(np.sort(np.array(waits)), 1.0)
        shares = (np.arange(len(ordered)) + 1) / len(ordered)
        series.append(Series(name, ordered.tolist(), shares.tolist(), paper=name == "real"))
    title = f"distributions of waits, KTH, week {bench.size.weeks[0]}"
    return Chart(title, "wait, s (less than 1 at 1)", "share of jobs", series, kind="steps", log_x=True)


_STEPS: Final = "pipistrelle steps -p grizzly --transform 'redraw --model grizzly --load 0.85 --duration 14d' --week "
"2 --step 60s --step 5s"
_STEPS_LOG: Final = f"pipistrelle steps -w {_LOG} -p kth-sp2 --week 6 --week 7 --week 29 --step 60s --step 5s"
_SALOMON: Final = "Salomon's log is not public; neither are its node downtimes."

PAPER: Final = Paper(
    "002",
    "Maui as a simulator for PBS on Salomon",
    "G. Zitzlsberger, B. Jansik and J. Martinovic, Feasibility Analysis of Using the Maui Scheduler for Job "
    "Simulation of "
    "Large-Scale PBS Based Clusters, 2018",
    (
        Entry(
            "equations",
            "PBS's formula and Maui's priority",
            "equations 1 and 2, section 2.1.1",
            "Maui's weights are to give the priority of equation 1, times 864,000.",
            "MauiPolicy.breakdown (docs/maui.md)",
            _equations,
            expects="differs",
            reason="As printed, the wait counts a 60th of what equation 1 says: Maui's queue time is in minutes, the "
            "equation's w in seconds. "
            "With QUEUETIMEWEIGHT 60 all are equal to the last digit.",
        ),
        Entry(
            "table-1",
            "queues and their limits",
            "table 1, section 3.1",
            "Priorities and limits of nodes of seven queues, with the lines of Maui's configuration for them.",
            "read_maui_config (docs/maui.md)",
            _table_1,
        ),
        Entry(
            "figure-1",
            "week 7: utilisation and waits",
            "figure 1, section 3.4.1",
            "Real and simulated utilisation with a maintenance; waits by job.",
            reason=_SALOMON,
        ),
        Entry(
            "figure-2",
            "week 29: utilisation and waits",
            "figure 2, section 3.4.1",
            "The same of a week without maintenance.",
            reason=_SALOMON,
        ),
        Entry(
            "figure-1-log",
            "the same of a week of KTH's log",
            "figures 1 and 2, section 3.4.1",
            "A week with the one before it: utilisation is similar, waits tend to be lower than real ones.",
            f"pipistrelle run easy -w {_LOG} -p kth-sp2 --out easy; pipistrelle accuracy easy {_LOG} --curves "
            f"curves.csv",
            _figure_1_log,
            expects="differs",
            reason="Another machine and another scheduler: EASY, which knows no rules of KTH's, beside the log of "
            "its SP2.",
            needs=(_LOG,),
        ),
        Entry(
            "figure-3",
            "errors of waits by time step",
            "figure 3, section 3.4.1",
            "103,386 s on average in week 6 with steps of 60 s, -52 s with 5 s; the finer the step, the smaller the "
            "error.",
            _STEPS,
            _figure_3,
            expects="differs",
            reason=f"{_SALOMON} On jobs drawn like Grizzly's, half of the errors are within a minute even at 60 s: "
            f"the paper's grow "
            "through a queue of up to 60,000 jobs on a machine that is full.",
        ),
        Entry(
            "figure-3-log",
            "errors of waits against KTH's log",
            "figure 3, section 3.4.1",
            "Mean, median and deviation of errors for weeks 6, 7 and 29, and the distributions of waits.",
            _STEPS_LOG,
            _figure_3_log,
            reason="Another machine and another scheduler: EASY beside the log of KTH's SP2.",
            needs=(_LOG,),
        ),
        Entry(
            "figure-4",
            "simulation time by time step",
            "figure 4, section 3.4.2",
            "Simulation times grow in proportion to the resolution: 42 h at 5 s and 239 h at 1 s for week 7.",
            _STEPS,
            _figure_4,
            expects="differs",
            reason="Time does not pass in steps here: a finer step costs only the instants at which something "
            "happens. Counted are "
            "decisions, not hours, which are another number each time.",
        ),
        Entry(
            "figure-5",
            "week 6 at 60 and at 5 s",
            "figure 5, section 3.4.2",
            "Waits that grow through the week with steps of 60 s.",
            reason=_SALOMON,
        ),
    ),
    "reality.md",
)
