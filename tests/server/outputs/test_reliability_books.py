"""The accounts of a machine that fails, by hand: nodes' times, interruptions, and the outages that feed them."""

from typing import Any

import numpy as np
import pytest

from pipistrelle.platforms.description import Platform, Pool, homogeneous
from pipistrelle.platforms.failures.durations import Exponential, Fixed
from pipistrelle.platforms.failures.models import FailureModel
from pipistrelle.platforms.failures.outage import Outage, Outages
from pipistrelle.platforms.failures.plan import FailurePlan, Source
from pipistrelle.platforms.maintenance.plan import MaintenancePlan
from pipistrelle.platforms.maintenance.text import parse_maintenance
from pipistrelle.server.errors import SetupError
from pipistrelle.server.outages.feed import OutageFeed
from pipistrelle.server.outages.reliability import Reliability
from pipistrelle.server.outputs.node_book import NodeBook
from pipistrelle.server.outputs.reliability_book import ReliabilityBook
from pipistrelle.server.setup.setup import Setup
from pipistrelle.traces.resilience import parse_resilience
from pipistrelle.traces.workload import Workload

INF = float("inf")


class Books:
    """A game with the books of its nodes and of its jobs."""

    def __init__(self, play: Any, machine: Platform, rows: list[Any], outages: list[Any], **options: Any) -> None:
        self.nodes = NodeBook(machine)
        self.jobs = ReliabilityBook(self.nodes)
        aware = options.pop("aware", True)
        rules = [
            parse_maintenance(rule, machine, where="test", epoch=None, timezone=None)
            for rule in options.pop("rules", [])
        ]
        reliability = Reliability(
            outages=Outages.of(Outage(*row) for row in outages),
            maintenance=MaintenancePlan(tuple(rules)) if rules else None,
            **options,
        )
        self.game = play(
            machine.units,
            rows,
            features=("failures",) if aware else (),
            observers=[self.nodes, self.jobs],
            reliability=reliability,
            platform=machine,
        )
        self.game.begin()

    def columns(self, *names: str) -> list[tuple[float, ...]]:
        """Return some columns of the nodes' file."""
        header = (
            "node,pool,failures,maintenances,time_up,time_down,time_in_maintenance,time_busy,time_idle,availability"
        )
        places = [header.split(",").index(name) for name in names]
        return [tuple(float(line.split(",")[place]) for place in places) for line in self.nodes.lines()]


def test_a_run_that_ends_while_nodes_are_down(play: Any) -> None:
    """Nodes down at the end were down until then, even permanently; busy, idle and down times sum to the total."""
    books = Books(play, homogeneous(4, "m"), [("1", 0, 2, 100, 200)], [(2, 10, 20), (2, 90, 500), (3, 40, INF)])
    books.game.say(books.game.execute("1", "0-1"))
    while books.game.say() is not None:
        pass
    books.game.end()

    assert books.columns("failures", "time_up", "time_down", "time_busy", "time_idle") == [
        (0, 100, 0, 100, 0),
        (0, 100, 0, 100, 0),
        (2, 80, 20, 0, 80),
        (1, 40, 60, 0, 40),
    ]
    assert books.nodes.node_seconds == {"all": 400, "down": 80, "maintenance": 0, "busy": 200, "idle": 120}
    assert books.nodes.unavailable == 80
    assert books.nodes.outage_lines() == [
        "2,10.0,20.0,failure,0,1",
        "3,40.0,,failure,0,0",
        "2,90.0,500.0,failure,0,0",
    ]


def test_whichever_comes_first_is_what_a_node_is_down_for(play: Any) -> None:
    """A node that fails during maintenance, or is maintained while down, is counted once; neither is available."""
    outages = [(0, 30, 60), (1, 10, 30)]
    books = Books(play, homogeneous(3, "m"), [("1", 0, 1, 100, 200)], outages, rules=["@20 +20s 0-1"])
    books.game.say(books.game.execute("1", "2"))
    while books.game.say() is not None:
        pass
    books.game.end()

    columns = ("failures", "maintenances", "time_up", "time_down", "time_in_maintenance")
    assert books.columns(*columns) == [(0, 1, 60, 0, 40), (1, 0, 70, 30, 0), (0, 0, 100, 0, 0)]
    assert books.jobs.summary().availability == 1 - (30 + 40) / 300
    assert books.nodes.outage_lines() == ["1,10.0,40.0,failure,0,1", "0,20.0,60.0,maintenance,1,1"]


def test_units_that_are_held_while_their_node_is_down_are_not_busy(play: Any) -> None:
    """For a job that repeatedly continues without a node, the node's up times are busy."""
    outages = [(1, 10, 20), (1, 30, 40), (1, 60, 70)]
    books = Books(
        play,
        homogeneous(2, "m"),
        [("1", 5, 2, 50, 200)],
        [(0, 1, 2), *outages],
        resilience=parse_resilience(spares="1", checkpoint="1000"),
    )
    while "w0!1" not in books.game.engine.cluster.waiting:
        books.game.say()
    books.game.say(books.game.execute("1", "0-1"))
    while books.game.say() is not None:
        pass
    books.game.end()
    end = books.game.now

    assert end == 5 + 2 * 50
    assert books.columns("time_up", "time_down", "time_busy") == [(end - 1, 1, 100), (end - 30, 30, 100 - 30)]
    assert books.nodes.unavailable == 1
    spent = books.jobs.summary().unit_seconds
    assert (spent["spare"], spent["down"]) == (5, 95)
    assert sum(spent.values()) == 200


