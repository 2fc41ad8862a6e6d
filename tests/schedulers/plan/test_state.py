"""The state of plans, rules and orders, restored from JSON at any decision: decisions stay the same."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.platforms.description import homogeneous
from pipistrelle.platforms.failures.outage import Outage, Outages
from pipistrelle.platforms.maintenance.plan import Maintenance
from pipistrelle.protocol.base.state import from_json, to_json
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.runs.execution.pause import check_invariants
from pipistrelle.schedulers.backfill.conservative import Conservative
from pipistrelle.schedulers.backfill.easy_slices import EasySlices
from pipistrelle.schedulers.backfill.fills import Fill
from pipistrelle.schedulers.composed import ComposedPolicy
from pipistrelle.schedulers.maui.config.read import parse_maui_config
from pipistrelle.schedulers.maui.policy import MauiPolicy
from pipistrelle.schedulers.orders.fixed import Fcfs
from pipistrelle.schedulers.orders.maui import MauiOrder
from pipistrelle.schedulers.orders.pbs import PbsOptions, PbsOrder
from pipistrelle.schedulers.pbs.backfill import Depth, DepthOptions
from pipistrelle.schedulers.placement.lowest import LowestIds
from pipistrelle.schedulers.policy.order import is_dynamic
from pipistrelle.schedulers.policy.out_of_service import OutOfService
from pipistrelle.schedulers.policy.running import RunningJobs
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.policy.windows import Windows
from pipistrelle.schedulers.runtime.runtime import Runtime
from pipistrelle.server.outages.reliability import Reliability
from pipistrelle.server.setup.setup import Setup
from pipistrelle.server.simulation.simulate import simulate
from pipistrelle.server.transport.in_process import InProcessTransport
from pipistrelle.traces.workload import Workload

UNITS = 6
#: a configuration with something of everything
MAUI = (Path(__file__).parents[1] / "maui" / "everything.cfg").read_text(encoding="utf-8")


def maui(fill: str, keep: str, accrual: str) -> Callable[[], Any]:
    """Return a function that makes the policy of a configuration in which every part has an effect."""
    settings, warnings = parse_maui_config(MAUI.format(fill=fill, keep=keep, accrual=accrual, depth=3))
    assert not warnings
    return lambda: MauiPolicy(settings)


def composed(order: Callable[[], Any], backfill: Callable[[], Any]) -> Callable[[], Any]:
    """Return what makes a policy of these parts."""
    return lambda: ComposedPolicy("test", order(), backfill(), LowestIds())


def pbs() -> PbsOrder:
    """Return an order with all that PBS keeps account of."""
    formula = "eligible_time + 50 * fairshare_factor - ncpus"
    return PbsOrder(PbsOptions(formula, fairshare_shares={"a": 30.0}, decay_time=15.0))


def loose() -> Depth:
    """Return the rule that is not strict."""
    return Depth(DepthOptions(strict_ordering=False))


def maui_order() -> MauiOrder:
    """Return Maui's priorities alone."""
    return MauiOrder(parse_maui_config(MAUI.format(fill="NONE", keep="NEVER", accrual="ALWAYS", depth=3))[0])


POLICIES: dict[str, Callable[[], Any]] = {
    "conservative": composed(Fcfs, Conservative),
    "easy-slices": composed(Fcfs, EasySlices),
    "pbs": composed(pbs, lambda: Depth(DepthOptions(depth=2))),
    "pbs-loose": composed(pbs, loose),
    "fill": composed(Fcfs, Fill),
    "maui-order": composed(maui_order, Conservative),
    "maui-first": maui("FIRSTFIT", "CURRENTHIGHEST", "ALWAYS"),
    "maui-kept": maui("BESTFIT", "HIGHEST", "QUEUEPOLICY"),
    "maui-greedy": maui("GREEDY", "CURRENTHIGHEST", "FULLPOLICY"),
}


