"""Small simulations with most features, into which malformed frames are injected."""

from dataclasses import replace
from math import inf

import numpy as np

from pipistrelle.platforms.classes import JobClass
from pipistrelle.platforms.description import Platform, Pool
from pipistrelle.platforms.naming.rule import TopologyRule
from pipistrelle.platforms.simgrid.platform_file import SimGridPlatform, parse_simgrid
from pipistrelle.runs.description.reliability import load_reliability
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.server.setup.setup import BatsimOptions, Setup
from pipistrelle.traces.batsim.workload import parse_batsim
from pipistrelle.traces.requests import with_requests
from pipistrelle.traces.workload import CANCELLED_AFTER, NODE_LIST, Workload

JOBS = 24
_SPEED = "100f,50f,1e-3f,0.2f,0.5f"
_WATTS = "90:100:200, 80:85:150, 9:9:9, 50:50:50, 70:70:70"
_PROFILES = """{
  "each": {"type": "parallel_homogeneous", "cpu": 300, "com": 0},
  "total": {"type": "parallel_homogeneous_total", "cpu": 500, "com": 0, "ret": 2},
  "wait": {"type": "delay", "delay": 4},
  "both": {"type": "composed", "repeat": 2, "seq": ["each", "wait"]}}"""


def platform(rich: bool) -> Platform:
    """Return a platform of 12 nodes in one pool, or a ``rich`` one.

    The rich platform has two pools, node names, job classes and a torus.
    """
    if not rich:
        return Platform(name="plain", pools=(Pool(name="all", nodes=12, mttf="2h"),))
    return Platform(
        name="rich",
        pools=(
            Pool(name="a", nodes=8, names="n[1-8]", mttf="1h", age="1y", properties={"gpu": "a100"}),
            Pool(
                name="b", nodes=4, units_per_node=2, unit="core", names="m[1-4]", mttf="2h", prologue=1.0, epilogue=0.5
            ),
        ),
        classes=(JobClass(name="x", max_nodes=4, max_nodes_per_user=3), JobClass(name="y", pools=("b",), priority=2.0)),
        topology=TopologyRule(kind="torus", shape=(3, 2, 2), names=""),
    )


def workload(rich: bool) -> Workload:
    """Return 24 jobs of 1 to 8 units.

    In the ``rich`` workload some jobs require a node property or two units per node, and some are cancelled. It also
    records the real wait of most jobs and the real nodes of some.
    """
    number = np.arange(JOBS)
    cancelled = np.where(number % 7 == 3, number % 4 * 3.0, -1.0)
    measures = {
        CANCELLED_AFTER: cancelled,
        "wait": np.where((cancelled < 0) & (number % 6 < 5), number % 4 * 2.0, -1.0),
    }
    ran_on = {NODE_LIST: [f"n[1-{one * 5 % 8 + 1}]" if one % 2 else "" for one in number]}
    labels = {"user": [f"u{one % 3}" for one in number], "queue": [("x", "y", "z")[one % 3] for one in number]}
    trace = Workload(
        name="t",
        source="t",
        ids=[str(one + 1) for one in number],
        submit=(number // 2 * 3).astype(np.float64),
        size=(number * 5 % 8 + 1).astype(np.int64),
        walltime=np.where(number % 5 == 4, np.inf, 5.0 + number % 7 * 4),
        runtime=(number % 9 * 3 + 1).astype(np.float64),
        labels={**labels, **ran_on} if rich else labels,
        measures=measures if rich else {},
    )
    if not rich:
        return trace
    return with_requests(
        trace,
        constraint=["gpu=a100" if one % 6 == 0 else "" for one in number],
        per_node=np.where(number % 6 == 1, 2, -1).astype(np.int64),
        whole=np.zeros(JOBS, np.int64),
    )


def native(rich: bool, until: float = inf) -> Setup:
    """Return the setup of a run in the native dialect that stops at ``until`` (s).

    The ``rich`` run also has node failures and maintenance.
    """
    machine, trace = platform(rich), workload(rich)
    if not rich:
        return replace(Setup.of(machine, trace), until=until)
    spec = RunSpec(failures=("exponential,mtbf=200s",), repair="8s", maintenance=("@20s +10s all",), max_attempts=3)
    return replace(Setup.of(machine, trace, reliability=load_reliability(spec, machine, trace)), until=until)


def hosts() -> SimGridPlatform:
    """Return a SimGrid platform of six hosts.

    The hosts have speeds, power states and power consumption.
    """
    props = f'<prop id="wattage_per_state" value="{_WATTS}"/><prop id="sleep_pstates" value="2:3:4"/>'
    some = "".join(f'<host id="h{one}" speed="{_SPEED}">{props}</host>' for one in range(6))
    text = f'<zone id="z" routing="None"><host id="master_host" speed="1f"/>{some}</zone>'
    return parse_simgrid(f'<platform version="4.1">{text}</platform>', "machine.xml")


def batsim(rich: bool) -> Setup:
    """Return the setup of a run in Batsim's dialect.

    ``rich`` enables dynamic jobs, profiles and energy.
    """
    jobs = ", ".join(
        f'{{"id": "{one}", "subtime": {one // 2 * 3}, "res": {one % 6 + 1}, "walltime": {8 + one % 5 * 6}, '
        f'"profile": "{("each", "both", "wait", "total")[one % 4]}"}}'
        for one in range(JOBS)
    )
    text = f'{{"nb_res": 6, "jobs": [{jobs}], "profiles": {_PROFILES}}}'
    options = BatsimOptions(
        dynamic_jobs=rich,
        acknowledge_dynamic_jobs=rich,
        profile_reuse=rich,
        forward_profiles=rich,
        forward_unknown_events=rich,
        energy=rich,
    )
    return Setup.of(hosts(), parse_batsim(text.encode(), "jobs.json"), batsim=options)
