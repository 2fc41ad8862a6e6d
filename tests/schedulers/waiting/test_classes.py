"""Classes (queues) with limits: they hold at every instant under every policy, and block no other class."""

from collections import defaultdict
from dataclasses import dataclass
from math import inf
from random import Random

import numpy as np
import pytest

from pipistrelle.platforms import catalogue
from pipistrelle.platforms.classes import JobClass
from pipistrelle.platforms.description import Platform, Pool
from pipistrelle.protocol.messages import HelloData
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.runs.execution.pause import check_invariants
from pipistrelle.schedulers.catalogue.parts import compose
from pipistrelle.schedulers.catalogue.registry import make_policy
from pipistrelle.schedulers.maui.config.read import parse_maui_config
from pipistrelle.schedulers.maui.policy import MauiPolicy
from pipistrelle.schedulers.orders.fixed import Fcfs, Sjf
from pipistrelle.schedulers.policy.interfaces import Policy
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.runtime.runtime import Runtime
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.setup.setup import Setup
from pipistrelle.server.simulation.simulate import simulate
from pipistrelle.server.transport.in_process import InProcessTransport
from pipistrelle.traces.workload import Workload

PRESETS = ("fcfs", "easy", "easy-sjbf", "easy-slices", "conservative", "filler", "pbs", "titan-bins", "maui")


@dataclass(frozen=True)
class Row:
    """A job of a test; its number is its place in the list."""

    submit: float
    size: int
    runtime: float
    walltime: float = inf
    queue: str = ""
    user: str = ""


class Watch(Observer):
    """Records starts, ends, units and rejections."""

    def __init__(self) -> None:
        self.start: dict[int, float] = {}
        self.end: dict[int, float] = {}
        self.units: dict[int, NodeSet] = {}
        self.rejected: list[int] = []

    def started(self, now: float, job: Job) -> None:
        """Keep it."""
        number = int(job.id.partition("!")[2])
        self.start[number], self.units[number] = now, job.alloc

    def ended(self, now: float, job: Job) -> None:
        """Keep it."""
        number = int(job.id.partition("!")[2])
        if number in self.start:
            self.end[number] = now
        else:
            self.rejected.append(number)


class Unfiltered(Runtime):
    """A runtime that is woken by every event at once."""

    def hello(self) -> HelloData:
        """Return the policy's name and its features without the filter."""
        hello = super().hello()
        return HelloData(hello.name, hello.version, features=tuple(f for f in hello.features if f != "wake_filter"))


def play(platform: Platform, policy: Policy, rows: list[Row], runtime: type[Runtime] = Runtime) -> Watch:
    """Run the policy on the machine."""
    trace = Workload(
        name="t",
        source="t",
        ids=[str(number) for number in range(len(rows))],
        submit=np.array([row.submit for row in rows], dtype=float),
        size=np.array([row.size for row in rows], dtype=np.int64),
        walltime=np.array([row.walltime for row in rows], dtype=float),
        runtime=np.array([row.runtime for row in rows], dtype=float),
        labels={"queue": [row.queue for row in rows], "user": [row.user for row in rows]},
    )
    watch = Watch()
    setup = Setup.of(platform, trace, strict=True)
    scheduler = runtime(policy)
    result = simulate(
        setup,
        InProcessTransport(scheduler),
        clock=lambda: 0.0,
        observers=[watch],
        between=lambda simulation: check_invariants(simulation.engine, scheduler.view),
    )
    if result.failure is not None:
        raise result.failure
    return watch


class Greedy:
    """A user's own policy: it starts all that fits on the units that are open to the job."""

    name = "greedy"
    order = Sjf()

    def decide(self, view: View) -> None:
        """Start what fits."""
        for job in list(view.waiting):
            if job.size <= len(view.open_to(job)):
                view.start(job)


class Simple:
    """A user's own policy that ignores unit numbers: it starts what fits by counts."""

    name = "simple"
    order = Fcfs()

    def decide(self, view: View) -> None:
        """Start what fits."""
        for job in list(view.waiting):
            if job.size <= view.free.count:
                view.start(job)


