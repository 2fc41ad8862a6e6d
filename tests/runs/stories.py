"""Runs with something of everything, and the schedulers for them: what tests of state and of takeover draw."""

from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from hypothesis import strategies as st
from msgspec.structs import replace

from pipistrelle.platforms.classes import JobClass
from pipistrelle.platforms.description import Platform, Pool
from pipistrelle.platforms.failures.models import FailureModel
from pipistrelle.platforms.failures.outage import Outage, Outages
from pipistrelle.platforms.failures.plan import FailurePlan, Source
from pipistrelle.platforms.failures.text import parse_durations
from pipistrelle.platforms.maintenance.plan import MaintenancePlan
from pipistrelle.platforms.maintenance.text import parse_maintenance
from pipistrelle.runs.execution.pause import Pause
from pipistrelle.runs.execution.run import RunOptions, run_in_process
from pipistrelle.schedulers.catalogue.names import PARTS
from pipistrelle.schedulers.catalogue.parts import compose, make_backfill, make_placement
from pipistrelle.schedulers.catalogue.presets import library
from pipistrelle.schedulers.catalogue.registry import make_policy
from pipistrelle.schedulers.composed import ComposedPolicy
from pipistrelle.schedulers.maui.config.read import parse_maui_config
from pipistrelle.schedulers.maui.policy import MauiPolicy
from pipistrelle.schedulers.orders.maui import MauiOrder
from pipistrelle.schedulers.policy.interfaces import Policy
from pipistrelle.schedulers.preemption.options import PreemptionOptions
from pipistrelle.schedulers.runtime.polling import Polling
from pipistrelle.server.errors import RunError, SchedulerFailed
from pipistrelle.server.outages.reliability import Reliability
from pipistrelle.traces.resilience import Resilience
from pipistrelle.traces.workload import CANCELLED_AFTER, Workload

UNITS = 6
MODEL = FailureModel(parse_durations("weibull,mttr=80,shape=0.8"), parse_durations("exponential,mttr=6"))
ORDER_OPTIONS: dict[str, dict[str, Any]] = {
    "bins": {"bins": [{"name": "large", "smallest": 4, "boost": 4.0, "longest-walltime": 6.0}], "over-limit": "reject"},
    "pbs": {"formula": "fairshare/10 + ncpus + eligible_time/4", "fairshare-entity": "user", "decay-time": "9s"},
}
SHARES = {
    "formula": "50 * fairshare_factor + queue_priority - ncpus",
    "fairshare-entity": "account",
    "fairshare-shares": {"p": 30.0, "q": 10.0},
    "unknown-shares": 5.0,
    "decay-time": "15s",
    "decay-factor": 0.7,
    "queue-priorities": {"x": 3.0},
}
#: a configuration with something of everything
MAUI = (Path(__file__).parents[1] / "schedulers" / "maui" / "everything.cfg").read_text(encoding="utf-8")


def maui(text: str = "", placement: str | None = None) -> Callable[[], Policy]:
    """Return what makes the policy of a configuration."""
    configured = parse_maui_config(text)[0]
    return lambda: MauiPolicy(configured, placement=None if placement is None else make_placement(placement))


def busy_maui(fill: str, keep: str, accrual: str, depth: int = 3) -> str:
    """Return a configuration with something of everything."""
    return MAUI.format(fill=fill, keep=keep, accrual=accrual, depth=depth)


def composed(order: str, backfill: str, placement: str) -> Callable[[], Policy]:
    """Return what makes a policy of these parts."""
    return lambda: compose(order=order, backfill=backfill, placement=placement, order_options=ORDER_OPTIONS.get(order))


def polling(order: str, backfill: str, step: float) -> Callable[[], Policy]:
    """Return what makes a policy that polls."""
    return lambda: Polling(composed(order, backfill, "lowest")(), step)


def preempting(order: str, backfill: str, placement: str, *options: Any, step: float | None = None) -> Policy:
    """Return a policy in which the jobs of one queue preempt those of others."""
    rules = PreemptionOptions("partition_prio", priority_tier={"x": 2.0, "y": 1.0}, **dict(options))
    policy = compose(order=order, backfill=backfill, placement=placement, preemption=rules)
    return policy if step is None else Polling(policy, step)


def shares(depth: int, strict: bool) -> Callable[[], Policy]:
    """Return what makes PBS with a tree of shares."""
    options = {"depth": depth, "strict-ordering": strict}
    return lambda: compose(order="pbs", backfill="depth", order_options=SHARES, backfill_options=options)


