"""Jobs that are cancelled while they wait leave the queue then, whatever the scheduler, the protocol and the parts."""

from collections.abc import Callable
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipistrelle.platforms.classes import JobClass
from pipistrelle.platforms.description import Platform, Pool, homogeneous
from pipistrelle.platforms.failures.outage import Outage, Outages
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.connection import WithChild
from pipistrelle.runs.execution.pause import Pause, check_invariants
from pipistrelle.runs.execution.run import RunOptions, run
from pipistrelle.schedulers.catalogue.registry import make_policy
from pipistrelle.schedulers.policy.interfaces import Policy
from pipistrelle.schedulers.runtime.polling import Polling
from pipistrelle.schedulers.runtime.runtime import Runtime
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.outages.reliability import Reliability
from pipistrelle.server.setup.setup import Setup
from pipistrelle.server.simulation.simulate import Result, simulate
from pipistrelle.server.transport.in_process import InProcessTransport
from pipistrelle.traces.clean import were_cancelled, with_cancellations
from pipistrelle.traces.load import load
from pipistrelle.traces.workload import Workload

POLICIES = (
    "fcfs",
    "easy",
    "easy-sjbf",
    "easy-slices",
    "conservative",
    "filler",
    "pbs",
    "titan-bins",
    "maui",
    "recorded",
)
UNITS = 6
#: submission, size, run time (-1: cancelled), requested time, wait
Row = tuple[float, int, float, float, float]


class Ends(Observer):
    """Keeps of each job its state, start and end."""

    def __init__(self) -> None:
        self.of: dict[str, tuple[str, float, float]] = {}

    def ended(self, now: float, job: Job) -> None:
        """Keep it."""
        assert now == job.end or job.state == "REJECTED"
        self.of[job.id.partition("!")[2].partition("#")[0]] = (job.state, job.start, job.end)


def log_of(rows: list[Row]) -> Workload:
    """Return a log with cancelled jobs."""
    submit, size, runtime, walltime, wait = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    return Workload(
        name="log",
        source="log",
        ids=[str(number) for number in range(len(rows))],
        submit=submit,
        size=size.astype(np.int64),
        walltime=walltime,
        runtime=runtime,
        measures={"wait": wait},
        columns={"status": np.where(runtime < 0, 5, 1)},
    )


def ran(
    rows: list[Row],
    policy: Policy,
    *,
    told: bool = True,
    reliability: Reliability | None = None,
    platform: Platform | None = None,
    more: Callable[[Any, Runtime], None] = lambda simulation, runtime: None,
) -> tuple[Result, Ends]:
    """Return the results of a run that honours recorded cancellations; all invariants hold at each notice."""
    machine = platform or homogeneous(UNITS, "m")
    setup = Setup.steady(machine, log_of(rows), strict=True, cancellations=True).with_reliability(reliability)
    watch, runtime = Ends(), Runtime(policy, cancellations=told)

    def between(simulation: Any) -> None:
        check_invariants(simulation.engine, runtime.view if told else None)
        more(simulation, runtime)

    transport = InProcessTransport(runtime)
    result = simulate(setup, transport, clock=lambda: 0.0, observers=[watch], between=between)
    if result.failure is not None:
        raise result.failure
    return result, watch


ROWS = st.lists(
    st.tuples(
        st.integers(0, 30).map(float),
        st.integers(1, UNITS),
        st.one_of(st.just(-1.0), st.integers(1, 12).map(float)),
        st.sampled_from([4.0, 12.0, 50.0]),
        st.integers(0, 15).map(float),
    ),
    min_size=1,
    max_size=14,
).map(lambda rows: sorted(rows, key=lambda row: row[0]))


