"""Preemption under the bundled policies: victims, times, and invariants."""

from collections.abc import Iterator
from math import inf
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipistrelle.platforms.description import JobClass, Platform, Pool, homogeneous
from pipistrelle.platforms.failures.outage import Outage, Outages
from pipistrelle.protocol.base.state import from_json, to_json
from pipistrelle.protocol.decisions import ExecuteJob, PreemptJob
from pipistrelle.protocol.events import SimulationBeginsData
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.catalogue.names import PARTS
from pipistrelle.schedulers.catalogue.parts import compose
from pipistrelle.schedulers.catalogue.registry import make_policy
from pipistrelle.schedulers.policy.errors import PolicyError
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.preemption.options import PreemptionOptions, PreemptionRules
from pipistrelle.schedulers.preemption.victims import Candidate, choose
from pipistrelle.schedulers.runtime.polling import Polling
from pipistrelle.schedulers.runtime.runtime import Runtime
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.outages.reliability import Reliability
from pipistrelle.server.simulation.assembly import native_engine
from pipistrelle.traces.resilience import NONE, parse_resilience

QOS = PreemptionOptions("qos", preempt=("high=low",))
TIERS = PreemptionOptions("partition_prio", priority_tier={"high": 10.0, "low": 0.0})


class Story(Observer):
    """Keeps starts, orders to go, and ends, as (time, what, job)."""

    def __init__(self) -> None:
        self.rows: list[tuple[float, str, str]] = []
        self.states: dict[str, str] = {}

    def started(self, now: float, job: Job) -> None:
        """Note it."""
        self.rows.append((now, "starts", job.id.partition("!")[2]))

    def ended(self, now: float, job: Job) -> None:
        """Note it."""
        self.rows.append((now, "ends", job.id.partition("!")[2]))
        self.states[job.id.partition("!")[2]] = job.state

    def decided(self, now: float, decision: Any, rejected: Any) -> None:
        """Record the preempted jobs."""
        assert rejected is None
        if isinstance(decision, PreemptJob):
            self.rows.append((now, "goes", decision.data.job_id.partition("!")[2]))


def jobs_of(rows: Any) -> Iterator[Job]:
    """Yield jobs of (name, submit, size, run time, walltime, queue and QOS)."""
    for name, submit, size, runtime, walltime, whose in rows:
        labels = (None, None, None, whose, whose)
        yield Job(f"w0!{name}", float(submit), size, float(walltime), float(runtime), "p", labels=labels)


def engine_of(
    runtime: Runtime, rows: Any, units: int, observers: Any = (), machine: Any = None, **reliability: Any
) -> Any:
    """Return the engine of a run under a scheduler that has all that it wants."""
    platform = machine or homogeneous(units, "m")
    wanted = tuple(name for name in runtime.hello().features if name != "takeover")
    begins = SimulationBeginsData(units, platform.info if platform.classes else None, workloads={"w0": "test"})
    told = Reliability(**reliability) if reliability else None
    return native_engine(
        begins, platform, jobs_of(rows), features=wanted, strict=True, observers=observers, reliability=told
    )


def play(rows: Any, units: int = 4, preemption: Any = QOS, policy: Any = None, **more: Any) -> Story:
    """Return what happened in a run to its end."""
    story, runtime = Story(), Runtime(policy or compose(backfill="easy", preemption=preemption))
    engine = engine_of(runtime, rows, units, [story], **more)
    while (notice := engine.advance()) is not None:
        engine.apply(runtime.answer(notice))
        engine.check_invariants()
    return story


def went(story: Story) -> list[tuple[float, str]]:
    """Return the preempted jobs with their times."""
    return [(time, name) for time, what, name in story.rows if what == "goes"]


def start_of(story: Story, name: str) -> float:
    """Return when a job started."""
    return next(time for time, what, job in story.rows if (what, job) == ("starts", name))


# -- by hand ----------------------------------------------------------------------------------------------------------


def test_a_job_takes_the_units_of_one_that_it_may_preempt() -> None:
    """At its submission; the preempted job requeues, and starts when there is room."""
    story = play([("1", 0, 4, 50, 90, "low"), ("2", 10, 3, 20, 30, "high")])
    assert story.rows == [
        (0, "starts", "1"),
        (10, "ends", "1"),
        (10, "goes", "1"),
        (10, "starts", "2"),
        (30, "ends", "2"),
        (30, "starts", "1#1"),
        (80, "ends", "1#1"),
    ]


@pytest.mark.parametrize("whose", ["other", None])
def test_qos_without_preemptees_preempts_no_job(whose: str | None) -> None:
    """A QOS without a list waits, as does a job without a QOS."""
    story = play([("1", 0, 4, 50, 90, "low"), ("2", 10, 3, 20, 30, whose)])
    assert not went(story)
    assert start_of(story, "2") == 50