def maui_priorities(backfill: str) -> Callable[[], Policy]:
    """Return what makes a policy with Maui's priorities alone."""
    configured = parse_maui_config(busy_maui("NONE", "NEVER", "ALWAYS"))[0]
    return lambda: ComposedPolicy("m", MauiOrder(configured), make_backfill(backfill), make_placement("lowest"))


POLICIES: dict[str, Callable[[], Policy]] = {
    **{
        f"{order}-{backfill}-{placement}": composed(order, backfill, placement)
        for order in PARTS["order"]
        for backfill in PARTS["backfill"]
        for placement in ("lowest", "contiguous", "contiguous,fit=best")
    },
    **{name: lambda name=name: make_policy(name) for name in library()},  # type: ignore[misc]
    "poll-fcfs-easy": polling("fcfs", "easy", 2.5),
    "poll-pbs-depth": polling("pbs", "depth", 4.0),
    "poll-bins-conservative": polling("bins", "conservative", 3.0),
    "poll-maui": lambda: Polling(maui(busy_maui("FIRSTFIT", "CURRENTHIGHEST", "ALWAYS"))(), 5.0),
    "poll-slices": polling("sjf", "easy-slices", 2.5),
    "poll-fill": polling("fcfs", "fill", 2.5),
    "preempting-easy": lambda: preempting("fcfs", "easy", "lowest"),
    "preempting-conservative": lambda: preempting("sjf", "conservative", "lowest", ("grace", ("2",))),
    "preempting-slices": lambda: preempting("fcfs", "easy-slices", "contiguous", ("mode", ("checkpoint",))),
    "preempting-fill": lambda: preempting("pbs", "fill", "lowest", ("mode", ("cancel",)), ("exempt_time", "3")),
    "preempting-polls": lambda: preempting("fcfs", "easy", "lowest", ("grace", ("1",)), step=2.5),
    "recorded": lambda: make_policy("recorded"),
    "poll-recorded": lambda: Polling(make_policy("recorded"), 4.0),
    "shares-strict": shares(1, True),
    "shares-loose": shares(3, False),
    "maui-priorities-conservative": maui_priorities("conservative"),
    "maui-priorities-easy": maui_priorities("easy"),
    "maui-default": maui(),
    "maui-first": maui(busy_maui("FIRSTFIT", "CURRENTHIGHEST", "ALWAYS")),
    "maui-best": maui(busy_maui("BESTFIT", "HIGHEST", "QUEUEPOLICY")),
    "maui-greedy": maui(busy_maui("GREEDY", "CURRENTHIGHEST", "FULLPOLICY")),
    "maui-none": maui(busy_maui("NONE", "NEVER", "ALWAYS", depth=0)),
    "maui-contiguous": maui("BACKFILLPOLICY FIRSTFIT\nQUEUETIMEWEIGHT 1", "contiguous"),
    "maui-deferred": maui(
        "BACKFILLPOLICY BESTFIT\nRESERVATIONPOLICY HIGHEST\nDEFERTIME 7\n"
        "SRCFG[s] HOSTLIST=0-3 STARTTIME=0:00:10 ENDTIME=0:00:30 USERLIST=a\nUSERCFG[b] MAXNODE=2"
    ),
}
PLAIN = Platform(name="m", pools=(Pool(name="all", nodes=UNITS, names="n[1-6]", mttf="1h"),))
POOLS = Platform(
    name="m",
    pools=(
        Pool(name="a", nodes=1, units_per_node=2, unit="core"),
        Pool(name="b", nodes=4, prologue=1.5, epilogue=0.25),
    ),
)
CLASSES = Platform(
    name="m",
    pools=(Pool(name="a", nodes=3), Pool(name="b", nodes=3, prologue=0.5)),
    classes=(
        JobClass(name="x", max_nodes=4, max_nodes_per_user=3, prologue=1.0),
        JobClass(name="y", pools=("b",), priority=2.0),
        JobClass(name="z", max_walltime=8.0),
    ),
)
#: (submit, size, runtime, walltime, user, queue, job before, cancelled so long after its submission, -1 is never)
ROW = st.tuples(
    st.integers(0, 15),
    st.integers(1, UNITS),
    st.sampled_from([0.0, 1.0, 2.0, 3.0, 6.0, 9.0, 17.5]),
    st.sampled_from([1.0, 2.0, 4.0, 9.0, 20.0, inf]),
    st.sampled_from("abc"),
    st.sampled_from("xyzw"),
    st.integers(-9, 6),
    st.sampled_from([-1.0, -1.0, -1.0, -1.0, 0.0, 1.0, 3.0, 8.0]),
)
ROWS = st.integers(1, 20).flatmap(lambda jobs: st.lists(ROW, min_size=jobs, max_size=jobs))
RESILIENCES = st.builds(
    Resilience,
    kind=st.sampled_from(["none", "checkpoint", "spares", "moldable", "grid"]),
    interval=st.sampled_from([None, 2.0, 5.0, "young", "daly"]),
    dump=st.sampled_from([0.0, 0.5, 2.0]),
    read=st.sampled_from([0.0, 1.5]),
    share=st.sampled_from([None, 0.2, 0.6]),
)
MAINTENANCE = st.lists(
    st.sampled_from(
        [
            "@12 +6s 0-2",
            "@20 +3s all announced 10s",
            "@30 +5s 1 3 announced 30s",
            "@9 +2s 4",
            "@45 +4s 2-4 announced 40s",
        ]
    ),
    unique=True,
    max_size=2,
)


