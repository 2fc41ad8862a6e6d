"""Preemption as a maui.cfg has it: flags of credentials, PREEMPTPOLICY, priorities."""

from collections.abc import Iterator
from math import inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.platforms.description import homogeneous
from pipistrelle.platforms.failures.outage import Outage, Outages
from pipistrelle.protocol.base.state import from_json, to_json
from pipistrelle.protocol.decisions import PreemptJob
from pipistrelle.protocol.events import SimulationBeginsData
from pipistrelle.schedulers.maui.config.read import MauiConfigError, parse_maui_config
from pipistrelle.schedulers.maui.policy import MauiPolicy
from pipistrelle.schedulers.runtime.runtime import Runtime
from pipistrelle.server.engine.engine import Engine
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.outages.reliability import Reliability
from pipistrelle.server.simulation.assembly import native_engine
from pipistrelle.traces.resilience import NONE, parse_resilience

FLAGS = """
QOSWEIGHT 1000
QUEUETIMEWEIGHT 0
QOSCFG[high] PRIORITY=10 QFLAGS=PREEMPTOR
QOSCFG[low]  PRIORITY=1 QFLAGS=PREEMPTEE
QOSCFG[mid]  PRIORITY=5 QFLAGS=PREEMPTOR,PREEMPTEE
"""


class Tale(Observer):
    """Keeps starts, orders to go, and ends, as (time, what, job)."""

    def __init__(self) -> None:
        self.rows: list[tuple[float, str, str]] = []

    def started(self, now: float, job: Job) -> None:
        """Note it."""
        self.rows.append((now, "starts", job.id[3:]))

    def ended(self, now: float, job: Job) -> None:
        """Note it."""
        self.rows.append((now, "ends", job.id[3:]))

    def decided(self, now: float, decision: Any, rejected: Any) -> None:
        """Record the preempted jobs; fail on an illegal decision."""
        assert rejected is None
        if isinstance(decision, PreemptJob):
            self.rows.append((now, "goes", decision.data.job_id[3:]))

    def of(self, what: str) -> list[tuple[float, str]]:
        """Return the time and the job of each preemption."""
        return [(time, name) for time, kind, name in self.rows if kind == what]


def runtime_of(config: str) -> Runtime:
    """Return a scheduler with a configuration."""
    return Runtime(MauiPolicy(parse_maui_config(config)[0]))


def engine_of(runtime: Runtime, rows: Any, tale: Tale, units: int = 4, **reliability: Any) -> Engine:
    """Return the engine of a run of (name, submit, size, run time, walltime, QOS)."""
    jobs = (
        Job(
            f"w0!{name}",
            float(submit),
            size,
            float(walltime),
            float(runtime_s),
            "p",
            labels=("u", None, None, qos, qos),
        )
        for name, submit, size, runtime_s, walltime, qos in rows
    )
    features: Any = tuple(name for name in runtime.hello().features if name != "takeover")
    begins = SimulationBeginsData(units, workloads={"w0": "test"})
    told = Reliability(**reliability) if reliability else None
    machine = homogeneous(units, "m")
    return native_engine(begins, machine, jobs, features=features, strict=True, observers=[tale], reliability=told)


def steps(engine: Engine, runtime: Runtime) -> Iterator[Any]:
    """Play a run to its end; yield each notice and its reply before that is carried out."""
    while (notice := engine.advance()) is not None:
        reply = runtime.answer(notice)
        yield notice, reply
        engine.apply(reply)
        engine.check_invariants()


def play(rows: Any, config: str = FLAGS, units: int = 4, **reliability: Any) -> Tale:
    """Return what happened in a run."""
    tale, runtime = Tale(), runtime_of(config)
    for _ in steps(engine_of(runtime, rows, tale, units, **reliability), runtime):
        pass
    return tale


ROWS = [("1", 0, 4, 50, 90, "low"), ("2", 10, 3, 20, 30, "high")]