def policy_of(name: str) -> Policy:
    """Return a preset or one of the policies above."""
    if name == "depth":
        return compose(backfill="depth", backfill_options={"depth": 3})
    if name == "greedy":
        return Greedy()
    return make_policy(name)


def machine(random: Random) -> Platform:
    """Return a machine with random classes; nodes are handed out whole, or in two units."""
    each = random.choice([1, 1, 2])
    pools = tuple(
        Pool(
            name=name,
            nodes=random.randint(2, 8),
            units_per_node=each,
            unit="node" if each == 1 else "core",
            prologue=random.choice([0.0, 0.0, 3.0]),
            epilogue=random.choice([0.0, 0.0, 2.0]),
        )
        for name in "ab"
    )
    classes = tuple(
        JobClass(
            name=name,
            pools=random.choice([(), (), ("a",), ("b",), ("a", "b")]),
            max_nodes=random.choice([None, random.randint(1, 8)]),
            max_nodes_per_user=random.choice([None, random.randint(1, 6)]),
            max_nodes_per_job=random.choice([None, None, random.randint(1, 6)]),
            max_walltime=random.choice([None, None, 90.0]),
            prologue=random.choice([0.0, 0.0, 4.0]),
            epilogue=random.choice([0.0, 0.0, 5.0]),
        )
        for name in "xyz"
    )
    return Platform(name="m", pools=pools, classes=classes)


def jobs(random: Random, units: int, count: int = 120) -> list[Row]:
    """Return a random workload, by submit time."""
    found = []
    time = 0.0
    for _ in range(count):
        time += random.choice([0.0, 0.0, float(random.randint(0, 12))])
        walltime = float(random.randint(1, 100))
        runtime = walltime * random.choice([0.2, 0.5, 1.0, 1.2])
        size = min(units, random.choice([1, 1, 2, 3, random.randint(1, units)]))
        found.append(
            Row(time, size, runtime, walltime, random.choice(["x", "y", "z", "", "free"]), random.choice("uvw"))
        )
    return found


