"""Constraints on nodes whose group overrides a property of their pool."""

from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.platforms.description import NodeGroup, Platform, Pool
from pipistrelle.platforms.requests.requests import NodeRequest, RequestBook, kinds_of
from pipistrelle.platforms.topology.nodes import NodeTable
from pipistrelle.protocol.units.nodesets import NodeSet


def test_a_constraint_finds_nodes_by_what_their_group_says() -> None:
    """Such nodes keep the pool's other properties but have the group's value; pools without groups stay whole."""
    platform = Platform(
        name="m",
        pools=(
            Pool(name="gpu", nodes=4, units_per_node=2, unit="gpu", properties={"gpu_model": "k20x"}),
            Pool(name="cpu", nodes=2),
        ),
        groups=(
            NodeGroup(nodes="1 3", properties={"gpu_model": "v100"}),
            NodeGroup(nodes="2-3", node_class="new", mttf=9),
            NodeGroup(nodes="4", age=5),
        ),
    )
    book = RequestBook(platform.info.pools, platform.info.groups)

    def units(text: str) -> str:
        return str(book.allowed(NodeRequest(text)))

    assert [units(text) for text in ("gpu_model=k20x", "v100", "class=new", "new&v100", "pool=gpu", "pool=cpu")] == [
        *("0-1 4-5", "2-3 6-7", "4-7", "6-7", "0-7", "8-9"),
    ]
    assert book.refusal(NodeRequest("v100", 2), 6) == "it asks for 3 nodes with 2 units, constraint 'v100' has 2"
    assert book.refusal(NodeRequest("pool=cpus"), 1) == (
        "there is no pool 'cpus' for its constraint 'pool=cpus' (did you mean 'cpu'?)"
    )
    assert book.fault(NodeRequest("v100"), 2, NodeSet.parse("2 4")) is not None


@settings(deadline=None, max_examples=60)
@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    groups=st.lists(
        st.tuples(st.sets(st.integers(0, 11)), st.sampled_from(["", "a", "b"]), st.sampled_from([None, 1, 2]))
    ),
)
def test_kinds_say_of_each_node_what_the_table_says(
    sizes: list[int], groups: list[tuple[set[int], str, int | None]]
) -> None:
    """Each node is in one kind, with its pool, class and properties."""
    pools = tuple(Pool(name=f"p{number}", nodes=size) for number, size in enumerate(sizes))
    mine = [(sorted(node for node in some if node < sum(sizes)), name, value) for some, name, value in groups]
    told = tuple(
        NodeGroup(
            nodes=str(NodeSet.of(some)),
            **({"node_class": name} if name else {}),
            properties={} if value is None else {"cage": value},
        )
        for some, name, value in mine
        if some
    )
    platform = Platform(name="m", pools=pools, groups=told)
    table = NodeTable.of(platform.info)
    kinds = kinds_of(platform.info.pools, platform.info.groups)
    of_node = {node: kind for kind in kinds for node in NodeSet.parse(kind.nodes)}

    assert sum(len(NodeSet.parse(kind.units)) for kind in kinds) == len(of_node) == len(table)
    for node, kind in of_node.items():
        assert kind.name == table.pools[table.pool[node]]
        assert kind.node_class == table.classes[table.node_class[node]]
    for value, some in table.with_property("cage").items():
        assert some == NodeSet.of(node for node, kind in of_node.items() if kind.properties.get("cage") == value)