class Renewed:
    """A policy that is taken apart before one of its decisions, and put together again from JSON."""

    features = ("labels",)

    def __init__(self, make: Callable[[], Any], at: int) -> None:
        self._make = make
        self._inner = make()
        self._left = at
        self.name = "renewed"
        self.order = self._inner.order

    def decide(self, view: View) -> None:
        """Decide, with new parts if it is time."""
        self._left -= 1
        self._inner.decide(view)
        if not self._left:
            self._renew(view)

    def _renew(self, view: View) -> None:
        running, windows, out = (from_json(to_json(part.state())) for part in (view.running, view.windows, view._out))
        jobs = {job.id: job for job in view.running}
        view.running, view.windows, view._out = RunningJobs(), Windows(), OutOfService()
        view.running.restore(running, jobs)
        view.windows.restore(windows)
        view._out.restore(out)
        if not isinstance(self._inner, ComposedPolicy):
            state = from_json(to_json(self._inner.state()))
            self._inner = self._make()
            self._inner.restore(state, view)
            return
        state = from_json(to_json(self._inner._backfill.state()))
        fresh = self._make()
        fresh._backfill.restore(state, view, fresh.placement)
        self._inner._backfill = fresh._backfill
        if is_dynamic(self.order):
            state = from_json(to_json(self.order.state()))
            self.order.begin()
            self.order.learn_classes({})
            self.order.restore(state)


class Planned:
    """Maintenance as a list."""

    def __init__(self, every: list[Maintenance]) -> None:
        self._every = every

    def occurrences(self) -> Iterator[Maintenance]:
        """Return the plans."""
        return iter(self._every)


Row = tuple[float, int, float, float, str]
times = st.sampled_from([1.0, 3.0, 7.0, 15.0, 40.0])
rows = st.lists(
    st.tuples(st.integers(0, 60).map(float), st.integers(1, UNITS), times, times, st.sampled_from("abc")),
    min_size=1,
    max_size=25,
).map(sorted)
#: node, down (s), length (s)
broken = st.lists(
    st.tuples(st.integers(0, UNITS - 1), st.integers(0, 60), st.sampled_from([1.0, 5.0])),
    max_size=4,
    unique_by=lambda row: row[0],
)
#: announced, begin, length (s), units
downs = st.lists(
    st.tuples(st.integers(0, 30), st.integers(1, 40), st.sampled_from([2.0, 9.0]), st.integers(1, UNITS)), max_size=3
)


def play(policy: Any, jobs: Sequence[Row], failures: Sequence[Any], windows: Sequence[Any]) -> list[Any]:
    """Return every decision of a policy on a machine with failures and maintenance."""
    submit, size, runtime, walltime = (np.array(column, dtype=float) for column in list(zip(*jobs, strict=True))[:4])
    workload = Workload(
        name="t",
        source="t",
        ids=[str(number) for number in range(len(jobs))],
        submit=submit,
        size=size.astype(np.int64),
        walltime=walltime,
        runtime=runtime,
        labels={"user": [row[4] for row in jobs]},
    )
    plans = []
    for at, (announced, ahead, length, count) in enumerate(windows):
        begin, units = float(announced + ahead), NodeSet.interval(0, count - 1)
        plans.append(Maintenance(f"m{at}", float(announced), begin, begin + length, units, "t"))
    outages = Outages.of([Outage(node, float(down), down + length) for node, down, length in failures])
    reliability = Reliability(
        maintenance=Planned(sorted(plans, key=lambda plan: plan.announced)),  # type: ignore[arg-type]
        outages=outages,
    )
    kept = Kept(policy)
    result = simulate(
        Setup.of(homogeneous(UNITS, "m"), workload, strict=False, reliability=reliability),
        InProcessTransport(kept),
        clock=lambda: 0.0,
        between=lambda simulation: check_invariants(simulation.engine, kept.view),
    )
    return [*kept.replies, type(result.failure).__name__]


class Kept(Runtime):
    """A runtime that keeps its replies."""

    def __init__(self, policy: Any) -> None:
        super().__init__(policy)
        self.replies: list[Any] = []

    def answer(self, notice: Any) -> Any:
        """Keep it."""
        reply = super().answer(notice)
        self.replies.append((reply.now, list(reply.events), reply.wake))
        return reply


@pytest.mark.parametrize("name", POLICIES)
@settings(max_examples=15)
@given(jobs=rows, failures=broken, windows=downs, at=st.integers(1, 60))
def test_policy_resumes_from_its_state(
    name: str, jobs: list[Row], failures: list[Any], windows: list[Any], at: int
) -> None:
    """Bit by bit the same decisions, whenever its parts were taken out and put into new ones."""
    make = POLICIES[name]

    assert play(Renewed(make, at), jobs, failures, windows) == play(Renewed(make, -1), jobs, failures, windows)