def test_partitions_preempt_by_their_tiers() -> None:
    """A queue of a higher tier preempts one of a lower; one without a tier has 1."""
    rows = [("1", 0, 2, 50, 90, "low"), ("2", 0, 2, 50, 90, "none"), ("3", 10, 3, 20, 30, "high")]
    assert went(play(rows, preemption=TIERS)) == [(10, "1"), (10, "2")]
    assert went(play([*rows[:2], ("3", 10, 2, 20, 30, "none")], preemption=TIERS)) == [(10, "1")]


def test_the_priorities_of_a_machines_classes_are_tiers() -> None:
    """The defaults apply unless options override them."""
    machine = Platform(
        name="m", pools=(Pool(name="a", nodes=4),), classes=(JobClass(name="high", priority=5.0), JobClass(name="low"))
    )
    rows = [("1", 0, 4, 50, 90, "low"), ("2", 10, 3, 20, 30, "high")]
    assert went(play(rows, preemption=PreemptionOptions("partition_prio"), machine=machine)) == [(10, "1")]
    equal = PreemptionOptions("partition_prio", priority_tier={"low": 5.0})
    assert not went(play(rows, preemption=equal, machine=machine))


def test_a_job_goes_after_the_grace_of_its_qos_and_the_other_waits_for_it() -> None:
    """No other job gets the units that are free meanwhile."""
    graces = PreemptionOptions("qos", preempt=("high=low",), grace=("99", "low=15s"))
    rows = [("1", 0, 2, 50, 90, "low"), ("2", 10, 4, 20, 30, "high"), ("3", 11, 1, 1, 2, "low")]
    story = play(rows, preemption=graces)
    assert went(story) == [(10, "1")]
    assert (start_of(story, "2"), start_of(story, "3")) == (25, 45)


def test_a_job_that_is_done_in_its_grace_is_not_preempted() -> None:
    """The other starts then, all the same."""
    grace = PreemptionOptions("qos", preempt=("high=low",), grace=("60",))
    story = play([("1", 0, 4, 50, 90, "low"), ("2", 10, 3, 20, 30, "high")], preemption=grace)
    assert (story.states["1"], start_of(story, "2")) == ("COMPLETED_SUCCESSFULLY", 50)
    assert "1#1" not in story.states


def test_a_mode_is_that_of_the_job_that_goes() -> None:
    """Cancelled jobs are not requeued; jobs of a disabled mode are not preempted."""
    modes = PreemptionOptions("qos", mode=("cancel", "kept=off"), preempt=("high=low|kept",))
    rows = [("1", 0, 2, 50, 90, "low"), ("2", 0, 2, 50, 90, "kept"), ("3", 10, 2, 20, 30, "high")]
    story = play(rows, preemption=modes)
    assert (story.states["1"], "1#1" in story.states) == ("COMPLETED_KILLED", False)
    assert not went(play([*rows[:2], ("3", 10, 3, 20, 30, "high")], preemption=modes))


def test_a_job_may_run_for_its_exempt_time() -> None:
    """The preemptor is called when the grace is over."""
    exempt = PreemptionOptions("qos", preempt=("high=low",), exempt_time="25s")
    story = play([("1", 5, 4, 50, 90, "low"), ("2", 10, 3, 20, 30, "high")], preemption=exempt)
    assert went(story) == [(30, "1")]


def test_a_job_with_dumps_writes_one_more() -> None:
    """The preemptor starts when the dump is complete, and nothing is lost."""
    modes = PreemptionOptions("qos", mode=("checkpoint",), preempt=("high=low",))
    dumps = parse_resilience(checkpoint="100", dump="3", read="1")
    rows = [("1", 0, 4, 50, 90, "low"), ("2", 10, 3, 20, 30, "high")]
    story = play(rows, preemption=modes, resilience=dumps)
    assert start_of(story, "2") == 13
    assert story.rows[-1] == (33 + 1 + 40, "ends", "1#1")


def test_preemptor_passes_a_reservation_but_no_higher_ranked_job() -> None:
    """The first that cannot be helped ends it: a smaller job behind it waits."""
    rows = [
        ("1", 0, 3, 50, 90, "other"),
        ("2", 0, 1, 50, 90, "low"),
        ("3", 5, 4, 10, 20, "high"),
        ("4", 6, 1, 10, 20, "high"),
    ]
    story = play(rows)
    assert not went(story)
    assert start_of(story, "4") == 60


def test_units_that_fail_meanwhile_are_replaced() -> None:
    """A promise that cannot be kept is replanned on other units."""
    grace = PreemptionOptions("qos", preempt=("high=low",), grace=("10",))
    rows = [("1", 0, 2, 90, 99, "low"), ("2", 0, 2, 90, 99, "low"), ("3", 10, 2, 20, 30, "high")]
    story = play(rows, preemption=grace, outages=Outages.of([Outage(2, 15.0, 500.0)]))
    assert went(story) == [(10, "2"), (15, "1")]
    assert start_of(story, "3") == 25


