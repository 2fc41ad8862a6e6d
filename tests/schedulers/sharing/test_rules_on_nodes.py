"""The backfilling rules on nodes that jobs share: legal starts, kept promises, and equality with plain machines."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import structs

from pipistrelle.platforms.description import Platform, Pool
from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.protocol.resources.request import Request
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.runs.execution.pause import check_invariants
from pipistrelle.schedulers.catalogue.parts import compose
from pipistrelle.schedulers.catalogue.registry import make_policy
from pipistrelle.schedulers.maui.config.read import parse_maui_config
from pipistrelle.schedulers.maui.policy import MauiPolicy
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.preemption.options import PreemptionOptions
from pipistrelle.schedulers.runtime.runtime import Runtime
from pipistrelle.schedulers.sharing.placements import SHARED
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.setup.setup import Setup
from pipistrelle.server.simulation.simulate import simulate
from pipistrelle.server.transport.in_process import InProcessTransport
from pipistrelle.traces.workload import NODE_LIST, Workload

RULES = ("none", "firstfit", "easy", "easy-sjbf", "easy-slices", "conservative", "depth", "fill")
#: rules whose reservations never move to a later time
PROMISING = ("easy", "easy-sjbf", "easy-slices", "conservative")
#: rules that reserve in the same way on one-core nodes and on units; `depth` counts units there
AS_PLAIN = ("none", "firstfit", "easy", "easy-sjbf", "easy-slices", "conservative", "maui-none")

_REQUESTS = st.one_of(
    st.builds(
        lambda tasks, memory: Request(nodes=1, most_nodes=1, tasks=tasks, memory_per_node=memory),
        st.integers(1, 4),
        st.integers(0, 8),
    ),
    st.builds(
        lambda share: Request(nodes=1, most_nodes=1, tasks=1, gpus_per_node=1, gpu_share=share),
        st.sampled_from([300, 500, 1000]),
    ),
    st.builds(lambda gpus: Request(nodes=1, most_nodes=1, tasks=1, gpus_per_node=gpus), st.integers(1, 2)),
    st.builds(
        lambda nodes, each: Request(nodes=nodes, most_nodes=nodes, tasks=nodes * each, memory_per_core=1),
        st.integers(1, 3),
        st.integers(1, 3),
    ),
    st.builds(lambda tasks: Request(tasks=tasks), st.integers(1, 10)),
    st.builds(lambda nodes: Request(nodes=nodes, most_nodes=nodes, exclusive=True), st.integers(1, 2)),
    st.builds(lambda count: Request(tasks=1, licenses={"l": count}), st.integers(1, 2)),
    st.builds(
        lambda nodes, tasks, gpus, memory: Request(
            nodes=1, most_nodes=nodes, tasks=tasks, gpus=gpus, memory_per_gpu=memory
        ),
        st.integers(1, 2),
        st.integers(1, 4),
        st.integers(1, 2),
        st.sampled_from([2, 6, 8]),
    ),
)
_JOBS = st.lists(
    st.tuples(st.integers(0, 20), st.integers(1, 12), st.integers(0, 6), _REQUESTS), min_size=1, max_size=14
)

#: two jobs that leave 6 MiB on each node with GPUs
_LITTLE_MEMORY = [(0, 9, 0, Request(nodes=1, most_nodes=1, tasks=1, memory_per_node=10))] * 2

_MACHINE = Platform(
    name="m",
    pools=(
        Pool(name="std", nodes=2, resources={"cores": 4, "memory": "8 MiB"}),
        Pool(name="gpu", nodes=2, weight=2, resources={"cores": 4, "memory": "16 MiB", "gpu": {"count": 2}}),
    ),
    licenses={"l": 2},
)

JobRow = tuple[int, int, int, Request]


class Watched:
    """A policy whose reservations are checked never to move to a later time."""

    def __init__(self, policy: Any) -> None:
        self._policy = policy
        self.name, self.order, self.features = policy.name, policy.order, policy.features
        self.promised: dict[str, float] = {}
        self.broken: list[str] = []

    def decide(self, view: View) -> None:
        """Decide, and keep the earliest promises."""
        self._policy.decide(view)
        for job in view.waiting:
            begin = self._policy.reservation(job)
            if begin is not None:
                if begin > self.promised.get(job.id, begin):
                    self.broken.append(f"{job.id}: {self.promised[job.id]} became {begin}")
                self.promised[job.id] = min(begin, self.promised.get(job.id, begin))


class Starts(Observer):
    """Keeps every start."""

    def __init__(self) -> None:
        self.start_of: dict[str, tuple[float, str]] = {}

    def started(self, now: float, job: Job) -> None:
        """Keep it."""
        self.start_of[job.id] = now, str(job.alloc)


#: {name: lines of a maui.cfg}
MAUI = {
    "maui": "",
    "maui-highest": "RESERVATIONPOLICY HIGHEST\nRESERVATIONDEPTH 3\nRESDEPTH 4\nNODEALLOCATIONPOLICY FIRSTAVAILABLE",
    "maui-bestfit": "BACKFILLPOLICY BESTFIT\nBACKFILLMETRIC NODES\nUSERCFG[DEFAULT] MAXPROC=6,10",
    "maui-greedy": "BACKFILLPOLICY GREEDY\nBACKFILLDEPTH 3\nSRCFG[s] TASKCOUNT=1 RESOURCES=PROCS:3 TIMELIMIT=8",
    "maui-preempt": "QOSWEIGHT 1\nQOSCFG[high] PRIORITY=9 QFLAGS=PREEMPTOR\nQOSCFG[low] QFLAGS=PREEMPTEE",
    "maui-none": "BACKFILLPOLICY NONE\nNODEALLOCATIONPOLICY FIRSTAVAILABLE",
}


#: {name: rule with preemption by QOS}
PREEMPTING = {"preempt-easy": "easy", "preempt-firstfit": "firstfit", "preempt-conservative": "conservative"}


def policy_of(rule: str) -> Any:
    """Return the policy with a backfilling rule, with preemption, or with one of the files of `MAUI`."""
    if rule in PREEMPTING:
        options = PreemptionOptions("qos", preempt=("high=low",), grace=("3",))
        return compose(backfill=PREEMPTING[rule], preemption=options)
    return MauiPolicy(parse_maui_config(MAUI[rule])[0]) if rule in MAUI else compose(backfill=rule)


def workload(jobs: list[JobRow]) -> Workload:
    """Return the jobs (submit, run time, walltime beyond it, request) as a workload."""
    jobs = sorted(jobs, key=lambda job: job[0])
    return Workload(
        name="t",
        source="t",
        ids=[str(number) for number in range(len(jobs))],
        submit=np.array([job[0] for job in jobs], dtype=float),
        size=np.array([job[3].least_nodes for job in jobs], dtype=np.int64),
        walltime=np.array([job[1] + job[2] for job in jobs], dtype=float),
        runtime=np.array([job[1] for job in jobs], dtype=float),
        requests=[job[3] for job in jobs],
        labels={"qos": ["high" if number % 3 == 2 else "low" for number in range(len(jobs))]},
    )


def run(policy: Any, jobs: Workload, platform: Platform = _MACHINE) -> dict[str, tuple[float, str]]:
    """Return {job: start, units} of a run, whose invariants are checked after each event."""
    watch = Starts()
    result = simulate(
        Setup.of(platform, jobs, strict=True),
        InProcessTransport(runtime := Runtime(policy)),
        clock=lambda: 0.0,
        observers=[watch],
        between=lambda simulation: check_invariants(simulation.engine, runtime.view),
    )
    if result.failure is not None:
        raise result.failure
    return watch.start_of


@pytest.mark.parametrize("rule", [*RULES, *PREEMPTING, *MAUI])
@settings(max_examples=6, deadline=None)
@given(jobs=_JOBS)
def test_every_job_starts_and_no_promise_is_broken(rule: str, jobs: list[JobRow]) -> None:
    """Every job starts on resources that the server finds free, by the earliest time that was promised to it."""
    policy = Watched(policy_of(rule))
    starts = run(policy, workload(jobs))
    assert len({job.partition("#")[0] for job in starts}) == len(jobs)
    if rule in PROMISING:
        assert not policy.broken
        assert all(starts[job][0] <= begin for job, begin in policy.promised.items() if job in starts)


@pytest.mark.parametrize("rule", AS_PLAIN)
@settings(max_examples=6, deadline=None)
@given(
    jobs=st.lists(
        st.tuples(st.integers(0, 20), st.integers(1, 6), st.integers(1, 12), st.integers(0, 6)), min_size=1, max_size=25
    )
)
def test_nodes_with_one_core_are_as_plain_units(
    rule: str, jobs: list[tuple[int, int, int, int]], run_policy: Callable[..., Any]
) -> None:
    """A job that asks for a number of cores starts at the same time on one-core nodes as on plain units."""
    rows = sorted(((float(a), b, float(c), float(c + d)) for a, b, c, d in jobs), key=lambda row: row[0])
    plain = run_policy(policy_of(rule), 6, rows).start_of
    one_core = Platform(name="m", pools=(Pool(name="all", nodes=6, resources={"cores": 1}),))
    shared = run_policy(policy_of(rule), 6, rows, platform=one_core).start_of
    assert shared == plain


@pytest.mark.parametrize("rule", [*RULES, *PREEMPTING, *MAUI])
@settings(max_examples=6, deadline=None)
@given(jobs=_JOBS, stop=st.integers(0, 20))
def test_a_rule_saves_its_state_as_json(rule: str, jobs: list[JobRow], stop: int) -> None:
    """The state of each rule is text, and a rule made from it goes on with the same decisions."""
    work = workload(jobs)
    assert run(Restarted(rule, stop), work) == run(policy_of(rule), work)


@pytest.mark.parametrize("rule", ["easy", "conservative"])
@pytest.mark.parametrize("placement", ["lowest", *SHARED])
@settings(max_examples=6, deadline=None)
@given(jobs=_JOBS)
@example(jobs=[*_LITTLE_MEMORY, (1, 5, 0, Request(nodes=1, most_nodes=2, tasks=2, gpus=2, memory_per_gpu=6))])
def test_each_placement_keeps_the_promises_of_each_rule(placement: str, rule: str, jobs: list[JobRow]) -> None:
    """With each placement for shared nodes, every job starts on free resources and no reservation moves later."""
    policy = Watched(compose(backfill=rule, placement=placement))
    assert len(run(policy, workload(jobs))) == len(jobs)
    assert not policy.broken


def test_placements_are_refused_on_the_other_kind_of_machine(run_policy: Callable[..., Any]) -> None:
    """A placement for units is refused on shared nodes, and one for shared nodes on units, by name."""
    with pytest.raises(PipistrelleError, match="Contiguous cannot share nodes"):
        run(compose(placement="contiguous"), workload([(0, 1, 1, Request(tasks=1))]))
    with pytest.raises(PipistrelleError, match="'worst-fit' is for nodes that jobs share"):
        run_policy(compose(placement="worst-fit"), 2, [(0.0, 1, 1.0, 1.0)])


@settings(max_examples=6, deadline=None)
@given(jobs=_JOBS)
def test_recorded_starts_are_repeated_on_the_recorded_nodes(jobs: list[JobRow]) -> None:
    """A log of starts and nodes that are possible is repeated exactly, whatever the jobs ask for of their node."""
    jobs = [job for job in jobs if job[3].nodes == 1 and not job[3].gpu_share]
    if not jobs:
        return
    pools = tuple(structs.replace(pool, names=f"{pool.name}[1-2]") for pool in _MACHINE.pools)
    machine, work = structs.replace(_MACHINE, pools=pools), workload(jobs)
    known = run(compose(backfill="easy"), work, machine)
    names = ["std1", "std2", "gpu1", "gpu2"]
    told = [known[f"w0!{number}"] for number in range(len(jobs))]
    log = replace(
        work,
        measures={**work.measures, "wait": np.array([start for start, _ in told]) - work.submit},
        labels={**work.labels, NODE_LIST: [",".join(names[unit] for unit in NodeSet.parse(at)) for _, at in told]},
    )
    assert run(make_policy("recorded"), log, machine) == known


class Restarted:
    """A policy that is replaced at one decision by one restored from its state."""

    def __init__(self, rule: str, stop: int) -> None:
        self._rule, self._left = rule, stop
        self._policy = policy_of(rule)
        self.name, self.order, self.features = self._policy.name, self._policy.order, self._policy.features

    def decide(self, view: View) -> None:
        """Decide; before one of the decisions, restore a new policy from the state of the old one."""
        if self._left == 0 and view.now > 0:
            state = json.loads(json.dumps(self._policy.state()))
            self._policy = policy_of(self._rule)
            self._policy.restore(state, view)
        self._left -= 1
        self._policy.decide(view)
