"""Batsim's hosts: what clients learn of nodes and pools, and what our server sends."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from pipistrelle.platforms.description import Platform, Pool
from pipistrelle.protocol.batsim.messages import BatsimBeginsData
from pipistrelle.protocol.events import PoolInfo, SimulationBeginsData
from pipistrelle.schedulers.wire.batsim.hosts import platform_of
from pipistrelle.server.batsim.engine import batsim_begins
from pipistrelle.server.setup.setup import BatsimOptions, Setup
from pipistrelle.traces.batsim.workload import parse_batsim

JOBS = b'{"jobs": [{"id": "1", "subtime": 0, "res": 1, "walltime": 9, "profile": "d"%s}], \
"profiles": {"d": {"type": "delay", "delay": 5}}}'


def begins(platform: Platform, asks: bool = True) -> BatsimBeginsData:
    """Return what Batsim's clients receive for a machine whose one job requests nodes, or not."""
    workload = parse_batsim(JOBS % (b', "constraint": "pool=p0"' if asks else b""), "w.json")
    return batsim_begins(Setup.of(platform, workload, batsim=BatsimOptions()), BatsimOptions())


values = st.sampled_from([True, False, 80, 0.5, "a100", "true blue"])
pools = st.lists(
    st.builds(
        lambda nodes, each, properties, kind: Pool(
            name="p",
            nodes=nodes,
            units_per_node=each,
            unit="gpu" if each > 1 else "node",
            properties=properties,
            **({"node_class": kind} if kind else {}),
        ),
        st.integers(1, 3),
        st.integers(1, 3),
        st.dictionaries(st.sampled_from(["model", "nvlink", "memory"]), values, max_size=2),
        st.sampled_from(["", "xe"]),
    ),
    min_size=1,
    max_size=4,
).map(lambda some: tuple(structs.replace(pool, name=f"p{number}") for number, pool in enumerate(some)))


@settings(max_examples=60, deadline=None)
@given(pools=pools)
def test_hosts_tell_the_pools_of_a_machine(pools: tuple[Pool, ...]) -> None:
    """A scheduler that receives hosts gets exactly the pools of the platform's file."""
    platform = Platform(name="m", pools=pools)
    told = platform_of(begins(platform))

    assert told is not None
    assert [structs.replace(pool, names="") for pool in told.pools] == list(platform.info.pools)


def test_hosts_tell_nothing_of_pools_where_no_job_asks() -> None:
    """Their properties are the same as without requests."""
    platform = Platform(
        name="m", pools=(Pool(name="p0", nodes=1, units_per_node=2, unit="gpu"), Pool(name="b", nodes=1))
    )

    assert [host["properties"] for host in begins(platform, asks=False).compute_resources] == [{"role": ""}] * 3
    assert begins(platform).compute_resources[1]["properties"] == {
        "role": "",
        "pool": "p0",
        "unit": "gpu",
        "node": "0",
    }


def hosts(*told: dict[str, Any]) -> SimulationBeginsData:
    """Return what hosts with such properties tell."""
    resources = [{"id": at, "name": f"h{at}", "state": "idle", **one} for at, one in enumerate(told)]
    return BatsimBeginsData(nb_resources=len(told), nb_compute_resources=len(told), compute_resources=resources)


@pytest.mark.parametrize(
    ("told", "pools"),
    [
        ([{}, {}], [PoolInfo("hosts", "0-1", "0-1", names="h[0-1]")]),
        ([{"properties": {"role": ""}}] * 2, [PoolInfo("hosts", "0-1", "0-1", names="h[0-1]")]),
        (
            [{"properties": {"gpu": "a100"}}, {"zone_properties": {"gpu": "a100"}}, {"properties": {"nvlink": "true"}}],
            [
                PoolInfo("hosts-0", "0-1", "0-1", properties={"gpu": "a100"}, names="h[0-1]"),
                PoolInfo("hosts-1", "2", "2", properties={"nvlink": "true"}, names="h2"),
            ],
        ),
        (
            [{"properties": {"node": "x", "pool": "g", "nvlink": "true"}}] * 2,
            [PoolInfo("g", "0", "0-1", 2, properties={"nvlink": True}, names="x")],
        ),
        ([{"properties": None}, {"properties": [1]}], [PoolInfo("hosts", "0-1", "0-1", names="h[0-1]")]),
    ],
)
def test_pools_of_any_batsims_hosts(told: list[dict[str, Any]], pools: list[PoolInfo]) -> None:
    """Neighbours that tell the same are a pool, of nodes of one unit unless they name their node."""
    found = platform_of(hosts(*told))

    assert found is not None
    assert list(found.pools) == pools


def test_hosts_that_tell_nothing() -> None:
    """Without names and properties, or without hosts, nothing is known."""
    assert platform_of(hosts({"name": "a"}, {"name": "a"})) is None
    assert platform_of(SimulationBeginsData(2)) is None