def test_a_policy_that_polls_preempts_when_it_looks() -> None:
    """Between the steps nothing is decided."""
    policy = Polling(compose(backfill="easy", preemption=QOS), 30.0)
    story = play([("1", 0, 4, 50, 90, "low"), ("2", 10, 3, 20, 30, "high")], policy=policy)
    assert (went(story), start_of(story, "2")) == ([(30, "1")], 30)


# -- choice of victims -------------------------------------------------------------------------------------------------


def candidates_of(*rows: tuple[int, float, int, float]) -> list[Candidate]:
    """Return candidates of (number, level, units, start)."""
    return [
        Candidate(
            SchedulerJob(str(n), n, units, inf, 0.0, start),
            level,
            NodeSet.interval(100 * n, 100 * n + units - 1),
            units,
        )
        for n, level, units, start in rows
    ]


@pytest.mark.parametrize(
    ("rows", "missing", "youngest", "taken"),
    [
        ([(1, 0, 4, 0), (2, 0, 2, 0), (3, 0, 1, 0)], 2, False, [2]),  # the smallest job that suffices
        ([(1, 0, 4, 0), (2, 0, 2, 0), (3, 0, 1, 0)], 5, False, [1, 3]),  # as few as can be, of least sum
        ([(1, 1, 4, 0), (2, 0, 2, 0), (3, 0, 1, 0)], 3, False, [2, 3]),  # the lowest first
        ([(1, 1, 8, 0), (2, 0, 2, 0)], 6, False, [1]),  # the lower one can be done without
        ([(1, 0, 2, 5), (2, 0, 2, 9)], 1, False, [2]),  # of equal jobs the one started last
        ([(1, 0, 2, 5), (2, 0, 1, 9), (3, 0, 1, 8)], 2, True, [2, 3]),  # the youngest, though they are more
        ([(1, 0, 1, 5)], 2, False, None),
        ([], 1, False, None),
    ],
)
def test_whom_to_preempt(rows: Any, missing: int, youngest: bool, taken: list[int] | None) -> None:
    """The lowest level, then the fewest, then the smallest sum."""
    found = choose(
        candidates_of(*rows), lambda some: sum(one.worth for one in some) >= missing, youngest_first=youngest
    )
    assert (None if found is None else sorted(one.job.number for one in found)) == taken


@given(
    rows=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 6), st.integers(0, 9)), max_size=8),
    missing=st.integers(1, 25),
    youngest=st.booleans(),
)
def test_unneeded_job_is_not_preempted(rows: Any, missing: int, youngest: bool) -> None:
    """Those that are taken will do, without any of them they would not; None only if all would not do."""
    candidates = candidates_of(*((n, level, units, start) for n, (level, units, start) in enumerate(rows)))

    def fits(some: Any) -> bool:
        return sum(one.worth for one in some) >= missing

    taken = choose(candidates, fits, youngest_first=youngest)
    if taken is None:
        assert not fits(candidates)
        return
    assert fits(taken)
    assert not any(fits([one for one in taken if one is not other]) for other in taken)


# -- invalid options ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"type": "qos"}, "no QOS may preempt another"),
        ({"type": "qos", "preempt": ("high",)}, "invalid --preempt:"),
        ({"type": "qos", "preempt": ("high=low", "high=other")}, "invalid --preempt:"),
        ({"type": "qos", "preempt": ("a=b",), "mode": ("suspend",)}, "invalid --preempt-mode"),
        ({"type": "qos", "preempt": ("a=b",), "mode": ("off",)}, "no job may be preempted"),
        ({"type": "qos", "preempt": ("a=b",), "mode": ("b=cancel", "b=off")}, "invalid --preempt-mode"),
        ({"type": "qos", "preempt": ("a=b",), "grace": ("-1s",)}, "below zero"),
        ({"type": "qos", "preempt": ("a=b",), "grace": ("soon",)}, "cannot be read"),
        ({"type": "qos", "preempt": ("a=b",), "exempt_time": "1e20"}, "invalid --preempt-exempt-time"),
        ({"type": "partition_prio", "preempt": ("a=b",)}, "partitions preempt by their tiers"),
        ({"type": "partition_prio", "priority_tier": {"a": inf}}, "invalid --priority-tier"),
    ],
)
def test_options_that_make_no_sense(options: Any, text: str) -> None:
    """Each is one message."""
    with pytest.raises(PolicyError, match=text):
        PreemptionRules(PreemptionOptions(**options))


