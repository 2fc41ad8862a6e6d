"""The state of a whole scheduler: taken out at any notice, through JSON, into another made alike."""

from collections.abc import Callable
from itertools import cycle
from math import inf
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.schedulers.pairs import PAIRS

from pipistrelle.platforms.classes import JobClass
from pipistrelle.platforms.description import Platform, Pool
from pipistrelle.platforms.topology.partitions import RankedClass
from pipistrelle.protocol.base.state import from_json, to_json
from pipistrelle.protocol.events import (
    NoMoreJobs,
    RequestedCall,
    RequestedCallData,
    SimulationBegins,
    SimulationBeginsData,
)
from pipistrelle.protocol.messages import HelloData, Notice, Reply, WelcomeData
from pipistrelle.runs.execution.pause import check_invariants
from pipistrelle.schedulers.backfill.easy import Easy
from pipistrelle.schedulers.catalogue.names import PARTS
from pipistrelle.schedulers.catalogue.parts import compose
from pipistrelle.schedulers.catalogue.registry import make_policy
from pipistrelle.schedulers.composed import ComposedPolicy
from pipistrelle.schedulers.orders.fixed import Fcfs
from pipistrelle.schedulers.partitions import jobs_seen as partitions
from pipistrelle.schedulers.partitions.placement import PartitionOptions
from pipistrelle.schedulers.partitions.policy import PartitionedPolicy
from pipistrelle.schedulers.placement.lowest import LowestIds
from pipistrelle.schedulers.policy.errors import PolicyError
from pipistrelle.schedulers.policy.interfaces import Policy, Stateless
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.runtime.polling import Polling
from pipistrelle.schedulers.runtime.runtime import Runtime
from pipistrelle.schedulers.wire.batsim.runtime import BatsimRuntime
from pipistrelle.server.outages.reliability import Reliability
from pipistrelle.server.setup.setup import Setup
from pipistrelle.server.simulation.simulate import simulate
from pipistrelle.server.transport.in_process import InProcessTransport
from pipistrelle.traces.workload import CANCELLED_AFTER, Workload

#: (submit, size, runtime, walltime, user, queue, cancelled so long after its submission (s), -1 is never)
Row = tuple[float, int, float, float, str, str, float]
#: announced, begin, length (s), nodes
Down = tuple[float, float, float, frozenset[int]]
#: same_decisions(make, platform, examples)
SameDecisions = Callable[[Callable[[], Policy], Platform, int], None]
NODES = 6
ORDER_OPTIONS = {
    "bins": {"bins": [{"name": "large", "smallest": 4, "boost": 4.0, "longest-walltime": 6.0}], "over-limit": "reject"},
    "pbs": {"formula": "fairshare/10 + ncpus + eligible_time/4", "fairshare-entity": "user", "decay-time": "9s"},
}

times = st.sampled_from([1.0, 2.0, 3.0, 4.0, 6.0, 9.0])
rows: st.SearchStrategy[list[Row]] = st.lists(
    st.tuples(
        st.integers(0, 15).map(float),
        st.integers(1, NODES),
        times,
        times | st.just(inf),
        st.sampled_from("ab"),
        st.sampled_from(["x", "y", "z"]),
        st.sampled_from([-1.0, -1.0, -1.0, 0.0, 1.0, 3.0, 5.0]),
    ),
    min_size=1,
    max_size=20,
).map(sorted)
downs: st.SearchStrategy[list[Down]] = st.lists(
    st.tuples(
        st.integers(0, 20).map(float),
        st.integers(1, 25).map(float),
        st.sampled_from([1.0, 2.5, 6.0]),
        st.sets(st.integers(0, NODES - 1), min_size=1).map(frozenset),
    ),
    max_size=3,
)
failures = st.dictionaries(st.integers(0, NODES - 1), st.integers(0, 25).map(float), max_size=4)
PLAIN = Platform(name="m", pools=(Pool(name="all", nodes=NODES, names="n[1-6]", mttf="1h"),))
#: queues with limits and pools of their own
CLASSES = (JobClass(name="x", max_nodes=4, max_nodes_per_user=3), JobClass(name="y", pools=("b",), priority=2.0))
GOOD_AND_BAD = Platform(name="m", pools=(Pool(name="a", nodes=4, mttf="2h"), Pool(name="b", nodes=2, mttf="1h")))
SIZE_CLASSES = tuple(RankedClass(size=size, rate=1, service=1, service_95=2) for size in (3, 1))
WITH_CLASSES = Platform(name="m", pools=(Pool(name="a", nodes=3), Pool(name="b", nodes=3)), classes=CLASSES)