def can_never_run(platform: Platform, row: Row) -> bool:
    """Tell, by the platform's description alone, whether a class's limits never let the job run."""
    one = next((one for one in platform.classes if one.name == row.queue), None)
    if one is None:
        return False
    nodes = -(-row.size // platform.pools[0].units_per_node)
    limits = [most for most in (one.max_nodes, one.max_nodes_per_user, one.max_nodes_per_job) if most is not None]
    pools = [pool for pool in platform.pools if not one.pools or pool.name in one.pools]
    return (
        any(nodes > most for most in limits)
        or row.walltime > (one.max_walltime or inf)
        or row.size > sum(pool.units for pool in pools)
    )


def check_limits(platform: Platform, rows: list[Row], watch: Watch) -> None:
    """Check at each start, with all jobs that run then, each limit of each class."""
    each = platform.pools[0].units_per_node
    for one in platform.classes:
        mine = [number for number in watch.start if rows[number].queue == one.name]
        allowed = NodeSet.EMPTY
        for pool in one.pools or [pool.name for pool in platform.pools]:
            allowed |= platform.pool_units(pool)
        for number in mine:
            assert (watch.units[number] - allowed) == NodeSet.EMPTY
            now = watch.start[number]
            per_user: dict[str, int] = defaultdict(int)
            for other in mine:
                if watch.start[other] <= now < watch.end[other]:
                    per_user[rows[other].user] += -(-rows[other].size // each)
            assert sum(per_user.values()) <= (one.max_nodes or inf)
            assert max(per_user.values(), default=0) <= (one.max_nodes_per_user or inf)
            assert -(-rows[number].size // each) <= (one.max_nodes_per_job or inf)
            assert rows[number].walltime <= (one.max_walltime or inf)


@pytest.mark.parametrize("name", [*PRESETS, "depth", "greedy"])
@pytest.mark.parametrize("seed", range(3))
def test_limits_hold_and_every_job_that_can_run_runs(name: str, seed: int) -> None:
    """At every instant all limits of all classes hold; just those jobs are rejected that could never run."""
    random = Random(f"classes {seed}")  # noqa: S311 - a test's dice
    platform = machine(random)
    rows = jobs(random, platform.units)

    watch = play(platform, policy_of(name), rows)

    check_limits(platform, rows, watch)
    refused = {number for number, row in enumerate(rows) if can_never_run(platform, row)}
    assert set(watch.rejected) == refused
    assert set(watch.end) == set(range(len(rows))) - refused


@pytest.mark.parametrize("name", [*PRESETS, "depth"])
@pytest.mark.parametrize("seed", range(2))
def test_the_wake_filter_changes_nothing(name: str, seed: int) -> None:
    """A scheduler woken by every event admits the same jobs and starts them at the same times."""
    random = Random(f"filter {seed}")  # noqa: S311 - a test's dice
    platform = machine(random)
    rows = jobs(random, platform.units)

    filtered, whole = (play(platform, policy_of(name), rows, kind) for kind in (Runtime, Unfiltered))

    assert (filtered.start, filtered.units) == (whole.start, whole.units)


@pytest.mark.parametrize("seed", range(3))
def test_unlimited_jobs_start_in_order_under_fcfs(seed: int) -> None:
    """Jobs without limits start in the order of submission, whichever others are held."""
    random = Random(f"order {seed}")  # noqa: S311 - a test's dice
    platform = machine(random)
    rows = jobs(random, platform.units)

    watch = play(platform, make_policy("fcfs"), rows)

    free = [number for number, row in enumerate(rows) if row.queue in ("", "free")]
    starts = [watch.start[number] for number in free]
    assert starts == sorted(starts)


ONE_CLASS = Platform(
    name="m", pools=(Pool(name="a", nodes=8),), classes=(JobClass(name="x", max_nodes=4, max_nodes_per_user=2),)
)


@pytest.mark.parametrize("name", PRESETS)
def test_job_over_a_limit_blocks_no_job(name: str) -> None:
    """A job over its class's limit is passed by others, and starts as soon as one of its class or user ends."""
    rows = [
        Row(0, 2, 100, 100, "x", "u"),
        Row(1, 2, 10, 10, "x", "u"),  # its user has two nodes
        Row(2, 2, 50, 50, "x", "v"),
        Row(3, 1, 10, 10, "x", "w"),  # the class has four
        Row(4, 4, 10, 10),
    ]

    watch = play(ONE_CLASS, make_policy(name), rows)

    assert watch.start == {0: 0.0, 1: 100.0, 2: 2.0, 3: 52.0, 4: 4.0}


def test_a_job_of_unknown_user_has_no_limit_per_user() -> None:
    """Only the class's limit counts when the job's user is unknown."""
    rows = [Row(0, 2, 10, 10, "x"), Row(0, 2, 10, 10, "x"), Row(0, 1, 10, 10, "x"), Row(0, 3, 10, 10, "x")]

    watch = play(ONE_CLASS, make_policy("easy"), rows)

    assert watch.start == {0: 0.0, 1: 0.0, 2: 10.0, 3: 10.0}


class Asked:
    """Records the view's entry for each held job, and lets another policy decide."""

    name = "asked"
    order = Fcfs()

    def __init__(self) -> None:
        self._inner = make_policy("easy")
        self.said: dict[str, str | None] = {}

    def decide(self, view: View) -> None:
        """Ask, then decide."""
        for job in view.set_aside:
            self.said.setdefault(job.id, view.held_back_by(job))
        self._inner.decide(view)


def test_the_limit_that_holds_a_job_back_is_named() -> None:
    """Class, limit, usage and the job's request."""
    policy = Asked()
    rows = [Row(0, 2, 9, 9, "x", "u"), Row(0, 1, 9, 9, "x", "u"), Row(0, 2, 9, 9, "x", "v"), Row(0, 1, 9, 9, "x", "w")]

    play(ONE_CLASS, policy, rows)

    assert policy.said == {
        "w0!1": "class 'x' allows 2 nodes (max_nodes_per_user): 2 taken, the job needs 1",
        "w0!3": "class 'x' allows 4 nodes (max_nodes): 4 taken, the job needs 1",
    }


def test_a_policy_that_does_not_look_at_pools_is_told() -> None:
    """Starting a job whose class's pools have too few free units is an error that says so, not a wrong start."""
    platform = Platform(
        name="m",
        pools=(Pool(name="a", nodes=2), Pool(name="b", nodes=2)),
        classes=(JobClass(name="x", pools=("b",)),),
    )

    watch = play(platform, Simple(), [Row(0, 2, 10, 10, "x")])
    assert str(watch.units[0]) == "2-3"
    with pytest.raises(Exception, match="asks for 2 units; 0 of the 2 free units are open to it"):
        play(platform, Simple(), [Row(0, 2, 10, 10, "x"), Row(0, 2, 10, 10, "x")])


@pytest.mark.parametrize("backfill", ["easy", "easy-slices", "conservative"])
def test_plans_reckon_with_prologue_and_epilogue(backfill: str) -> None:
    """A job passes the reserved one only if its epilogue is over by then."""
    platform = Platform(name="m", pools=(Pool(name="a", nodes=4, prologue=2.0, epilogue=3.0),))
    rows = [Row(0, 3, 20, 20), Row(1, 4, 10, 10), Row(2, 1, 19, 19), Row(3, 1, 17, 17)]

    watch = play(platform, compose(backfill=backfill), rows)

    assert watch.start[1] == 25.0
    assert watch.start[3] == 3.0
    assert watch.end[3] == 25.0
    assert watch.start[2] == 40.0


SALOMON_CFG = """
RESERVATIONPOLICY CURRENTHIGHEST
CLASSCFG[qexp]  PRIORITY=150 MAXNODE=32 MAXNODE[USER]=8
CLASSCFG[qlong] MAXNODE=256
CLASSCFG[qfree] PRIORITY=-1024 MAXNODE=752
"""


@pytest.mark.parametrize("kind", ["maui.cfg alone", "classes alone", "classes under easy", "both"])
def test_table_1_as_maui_cfg_and_as_classes(kind: str) -> None:
    """Paper 002, Table 1: the same limits hold whether the configuration or the platform has them."""
    salomon = catalogue.get("salomon")
    bare = Platform(name="salomon", pools=salomon.pools)
    random = Random(2)  # noqa: S311 - a test's dice
    rows = []
    for number in range(400):
        queue = random.choice(["qexp", "qlong", "qfree", "qprod"])
        size = random.choice([1, 2, 4, 8] if queue == "qexp" else [4, 16, 64, 200])
        walltime = float(random.randint(60, 3600))
        rows.append(Row(number * 5.0, size, walltime * random.random(), walltime, queue, random.choice("uvwxyz")))
    settings, _ = parse_maui_config(SALOMON_CFG)
    policy = {
        "maui.cfg alone": MauiPolicy(settings),
        "both": MauiPolicy(settings),
        "classes alone": MauiPolicy(),
        "classes under easy": make_policy("easy"),
    }[kind]

    watch = play(bare if kind == "maui.cfg alone" else salomon, policy, rows)

    assert len(watch.end) == len(rows)
    without_pools = tuple(
        JobClass(name=one.name, max_nodes=one.max_nodes, max_nodes_per_user=one.max_nodes_per_user)
        for one in salomon.classes
    )
    limits = Platform(name="m", pools=salomon.pools, classes=without_pools) if kind == "maui.cfg alone" else salomon
    check_limits(limits, rows, watch)


def test_pools_of_classes_use_up_no_reservation_of_a_unit() -> None:
    """RESDEPTH 1, as in paper 002: jobs run on Salomon's pools, and one that does not fit waits for the next end."""
    settings, _ = parse_maui_config("RESDEPTH 1")
    machine = Platform(
        name="m", pools=catalogue.get("salomon").pools, classes=(JobClass(name="qlong", pools=("plain",)),)
    )
    rows = [Row(0.0, 500, 100.0, 100.0, "qlong", "u"), Row(1.0, 200, 50.0, 50.0, "qlong", "u")]
    watch = play(machine, MauiPolicy(settings), rows)

    assert watch.start == {0: 0.0, 1: 100.0}