def test_a_scheduler_without_parts_takes_no_options_of_preemption() -> None:
    """Nor do partitions by reliability go together with it, nor options without a type."""
    with pytest.raises(PolicyError, match="has no options of preemption"):
        make_policy("maui", preemption={"type": "qos"})
    with pytest.raises(PolicyError, match="options of preemption need a type"):
        make_policy("easy", preemption={"grace": ("10",)})


def test_partitions_without_tiers_are_refused_when_the_run_begins() -> None:
    """Neither the options nor the machine define which class ranks higher."""
    with pytest.raises(PolicyError, match="all have the same tier"):
        play([("1", 0, 1, 1, 1, "low")], preemption=PreemptionOptions("partition_prio"))


# -- whatever happens -------------------------------------------------------------------------------------------------

ROWS = st.lists(
    st.tuples(
        st.integers(0, 30),
        st.integers(1, 6),
        st.integers(0, 25),
        st.sampled_from([1.0, 10.0, 25.0, 40.0, inf]),
        st.sampled_from(["low", "high", "top", None]),
    ),
    min_size=1,
    max_size=10,
)
OPTIONS = st.sampled_from(
    [
        PreemptionOptions("qos", preempt=("high=low", "top=low|high")),
        PreemptionOptions("qos", mode=("low=cancel", "checkpoint"), preempt=("top=low|high",), grace=("4", "low=0")),
        PreemptionOptions("partition_prio", priority_tier={"high": 2.0, "top": 3.0}, grace=("3",), exempt_time="2"),
        PreemptionOptions("partition_prio", priority_tier={"low": 0.0, "top": 3.0}, youngest_first=True),
    ]
)


@settings(deadline=None, max_examples=80)
@given(
    rows=ROWS,
    options=OPTIONS,
    order=st.sampled_from(["fcfs", "sjf"]),
    backfill=st.sampled_from(sorted(PARTS["backfill"])),
    placement=st.sampled_from(["lowest", "contiguous", "best-fit"]),
    dumps=st.booleans(),
    failing=st.booleans(),
    step=st.sampled_from([None, 4.0]),
    at=st.integers(2, 12),
)
@example(  # at the fifth notice the rule starts a job elsewhere although another was preempted for it
    rows=[*3 * [(0, 1, 0, 1.0, "low")], (0, 4, 3, 10.0, "low"), (2, 1, 0, 1.0, "high"), (2, 2, 0, 1.0, "high")],
    options=PreemptionOptions("partition_prio", priority_tier={"high": 2.0, "top": 3.0}, grace=("3",), exempt_time="2"),
    order="fcfs",
    backfill="conservative",
    placement="lowest",
    dumps=False,
    failing=False,
    step=None,
    at=5,
)
def test_every_order_rule_and_placement_ends(
    rows: Any,
    options: Any,
    order: str,
    backfill: str,
    placement: str,
    dumps: bool,
    failing: bool,
    step: float | None,
    at: int,
) -> None:
    """No decision is illegal, all jobs end, preemption follows the ranks, and restored states decide alike."""
    named = [(str(n), *row) for n, row in enumerate(sorted(rows, key=lambda row: row[0]))]
    whose = {name: row[-1] for name, *row in named}
    reliability: dict[str, Any] = {
        "outages": Outages.of([Outage(1, 8.0, 12.0), Outage(4, 20.0, 33.0)]) if failing else None,
        "resilience": parse_resilience(checkpoint="5", dump="1", read="1") if dumps else NONE,
    }

    def make() -> Runtime:
        policy = compose(order=order, backfill=backfill, placement=placement, preemption=options)
        return Runtime(policy if step is None else Polling(policy, step))

    story, runtime = Story(), make()
    engine = engine_of(runtime, named, 6, [story], **reliability)
    other: Runtime | None = None
    for_whom: dict[str, str] = {}
    while (notice := engine.advance()) is not None:
        reply = runtime.answer(notice)
        if other is not None:
            again = other.answer(notice)
            assert (again.events, again.wake) == (reply.events, reply.wake)
        for decision in reply.events:
            if isinstance(decision, PreemptJob):
                for_whom[decision.data.job_id] = (decision.data.why or "").removeprefix("for ")
            if isinstance(decision, ExecuteJob):
                assert decision.data.job_id not in for_whom
        engine.apply(reply)
        engine.check_invariants()
        if notice.seq == at:
            other = make()
            other.restore(from_json(to_json(runtime.state())))
    assert {name.partition("#")[0] for name in story.states} == set(whose)
    rules = PreemptionRules(options)
    rules.learn_classes({})
    for victim, winner in for_whom.items():
        low, high = (whose[name.partition("!")[2].partition("#")[0]] for name in (victim, winner))
        assert low != high
        assert high in ("high", "top") or options.type == "partition_prio"