def test_a_preemptor_takes_the_units_of_a_preemptee() -> None:
    """The preemptee is requeued, and starts when there is room."""
    assert play(ROWS).rows == [
        (0, "starts", "1"),
        (10, "ends", "1"),
        (10, "goes", "1"),
        (10, "starts", "2"),
        (30, "ends", "2"),
        (30, "starts", "1#1"),
        (80, "ends", "1#1"),
    ]


def test_a_preemptor_needs_the_higher_priority() -> None:
    """It is compared with the preemptee's priority at its start."""
    assert not play(ROWS, FLAGS.replace("PRIORITY=10", "PRIORITY=1")).of("goes")
    assert not play([("1", 0, 4, 50, 90, "high"), ("2", 10, 3, 20, 30, "low")]).of("goes")
    assert not play([("1", 0, 4, 50, 90, "other"), ("2", 10, 3, 20, 30, "high")]).of("goes")


def test_the_lowest_priority_goes_first_and_no_more_than_needed() -> None:
    """A job that need not be preempted stays."""
    rows = [("1", 0, 2, 50, 90, "mid"), ("2", 0, 2, 50, 90, "low"), ("3", 10, 2, 20, 30, "high")]
    assert play(rows).of("goes") == [(10, "2")]
    assert play([*rows[:2], ("3", 10, 3, 20, 30, "high")]).of("goes") == [(10, "1"), (10, "2")]


@pytest.mark.parametrize(
    "flags",
    [
        "CLASSCFG[low] FLAGS=PREEMPTEE\nCLASSCFG[high] FLAGS=PREEMPTOR",
        "CLASSCFG[DEFAULT] JOBFLAGS=PREEMPTEE\nCLASSCFG[high] JOBFLAGS=PREEMPTOR",
        "QOSFLAGS[low] PREEMPTEE\nQOSFLAGS[high] PREEMPTOR",
    ],
)
def test_flags_of_any_credential_count(flags: str) -> None:
    """Flags of classes and DEFAULT, and the old syntax for those of a QOS."""
    config = f"CLASSWEIGHT 10\nQUEUETIMEWEIGHT 0\nCLASSCFG[high] PRIORITY=9\n{flags}"
    assert play(ROWS, config).of("goes") == [(10, "1")]


def test_what_becomes_of_a_job_is_the_policys() -> None:
    """CANCEL: it is not requeued; CHECKPOINT: it dumps first; NONE: no job is preempted."""
    assert play(ROWS, FLAGS + "PREEMPTPOLICY CANCEL").of("ends") == [(10, "1"), (30, "2")]
    dumps = parse_resilience(checkpoint="100", dump="3", read="1")
    dumped = play(ROWS, FLAGS + "PREEMPTPOLICY CHECKPOINT", resilience=dumps)
    assert dumped.rows[-1] == (13 + 20 + 1 + 40, "ends", "1#1")
    assert (13, "2") in dumped.of("starts")
    assert not play(ROWS, FLAGS + "PREEMPTPOLICY NONE").of("goes")


def test_units_kept_for_a_preemptor_go_to_no_other_job() -> None:
    """While a preemptee dumps, a smaller job does not get the unit that was free."""
    dumps = parse_resilience(checkpoint="100", dump="30", read="1")
    rows = [("1", 0, 3, 50, 90, "low"), ("2", 10, 4, 20, 30, "high"), ("3", 11, 1, 1, 2, "other")]
    tale = play(rows, FLAGS + "PREEMPTPOLICY CHECKPOINT", resilience=dumps)
    assert [row for row in tale.of("starts") if row[1] in "23"] == [(40, "2"), (60, "3")]


