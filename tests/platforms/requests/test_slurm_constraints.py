"""Slurm's brackets and counts: the equivalent plain constraint, checked for all choices of nodes; or a rejection."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.requests.constraints import FeatureCount, OneOf, Several, Word, parse_constraint, read_slurm
from pipistrelle.platforms.requests.slurm_constraints import plain_constraint
from pipistrelle.protocol.events import PoolInfo

#: nodes 0-1 have a, 2 a and b, 3-5 b, 6 c
KINDS = tuple(
    PoolInfo(name, nodes, nodes, properties={"features": features})
    for name, nodes, features in (
        ("p", "0-1", "a,all"),
        ("q", "2", "a,b,all"),
        ("r", "3-5", "b,all"),
        ("s", "6", "c,all"),
    )
)
NODES = {
    node: kind for kind in KINDS for node in range(7) if str(node) in kind.nodes or (kind.nodes == "3-5" and node == 4)
}
WORDS = st.sampled_from(["a", "b", "c", "all", "none"])


@pytest.mark.parametrize(
    ("text", "nodes", "plain"),
    [
        ("a&b|c", 3, "a&b|c"),
        ("[a]", None, "a"),
        ("[a|b]", 1, "a|b"),
        ("[a|b]", 4, "b"),
        ("[a|c]", 2, "a"),
        ("[a|all]", 2, "all"),
        ("[none|a|c]", 3, "a"),
        ("a*3", 3, "a"),
        ("all*2", 3, "all"),
        ("[a*2]", 2, "a"),
        ("[a*2|b*2|c*2]&all", 4, None),
        ("[a|b]", 2, None),
        ("[a|b]", None, None),
        ("[a|b]", 9, None),
        ("a*2", 3, None),
        ("a*4", 3, None),
        ("a*2", None, None),
        ("a*2|b", 2, None),
        ("[a|b]|c", 1, None),
        ("pool=q*1&b", 1, "pool=q&b"),
        ("[a|b]&(b|c)", 4, "b&(b|c)"),
    ],
)
def test_equivalent_plain_constraints(text: str, nodes: int | None, plain: str | None) -> None:
    """Or there is no equivalent."""
    if plain is None:
        with pytest.raises(PlatformError, match=r"the constraint (counts|wants|has)"):
            plain_constraint(text, nodes, KINDS)
    else:
        assert plain_constraint(text, nodes, KINDS) == plain


@pytest.mark.parametrize(
    "text", ["[a", "[a]]", "[]", "[a|]", "a*", "a*0", "*2", "a*x", "a=*2", "[a|b", "a*2*2", "pool=a*"]
)
def test_unsupported_constraints_are_rejected(text: str) -> None:
    """Each is rejected with the expected form."""
    with pytest.raises(PlatformError, match=r"the constraint .*expected words"):
        plain_constraint(text, 2, KINDS)


def allows(part: Word | Several | FeatureCount | OneOf, nodes: tuple[int, ...]) -> bool:
    """Return whether a job may have these nodes according to Slurm's manual."""
    if isinstance(part, FeatureCount):
        return sum(part.word.met_by(NODES[node]) for node in nodes) >= part.count
    if isinstance(part, OneOf):
        return any(allows(one, nodes) for one in part.parts)
    if isinstance(part, Several) and part.every:
        return all(allows(one, nodes) for one in part.parts)
    return all(part.met_by(NODES[node]) for node in nodes)


@given(
    lists=st.lists(st.lists(WORDS, min_size=1, max_size=3), min_size=1, max_size=2),
    count=st.none() | st.tuples(WORDS, st.integers(1, 4)),
    nodes=st.integers(1, 5),
)
def test_equivalent_constraints_accept_the_same_nodes(
    lists: list[list[str]], count: tuple[str, int] | None, nodes: int
) -> None:
    """For any set of that many nodes the plain constraint gives the same result."""
    parts = [f"[{'|'.join(words)}]" for words in lists] + ([] if count is None else [f"{count[0]}*{count[1]}"])
    text = "&".join(parts)
    try:
        plain = parse_constraint(plain_constraint(text, nodes, KINDS))
    except PlatformError:
        return
    asked = read_slurm(text)
    for some in combinations(range(7), nodes):
        assert all(plain.met_by(NODES[node]) for node in some) == allows(asked, some)