class Story(NamedTuple):
    """The inputs of a run, except for its policy."""

    platform: Platform
    workload: Workload
    reliability: Reliability


def outages_of(rows: list[tuple[int, int, int]], nodes: int) -> Outages:
    """Return outages that do not overlap: each begins so long after the end of the node's last."""
    end = [0.0] * nodes
    made = []
    for node, gap, length in rows:
        down = end[node % nodes] + gap
        end[node % nodes] = down + length
        made.append(Outage(node % nodes, down, down + length))
    return Outages.of(made)


@st.composite
def stories(draw: st.DrawFn) -> Story:
    """Draw a machine, its jobs, and what strikes them."""
    platform = draw(st.sampled_from([PLAIN, POOLS, CLASSES]))
    rows = sorted(draw(ROWS))
    columns = list(zip(*rows, strict=True))
    before = [max(0, row + min(of, 0)) if of else 0 for row, of in enumerate(columns[6])]
    workload = Workload(
        name="t",
        source="t",
        ids=[str(number + 1) for number in range(len(rows))],
        submit=np.array(columns[0], dtype=float),
        size=np.array(columns[1], dtype=np.int64),
        runtime=np.array(columns[2]),
        walltime=np.array(columns[3]),
        labels={
            "user": list(columns[4]),
            "queue": list(columns[5]),
            "account": ["p" if user == "a" else "q" for user in columns[4]],
        },
        columns={"preceding": np.array(before, dtype=np.int64)} if draw(st.booleans()) else {},
        measures={CANCELLED_AFTER: np.array(columns[7])} if draw(st.booleans()) else {},
    )
    nodes = platform.nodes
    outages = draw(st.lists(st.tuples(st.integers(0, nodes - 1), st.integers(1, 25), st.integers(1, 9)), max_size=6))
    rules = [parse_maintenance(text, platform, where="test", epoch=None, timezone=None) for text in draw(MAINTENANCE)]
    models, resilience = draw(st.booleans()), draw(RESILIENCES)
    if not (models or outages) and resilience.rates_matter:
        resilience = replace(resilience, interval=4.0)
    reliability = Reliability(
        failures=FailurePlan((Source(MODEL, range(nodes)),)) if models else None,
        seed=draw(st.integers(1, 99)),
        outages=outages_of(outages, nodes) if outages else None,
        maintenance=MaintenancePlan(tuple(rules)) if rules else None,
        resilience=resilience,
        requeue=draw(st.sampled_from(["original", "back", "never"])),
        max_attempts=draw(st.integers(1, 6)),
        restart_walltime=draw(st.sampled_from(["full", "rest"])),
        walltime=draw(st.sampled_from(["asked", "extended"])),
    )
    return Story(platform, workload, reliability)


class Left(Exception):
    """The run was left at a notice."""


def play(story: Story, policy: Policy, out: Path, between: Callable[[Pause], None], resume: Any = None) -> str:
    """Run, and return how it ended; raise SchedulerFailed if a scheduler is wrong, as no bundled one is."""
    try:
        with patch("pipistrelle.server.outages.failures.MAX_FRUITLESS", 30):  # not ten thousand outages without a job
            run_in_process(
                story.workload,
                policy,
                platform=story.platform,
                reliability=story.reliability,
                options=RunOptions(out=out, between=between, resume=resume),
            )
    except SchedulerFailed:
        raise
    except RunError as failure:
        return str(failure)
    return "completed"


def straight(story: Story, policy: Policy, out: Path) -> tuple[str, int]:
    """Run without a horizon, and return how it ended and after how many notices."""
    notices = [0]

    def check(pause: Pause) -> None:
        pause.check_invariants()
        notices[0] = pause.notices

    return play(story, policy, out, check), notices[0]