class Handover:
    """Replies with one runtime, and from one notice on with another restored from the first one's state."""

    def __init__(self, make: Callable[[], Policy], at: int) -> None:
        self._make = make
        self.runtime = self._made()
        self._left = at
        self.replies: list[Reply] = []

    def _made(self) -> Runtime:
        return Runtime(self._make(), cancellations=True)

    def hello(self) -> HelloData:
        """Return the scheduler's HELLO."""
        return self.runtime.hello()

    def welcome(self, data: WelcomeData) -> None:
        """Store the agreed features."""
        self._agreed = data
        self.runtime.welcome(data)

    def answer(self, notice: Notice) -> Reply:
        """Return the decisions for a notice."""
        if not self._left:
            text = to_json(self.runtime.state())
            self.runtime = self._made()
            self.runtime.welcome(self._agreed)
            self.runtime.restore(from_json(text))
            assert to_json(self.runtime.state()) == text
        self._left -= 1
        reply = self.runtime.answer(notice)
        self.replies.append(reply)
        return reply


def replies(
    make: Callable[[], Policy],
    at: int,
    platform: Platform,
    jobs: list[Row],
    reliability: Reliability,
) -> list[Reply]:
    """Return all that a policy decides if its state changes hands before the notice ``at``; -1 is never."""
    submit, size, runtime, walltime, user, queue, patience = zip(*jobs, strict=True)
    trace = Workload(
        name="t",
        source="t",
        ids=[str(number) for number in range(len(jobs))],
        submit=np.array(submit),
        size=np.array(size, dtype=np.int64),
        walltime=np.array(walltime),
        runtime=np.array(runtime),
        labels={"user": list(user), "queue": list(queue)},
        measures={CANCELLED_AFTER: np.array(patience)},
    )
    handover = Handover(make, at)
    setup = Setup.of(platform, trace, strict=True, reliability=reliability)
    result = simulate(
        setup,
        InProcessTransport(handover),
        clock=lambda: 0.0,
        between=lambda simulation: check_invariants(simulation.engine, handover.runtime.view),
    )
    if result.failure is not None:
        raise result.failure
    return handover.replies


@pytest.fixture(scope="session")
def same_decisions(unsteady: Callable[..., Reliability]) -> SameDecisions:
    """Return a function that checks that decisions stay the same wherever the state is restored."""

    def check_all(make: Callable[[], Policy], platform: Platform, examples: int) -> None:
        @settings(max_examples=examples)
        @given(jobs=rows, planned=downs, broken=failures, at=st.integers(1, 30))
        def check(jobs: list[Row], planned: list[Down], broken: dict[int, float], at: int) -> None:
            told = (platform, jobs, unsteady(planned, broken))
            assert replies(make, at, *told) == replies(make, -1, *told)

        check()

    return check_all


@pytest.mark.parametrize("platform", [PLAIN, WITH_CLASSES], ids=["plain", "classes"])
@pytest.mark.parametrize(("order", "backfill"), PAIRS)
def test_restored_policy_makes_the_same_decisions(
    same_decisions: SameDecisions, platform: Platform, order: str, backfill: str
) -> None:
    """Order by order, rule by rule: the same decisions from there on, and the same state again."""
    options = ORDER_OPTIONS.get(order)
    for placement, examples in (("lowest", 12), ("contiguous", 6)):
        same_decisions(
            lambda: compose(order=order, backfill=backfill, placement=placement, order_options=options),  # noqa: B023
            platform,
            examples,
        )


@pytest.mark.parametrize(("order", "backfill"), [*zip(cycle(["fcfs", "pbs"]), PARTS["backfill"], strict=False)])
def test_restored_polling_policy_makes_the_same_decisions(
    same_decisions: SameDecisions, order: str, backfill: str
) -> None:
    """Events collected since the last multiple, and the pending call, are part of the state."""
    options = ORDER_OPTIONS.get(order)
    same_decisions(lambda: Polling(compose(order=order, backfill=backfill, order_options=options), 2.5), PLAIN, 25)


def test_plan_restored_during_maintenance_keeps_the_returning_unit(unsteady: Callable[..., Reliability]) -> None:
    """A restored plan has the units that were in service when it was last used."""
    at = 5  # before the notice of the end of the maintenance
    jobs = [(11.0, 1, 1.0, inf, "a", "x", -1.0), (11.0, NODES, 2.0, inf, "a", "x", -1.0)]
    told = (PLAIN, jobs, unsteady([(13.0, 14.0, 1.0, frozenset({0}))], {}))

    def make() -> Policy:
        return Polling(compose(order="pbs", backfill="conservative", order_options=ORDER_OPTIONS["pbs"]), 2.5)

    assert replies(make, at, *told) == replies(make, -1, *told)