@given(ROWS, st.sampled_from(POLICIES), st.booleans(), st.sampled_from([None, 5.0]))
@settings(deadline=None, max_examples=120)
def test_cancelled_jobs_leave(rows: list[Row], name: str, told: bool, step: float | None) -> None:
    """Under every policy, with or without notices or polling: cancelled jobs are gone by their date, the others run."""
    policy = make_policy(name)
    result, watch = ran(rows, policy if step is None else Polling(policy, step), told=told)

    cancelled = 0
    for number, (submit, _, runtime, walltime, wait) in enumerate(rows):
        state, start, end = watch.of[str(number)]
        if runtime > 0:
            assert state in ("COMPLETED_SUCCESSFULLY", "COMPLETED_WALLTIME_REACHED")
            assert end - start == min(runtime, walltime)
        elif state == "CANCELLED":
            cancelled += 1
            assert end == submit + wait
            assert np.isnan(start)
        else:
            assert state in ("COMPLETED_KILLED", "COMPLETED_WALLTIME_REACHED")
            assert start < end == min(submit + wait, start + walltime)
    summary = result.summary
    assert (summary.cancelled, summary.unfinished, summary.jobs) == (cancelled, 0, len(rows)) or not any(
        row[2] < 0 for row in rows
    )
    if name == "recorded" and step is None:
        assert cancelled == sum(row[2] < 0 for row in rows)


@given(ROWS, st.sampled_from(["easy", "conservative", "maui", "pbs"]))
@settings(deadline=None, max_examples=25)
def test_where_nodes_fail(rows: list[Row], name: str) -> None:
    """Requeued jobs are cancelled, too, wherever they are by then."""
    outages = Outages.of([Outage(node, 5.0 + 7 * node, 9.0 + 7 * node) for node in range(4)])
    _, watch = ran(rows, make_policy(name), reliability=Reliability(outages=outages))

    for number, (submit, _, runtime, _, wait) in enumerate(rows):
        if runtime < 0:
            state, _, end = watch.of[str(number)]
            assert end <= submit + wait or state == "CANCELLED"


@given(ROWS, st.sampled_from(["easy", "conservative", "maui", "easy-slices", "pbs", "filler"]), st.integers(0, 20))
@example([(0.0, 1, -1.0, 4.0, 0.0), (6.0, 6, 1.0, 4.0, 0.0), (6.0, 1, -1.0, 4.0, 5.0)], "maui", 5)  # not announced yet
@example(
    [
        *((0.0, 1, -1.0, 4.0, 0.0), (1.0, 1, -1.0, 4.0, 1.0), (11.0, 4, 6.0, 12.0, 0.0), (11.0, 3, 1.0, 4.0, 0.0)),
        (16.0, 1, 1.0, 4.0, 0.0),
    ],
    "conservative",
    7,
)
@settings(deadline=None, max_examples=25)
def test_run_resumes_from_its_state(rows: list[Row], name: str, at: int) -> None:
    """Taken anywhere, the state leads to the same ends."""
    states: list[dict[str, Any]] = []

    def keep(simulation: Any, runtime: Runtime) -> None:
        states.append(Pause(RunSpec(), simulation, InProcessTransport(runtime)).state())

    step = 5.0 if at % 2 else None
    made = [make_policy(name) if step is None else Polling(make_policy(name), step) for _ in range(2)]
    whole, _ = ran(rows, made[0], more=keep)
    state = states[min(at, len(states) - 1)]
    setup = Setup.steady(homogeneous(UNITS, "m"), log_of(rows), strict=True, cancellations=True)
    transport = InProcessTransport(Runtime(made[1], cancellations=True))
    again = simulate(
        setup,
        transport,
        clock=lambda: 0.0,
        resume=lambda simulation: Pause(RunSpec(), simulation, transport).restore(state),
    )

    assert again.failure is None
    assert again.summary == whole.summary


@pytest.mark.parametrize("name", ["easy", "conservative", "maui"])
def test_reservation_is_released(name: str) -> None:
    """Behind a wide job that is cancelled the next one starts at that instant."""
    rows = [(0.0, 4, 50.0, 50.0, 0.0), (1.0, 6, -1.0, 100.0, 9.0), (2.0, 2, 90.0, 90.0, 0.0)]
    _, watch = ran(rows, make_policy(name))

    assert watch.of["1"][0::2] == ("CANCELLED", 10.0)
    assert watch.of["2"][1] == 10.0