def test_interruptions_are_of_jobs_that_work(play: Any) -> None:
    """A job that has waited for a node in vain was not interrupted; one that survived a failure was."""
    books = Books(
        play,
        homogeneous(2, "m"),
        [("1", 5, 1, 50, 200), ("2", 5, 1, 50, 200)],
        [(0, 1, 100), (0, 100, INF), (1, 20, 21)],
        aware=False,
        requeue="never",
    )
    books.game.say(books.game.execute("1", "0"), books.game.execute("2", "1"))
    while books.game.say() is not None:
        pass
    books.game.end()
    summary = books.jobs.summary()

    assert (summary.attempts, summary.interrupted_attempts, summary.given_up, summary.survived_failures) == (2, 2, 2, 0)
    (size,) = summary.by_size
    assert (size.attempts, size.interruptions, size.running, size.mean_time_to_interruption) == (2, 1, 110, 110)


def test_survived_failures_are_interruptions(play: Any) -> None:
    """Two that a job survives, and one that ends it."""
    books = Books(
        play,
        homogeneous(3, "m"),
        [("1", 0, 3, 50, 200)],
        [(0, 10, 11), (2, 15, 16), (1, 30, 31)],
        resilience=parse_resilience(spares="2"),
        requeue="never",
    )
    books.game.say(books.game.execute("1", "0-2"))
    while books.game.say() is not None:
        pass
    books.game.end()
    summary = books.jobs.summary()

    assert (summary.interrupted_attempts, summary.survived_failures, summary.given_up) == (1, 2, 1)
    assert summary.by_size[0].mean_time_to_interruption == 10


def test_requeued_job_is_not_counted_as_given_up(play: Any) -> None:
    """Of two attempts the first was interrupted; the second is the last, and is not."""
    books = Books(play, homogeneous(2, "m"), [("1", 0, 1, 50, 200)], [(0, 10, 11)])
    books.game.say(books.game.execute("1", "0"))
    books.game.say(books.game.execute("1#1", "1"))
    while books.game.say() is not None:
        pass
    books.game.end()
    summary = books.jobs.summary()

    assert (summary.attempts, summary.interrupted_attempts, summary.given_up) == (2, 1, 0)


def test_outages_come_instant_by_instant() -> None:
    """Several sources are merged by time; simultaneous outages come together, for any earlier calls."""
    recorded = Outages.of([Outage(3, 5.0, 6.0), Outage(1, 5.0, 9.0), Outage(0, 1e6, 2e6)])
    plan = FailurePlan((Source(FailureModel(Exponential(1e5), Fixed(10.0)), range(4)),))
    both = OutageFeed(Reliability(outages=recorded, failures=plan, seed=3).streams())
    merged = []
    while (instant := both.next_instant())[0].down < 2e6:
        assert len({outage.down for outage in instant}) == 1
        merged.append(instant)

    drawn = [outage for outage in plan.stream(3).extend(3e6) if outage.down < 2e6]
    times = [instant[0].down for instant in merged]
    assert [outage.node for outage in merged[0]] == [1, 3]
    assert times == sorted(set(times))
    assert sorted(outage for instant in merged for outage in instant) == sorted([*recorded, *drawn])
    assert OutageFeed(Reliability(outages=recorded).streams()[:0]).next_instant() == []


def workload(ids: tuple[str, ...], sizes: list[int]) -> Workload:
    """Return jobs of these names and sizes that run 100 s of 200 s."""
    count = len(ids)
    return Workload(
        name="log",
        source="log.swf",
        ids=list(ids),
        submit=np.zeros(count),
        size=np.array(sizes, dtype=np.int64),
        walltime=np.full(count, 200.0),
        runtime=np.full(count, 100.0),
    )


def test_a_name_of_an_attempt_is_refused() -> None:
    """A job whose name equals a future attempt of another would be lost, or would hide that one."""
    machine = homogeneous(4, "m")
    failing = Reliability(outages=Outages.of([Outage(0, 1.0, 2.0)]))
    clashing, fine = workload(("1", "2", "1#1"), [1, 1, 1]), workload(("1", "2#1", "1#x"), [1, 1, 1])

    with pytest.raises(SetupError, match="job w0!1#1 has the name of an attempt of job w0!1"):
        Setup.of(machine, clashing, reliability=failing)
    Setup.of(machine, fine, reliability=failing)
    Setup.of(machine, clashing, reliability=Reliability())
    Setup.of(machine, clashing, reliability=Reliability(outages=failing.outages, requeue="never"))


def test_jobs_are_counted_in_nodes() -> None:
    """Spares are nodes: a job of eight units on two nodes can have one, not two."""
    machine = Platform(name="m", pools=(Pool(name="a", nodes=4, units_per_node=4, unit="core"),))
    jobs = workload(("1", "2"), [8, 7])
    Setup.of(machine, jobs, reliability=Reliability(resilience=parse_resilience(spares="1"), walltime="extended"))

    with pytest.raises(SetupError, match="fewer spares than its 2 nodes"):
        Setup.of(machine, jobs, reliability=Reliability(resilience=parse_resilience(spares="2")))
