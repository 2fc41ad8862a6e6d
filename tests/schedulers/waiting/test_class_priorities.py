"""Class priorities under the orders that use them."""

import numpy as np

from pipistrelle.platforms.classes import JobClass
from pipistrelle.platforms.description import Platform, Pool
from pipistrelle.schedulers.backfill.easy import Easy
from pipistrelle.schedulers.catalogue.registry import make_policy
from pipistrelle.schedulers.composed import ComposedPolicy
from pipistrelle.schedulers.maui.config.read import parse_maui_config
from pipistrelle.schedulers.maui.policy import MauiPolicy
from pipistrelle.schedulers.orders.maui import MauiOrder
from pipistrelle.schedulers.placement.lowest import LowestIds
from pipistrelle.schedulers.policy.interfaces import Policy
from pipistrelle.schedulers.runtime.runtime import Runtime
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.setup.setup import Setup
from pipistrelle.server.simulation.simulate import simulate
from pipistrelle.server.transport.in_process import InProcessTransport
from pipistrelle.traces.workload import Workload


class Begun(Observer):
    """Keeps the order in which jobs start."""

    def __init__(self) -> None:
        self.numbers: list[int] = []

    def started(self, now: float, job: Job) -> None:
        """Keep the job's number."""
        self.numbers.append(int(job.id.partition("!")[2]))


def test_every_simulation_of_an_order_has_its_own_machines_priorities() -> None:
    """What an order learned of one machine's classes is not there on another, and the options come first."""
    machine = Platform(
        name="m",
        pools=(Pool(name="p", nodes=4),),
        classes=(JobClass(name="low", priority=-5.0), JobClass(name="high", priority=100.0)),
    )
    jobs = Workload(
        name="t",
        source="t",
        ids=["0", "1", "2", "3"],
        submit=np.array([0.0, 1.0, 1.0, 1.0]),
        size=np.full(4, 4),
        walltime=np.array([50.0, 10.0, 10.0, 10.0]),
        runtime=np.array([50.0, 10.0, 10.0, 10.0]),
        labels={"queue": ["", "low", "", "high"]},
    )

    def order_under(policy: Policy, platform: Platform = machine) -> list[int]:
        begun = Begun()
        setup = Setup.of(platform, jobs, strict=True)
        result = simulate(setup, InProcessTransport(Runtime(policy)), clock=lambda: 0.0, observers=[begun])
        assert result.failure is None
        return begun.numbers

    pbs = make_policy("pbs")
    weighted = parse_maui_config("CLASSWEIGHT 10\nENABLENEGJOBPRIORITY TRUE\nREJECTNEGPRIOJOBS FALSE")[0]
    configured = parse_maui_config("CLASSWEIGHT 10\nCLASSCFG[high] PRIORITY=1\nCLASSCFG[low] PRIORITY=2")[0]
    maui_order = ComposedPolicy("m", MauiOrder(weighted), Easy(), LowestIds())

    assert order_under(pbs) == [0, 3, 2, 1]
    assert order_under(pbs, Platform(name="m", pools=machine.pools)) == [0, 1, 2, 3]
    assert order_under(make_policy("pbs", order_options={"queue-priorities": {"low": 200.0}})) == [0, 1, 3, 2]
    assert order_under(MauiPolicy(weighted)) == [0, 3, 2, 1]
    assert order_under(maui_order) == [0, 3, 2, 1]
    assert order_under(MauiPolicy(configured)) == [0, 1, 3, 2]
    assert order_under(MauiPolicy()) == [0, 1, 2, 3]  # CLASSWEIGHT is 0 then
    assert order_under(make_policy("easy")) == [0, 1, 2, 3]


def test_jobs_that_a_class_has_set_aside_are_ranked_when_there_is_room() -> None:
    """A dynamic order admits the job that is first then, not the one that was first when held."""
    machine = Platform(
        name="m", pools=(Pool(name="p", nodes=8),), classes=(JobClass(name="small", max_nodes=2, priority=0.0),)
    )
    jobs = Workload(
        name="t",
        source="t",
        ids=["0", "1", "2"],
        submit=np.array([0.0, 10.0, 20.0]),
        size=np.array([2, 1, 2]),
        walltime=np.array([100.0, 10.0, 10.0]),
        runtime=np.array([100.0, 10.0, 10.0]),
        labels={"queue": ["small"] * 3},
    )
    # At 20 s job 1 has 10 points and job 2 none; at 100 s they have 90 and 160.
    policy = make_policy("pbs", order_options={"formula": "eligible_time*ncpus"})
    begun = Begun()
    result = simulate(
        Setup.of(machine, jobs, strict=True),
        InProcessTransport(Runtime(policy)),
        clock=lambda: 0.0,
        observers=[begun],
    )

    assert result.failure is None
    assert begun.numbers == [0, 2, 1]