def test_place_below_a_limit_is_released() -> None:
    """A job held by a class limit joins the queue when another job of the class leaves it."""
    platform = Platform(name="m", pools=(Pool(name="p", nodes=UNITS),), classes=(JobClass(name="short", max_nodes=4),))
    log = log_of([(0.0, 4, 50.0, 50.0, 0.0), (1.0, 4, -1.0, 100.0, 9.0), (2.0, 2, 9.0, 9.0, 0.0)])
    rows = [*zip(log.submit, log.size, log.runtime, log.walltime, log.measures["wait"], strict=True)]
    _, watch = ran(rows, make_policy("easy"), platform=platform)

    assert watch.of["1"] == pytest.approx(("CANCELLED", nan, 10.0), nan_ok=True) or watch.of["1"][2] == 10.0
    assert watch.of["2"][0] == "COMPLETED_SUCCESSFULLY"


SWF = """; MaxProcs: 4
1 0 0 100 4 -1 -1 4 200 -1 1 -1 -1 -1 -1 -1 -1 -1
2 10 30 0 -1 -1 -1 4 200 -1 5 -1 -1 -1 -1 -1 -1 -1
3 20 80 50 1 -1 -1 1 200 -1 1 -1 -1 -1 -1 -1 -1 -1
4 30 300 -1 -1 -1 -1 2 400 -1 5 -1 -1 -1 -1 -1 -1 -1
5 40 10 70 1 -1 -1 1 200 -1 5 -1 -1 -1 -1 -1 -1 -1
"""


def test_runs_keep_or_drop_them(tmp_path: Path) -> None:
    """Over the wire or in process, outputs are the same; without the feature they are today's."""
    (tmp_path / "log.swf").write_text(SWF, encoding="utf-8")
    assert were_cancelled(load(tmp_path / "log.swf")).tolist() == [False, True, False, True, False]
    outputs: dict[str, dict[str, bytes]] = {}
    for name, keeps, way in (("in", True, None), ("out", True, WithChild()), ("drop", False, None)):
        spec = RunSpec(workload=(str(tmp_path / "log.swf"),), cancellations="keep" if keeps else "drop")
        run(spec, RunOptions(connection=way, out=tmp_path / name))
        outputs[name] = {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}

    assert outputs["in"] == outputs["out"]
    jobs = outputs["in"]["out_jobs.csv"].decode().splitlines()
    assert '2,w0,31,10.000000,4,200.000000,0,CANCELLED,,,40.000000,30.000000,,,,,""' in jobs
    assert any(line.startswith("4,w0,") and ",COMPLETED_KILLED," in line for line in jobs)
    assert b'"cancelled": 1' in outputs["in"]["out_summary.json"]
    assert b'"cancellations"' in outputs["in"]["out_config.json"]
    assert b"cancel" not in outputs["drop"]["out_summary.json"] + outputs["drop"]["out_config.json"]
    assert b'"run time zero or missing": 2' in outputs["drop"]["out_summary.json"]


def test_batsims_dialect_has_no_word_for_it(tmp_path: Path) -> None:
    """There, a job that was cancelled ends when it is started, and the run comes to its end."""
    (tmp_path / "log.swf").write_text(SWF, encoding="utf-8")
    spec = RunSpec(workload=(str(tmp_path / "log.swf"),), cancellations="keep", dialect="batsim", scheduler="fcfs")
    result = run(spec, RunOptions(connection=WithChild()))

    assert (result.summary.reason, result.summary.cancelled, result.summary.unfinished) == ("completed", 1, 0)


def test_sacct_has_cancellations(tmp_path: Path) -> None:
    """A job with an unknown start was cancelled at its end."""
    text = "JobID|Submit|Start|End|Elapsed|State|Timelimit|NNodes\n"
    text += "1|2024-01-01T00:00:00|Unknown|2024-01-01T00:05:00|00:00:00|CANCELLED by 7|01:00:00|2\n"
    text += "2|2024-01-01T00:00:00|2024-01-01T00:01:00|2024-01-01T00:02:00|00:01:00|CANCELLED by 7|01:00:00|2\n"
    (tmp_path / "sacct.txt").write_text(text, encoding="utf-8")
    kept = with_cancellations(load(tmp_path / "sacct.txt"))

    assert kept.measures["cancelled_after"].tolist() == [300.0, -1.0]
    assert kept.measures["wait"].tolist() == [-1.0, 60.0]
    assert kept.walltime.max() < inf