@pytest.mark.parametrize("step", [None, 2.5], ids=["at once", "polls"])
@pytest.mark.parametrize("name", ["maui", "titan-bins", "recorded"])
def test_restored_custom_scheduler_makes_the_same_decisions(
    same_decisions: SameDecisions, name: str, step: float | None
) -> None:
    """Whatever it keeps is part of the state."""

    def make() -> Policy:
        return make_policy(name) if step is None else Polling(make_policy(name), step)

    same_decisions(make, PLAIN, 50)


@pytest.mark.parametrize("classes", [SIZE_CLASSES, "auto"], ids=["given", "auto"])
@pytest.mark.parametrize("backfill", ["none", "easy", "conservative", "fill"])
def test_restored_partitions_make_the_same_decisions(
    same_decisions: SameDecisions,
    monkeypatch: pytest.MonkeyPatch,
    backfill: str,
    classes: tuple[RankedClass, ...] | Literal["auto"],
) -> None:
    """Failures and jobs seen, and the classes derived from them, are part of the state; also with polled decisions."""
    monkeypatch.setattr(partitions, "FIRST_CLASSES", 2)
    for admission, step in (("queue", None), ("block", 2.5)):
        options = PartitionOptions(classes=classes, blocking=0.1, admission=admission)

        def make(options: PartitionOptions = options, step: float | None = step) -> Policy:
            policy = PartitionedPolicy(compose(order="sjf", backfill=backfill), options)
            return policy if step is None else Polling(policy, step)

        same_decisions(make, GOOD_AND_BAD, 12)


def test_batsims_events_are_part_of_the_state() -> None:
    """Pending calls keep their names and order, a cancelled one stays cancelled; jobs may still be registered."""
    config = {"dynamic-jobs-enabled": True, "dynamic-jobs-acknowledged": True}
    seen: list[list[str]] = []

    class Caller(Stateless):
        name, order, features = "caller", Fcfs(), ("dynamic_jobs",)

        def decide(self, view: View) -> None:
            seen.append(list(view.calls))
            if view.now == 0.0:
                for call in ("late", "gone", "soon"):
                    view.call_me_later(9.0 if call == "late" else 5.0, call)
                view.cancel_call("gone")

    runtime = BatsimRuntime(Caller())
    runtime.answer(Notice(1, 0.0, [SimulationBegins(0.0, SimulationBeginsData(4, config=config))]))
    runtime.answer(Notice(2, 0.0, [NoMoreJobs(0.0)]))
    text = to_json(runtime.state())
    again = BatsimRuntime(Caller())
    again.restore(from_json(text))
    assert to_json(again.state()) == text
    for one in (runtime, again):
        seen.clear()
        times = (5.0, 5.0, 9.0)
        sent = [one.answer(Notice(3, now, [RequestedCall(now, RequestedCallData())])).events for now in times]
        assert seen == [[], ["soon"], ["late"]]
        assert [len(events) for events in sent] == [0, 0, 1]  # the last: no more jobs will be registered


class Mine:
    """An order of a user's own that tells no state."""

    def rank(self, job: SchedulerJob) -> float:
        """Return the size."""
        return job.size


class Own:
    """A policy of a user's own that tells no state."""

    name = "own"
    order = Fcfs()

    def decide(self, view: View) -> None:
        """Start what fits."""
        for job in list(view.waiting):
            if job.size <= view.free.count:
                view.start(job)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (Own, "the policy tests.schedulers.policy.test_state.Own cannot save its state"),
        (lambda: Polling(Own(), 1.0), "Own cannot save its state"),
        (lambda: ComposedPolicy("m", Mine(), Easy(), LowestIds()), "the order tests"),
        (lambda: ComposedPolicy("m", Fcfs(), type("Rule", (), {"schedule": lambda *_: None})(), LowestIds()), ".Rule"),
    ],
)
def test_part_without_state_is_named(make: Callable[[], Any], says: str) -> None:
    """The error names the class and the methods it lacks."""
    runtime = Runtime(make())
    runtime.answer(Notice(1, 0.0, [SimulationBegins(0.0, SimulationBeginsData(4))]))
    with pytest.raises(PolicyError) as caught:
        runtime.state()

    assert says.replace("tests.schedulers.policy.test_state", Own.__module__) in str(caught.value)
    assert "state and restore" in str(caught.value)