def test_units_that_fail_meanwhile_are_replaced() -> None:
    """The preemptor is checked again, and others are preempted for it."""
    dumps = parse_resilience(checkpoint="100", dump="10", read="1")
    rows = [("1", 0, 2, 90, 99, "low"), ("2", 0, 2, 90, 99, "low"), ("3", 10, 2, 20, 30, "high")]
    outages = Outages.of([Outage(2, 15.0, 500.0), Outage(3, 15.0, 500.0)])
    tale = play(rows, FLAGS + "PREEMPTPOLICY CHECKPOINT", resilience=dumps, outages=outages)
    assert tale.of("goes") == [(10, "2"), (15, "1")]
    assert [time for time, name in tale.of("starts") if name == "3"] == [25]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("PREEMPTPOLICY SUSPEND", "PREEMPTPOLICY SUSPEND is not supported"),
        ("QOSCFG[a] QFLAGS=PREEMPTOR,DEDICATED", "not DEDICATED"),
        ("USERCFG[a] QFLAGS=PREEMPTOR", "an attribute of QOSCFG"),
        ("SYSCFG FLAGS=PREEMPTEE", "the same for all jobs"),
        ("BACKFILLPOLICY PREEMPT", "BACKFILLPOLICY PREEMPT is not supported"),
        ("BFPRIORITYPOLICY RANDOM", "lowest priority is always preempted first"),
        ("PREEMPTPOLICY SHOOT", "the value of PREEMPTPOLICY is wrong"),
    ],
)
def test_unsupported_parameter_is_rejected(line: str, text: str) -> None:
    """With its line; leniently it is a warning, where the value is one of Maui's."""
    with pytest.raises(MauiConfigError, match=text):
        parse_maui_config(line)
    if "SHOOT" not in line:
        assert text in str(parse_maui_config(line, strict=False)[1][0])


def test_without_flags_nothing_is_asked_of_the_server() -> None:
    """The feature is wanted only where some may preempt and others be preempted."""
    assert MauiPolicy(parse_maui_config("QOSCFG[a] QFLAGS=PREEMPTOR")[0]).features == ("labels",)
    assert MauiPolicy(parse_maui_config(FLAGS)[0]).features == ("labels", "preemption")


JOBS = st.lists(
    st.tuples(
        st.integers(0, 30),
        st.integers(1, 6),
        st.integers(0, 25),
        st.sampled_from([1.0, 10.0, 25.0, 40.0, inf]),
        st.sampled_from(["low", "mid", "high", "other", None]),
    ),
    min_size=1,
    max_size=10,
)


@settings(deadline=None, max_examples=80)
@given(
    rows=JOBS,
    policy=st.sampled_from(["REQUEUE", "CHECKPOINT", "CANCEL"]),
    reservations=st.sampled_from(["CURRENTHIGHEST", "HIGHEST", "NEVER"]),
    depth=st.integers(1, 3),
    aging=st.sampled_from([0, 100]),
    dumps=st.booleans(),
    failing=st.booleans(),
)
def test_every_run_ends(
    rows: Any, policy: str, reservations: str, depth: int, aging: int, dumps: bool, failing: bool
) -> None:
    """No decision is illegal, all jobs end, only preemptees are preempted, and restored states decide alike."""
    config = FLAGS.replace("QUEUETIMEWEIGHT 0", f"QUEUETIMEWEIGHT {aging}")
    config += f"PREEMPTPOLICY {policy}\nRESERVATIONPOLICY {reservations}\nRESERVATIONDEPTH {depth}"
    named = [(str(n), *row) for n, row in enumerate(sorted(rows, key=lambda row: row[0]))]
    whose = {name: row[-1] for name, *row in named}
    tale, runtime, other = Tale(), runtime_of(config), None
    engine = engine_of(
        runtime,
        named,
        tale,
        6,
        outages=Outages.of([Outage(1, 8.0, 12.0), Outage(4, 20.0, 33.0)]) if failing else None,
        resilience=parse_resilience(checkpoint="5", dump="1", read="1") if dumps else NONE,
    )
    for notice, reply in steps(engine, runtime):
        if other is not None:
            assert other.answer(notice).events == reply.events
        elif notice.seq == 5:
            other = runtime_of(config)
            other.restore(from_json(to_json(runtime.state())))
    assert {name.partition("#")[0] for _, name in tale.of("ends")} == set(whose)
    assert {whose[name.partition("#")[0]] for _, name in tale.of("goes")} <= {"low", "mid"}
