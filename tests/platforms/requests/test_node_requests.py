"""Jobs' requests for nodes: whether a machine can satisfy them, and whether given units do."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.platforms.description import Platform, Pool
from pipistrelle.platforms.requests.node_counts import NodeCounts
from pipistrelle.platforms.requests.requests import NodeRequest, RequestBook
from pipistrelle.protocol.base.state import from_json, message_of, plain, to_json
from pipistrelle.protocol.units.indices import numbers, set_of
from pipistrelle.protocol.units.nodesets import NodeSet

#: units 0-1 are nodes of cpu, 2-9 two nodes of gpu, 10-13 two of old
ZEUS = Platform(
    name="zeus",
    pools=(
        Pool(name="cpu", nodes=2),
        Pool(name="gpu", nodes=2, units_per_node=4, unit="gpu"),
        Pool(name="old", nodes=2, units_per_node=2, unit="gpu"),
    ),
)
BOOK = RequestBook(ZEUS.info.pools)


@pytest.mark.parametrize(
    ("request_", "size", "says"),
    [
        (NodeRequest("pool=cpu"), 2, None),
        (NodeRequest("pool=cpu"), 3, "it asks for 3 units, constraint 'pool=cpu' has 2"),
        (NodeRequest("h100"), 1, "no pool meets its constraint 'h100'"),
        (NodeRequest("[a|b]"), 1, "the constraint cannot be read at '[': '[a|b]'"),
        (NodeRequest(units_per_node=4), 8, None),
        (NodeRequest(units_per_node=4), 7, None),
        (NodeRequest(units_per_node=4), 9, "it asks for 3 nodes with 4 units, the machine has 2"),
        (NodeRequest(units_per_node=8), 8, "it asks for 8 units a node, the nodes of the machine have 1 or 2 or 4"),
        (NodeRequest("unit=gpu", 2), 8, None),
        (NodeRequest("unit=gpu", 2), 9, "it asks for 5 nodes with 2 units, constraint 'unit=gpu' has 4"),
        (NodeRequest("unit=gpu", 2, True), 4, None),
        (NodeRequest("unit=gpu", 2, True), 6, "it asks for 3 nodes with 2 units, constraint 'unit=gpu' has 2"),
        (
            NodeRequest("unit=gpu", 3, True),
            3,
            "it asks for whole nodes of 3 units, the nodes of constraint 'unit=gpu' have 2 or 4",
        ),
    ],
)
def test_what_a_machine_does_not_have_is_said(request_: NodeRequest, size: int, says: str | None) -> None:
    """The message names what is missing: pools, units, nodes, or units per node."""
    assert BOOK.refusal(request_, size) == says


@pytest.mark.parametrize(
    ("request_", "size", "alloc", "says"),
    [
        (NodeRequest("pool=gpu"), 3, "2-3 7", None),
        (NodeRequest("pool=gpu"), 3, "1-2 10", "units of nodes that will not do, 1 10: it asks for constraint"),
        (NodeRequest(units_per_node=2), 4, "2-3 10-11", None),
        (NodeRequest(units_per_node=2), 4, "2-5", "4 units a node: it asks for 2 units a node"),
        (NodeRequest(units_per_node=2), 4, "0 2-4", "units of nodes that will not do, 0: it asks for 2 units a node"),
        (NodeRequest(units_per_node=2), 3, "2 10-11", None),
        (NodeRequest(units_per_node=2), 3, "2-4", "3 units a node"),
        (NodeRequest(units_per_node=2), 3, "2 6 10", "1 units a node"),
        (NodeRequest(units_per_node=2), 1, "4", None),
        (NodeRequest(units_per_node=2, whole_nodes=True), 4, "10-13", None),
        (NodeRequest(units_per_node=2, whole_nodes=True), 2, "2-3", "will not do, 2-3: it asks for 2 units a node, w"),
    ],
)
def test_units_that_are_not_as_a_job_asks(request_: NodeRequest, size: int, alloc: str, says: str | None) -> None:
    """Units on other nodes, and a wrong number per node, except on one node with the rest, are errors."""
    fault = BOOK.fault(request_, size, NodeSet.parse(alloc))

    assert fault is None if says is None else fault is not None and says in fault


def test_a_request_is_plain_in_a_state() -> None:
    """It survives JSON like the rest of a state."""
    asked = NodeRequest("a|b", 3, True)

    assert message_of(from_json(to_json(plain(asked)))) == asked


units = st.sets(st.integers(0, ZEUS.units - 1)).map(NodeSet.of)


@settings(deadline=None)
@given(units=units, data=st.data())
def test_units_by_node_agree_with_single_steps(units: NodeSet, data: st.DataObject) -> None:
    """Counts per node, and the lowest units of each, agree with a loop over all units."""
    counts = NodeCounts(ZEUS.info.pools)
    by_node: dict[int, list[int]] = {node: [] for node in range(6)}
    for unit in units:
        by_node[int(counts.node[unit])].append(unit)
    there = counts.of(units)

    assert there.tolist() == [len(by_node[node]) for node in range(6)]
    if units:
        wanted = [data.draw(st.integers(0, len(by_node[node]))) for node in range(6)]
        expected = [unit for node in range(6) for unit in by_node[node][: wanted[node]]]
        assert counts.take(units, np.array(wanted)) == NodeSet.of(expected)
        assert set_of(numbers(units)) == units


def test_what_is_refused_has_no_units_and_what_is_not_has_some() -> None:
    """`refusal` is None exactly if some set of units of that size is valid, by trying all sets."""
    book = RequestBook(SMALL.info.pools)
    for each in (None, 1, 2, 3):
        for whole in (False, True) if each else (False,):
            for size in range(1, SMALL.units + 1):
                if whole and size % (each or 1):
                    continue
                asked = NodeRequest(None, each, whole)
                some = any(
                    book.fault(asked, size, NodeSet.of(chosen)) is None
                    for chosen in combinations(range(SMALL.units), size)
                )
                assert some == (book.refusal(asked, size) is None), (asked, size)


SMALL = Platform(
    name="small",
    pools=(
        Pool(name="a", nodes=1),
        Pool(name="b", nodes=2, units_per_node=2, unit="gpu"),
        Pool(name="c", nodes=1, units_per_node=3, unit="gpu"),
    ),
)
