"""Constraints: their meaning, which pools satisfy them, and which cannot be parsed."""

import pytest

from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.requests.constraints import parse_constraint, why_unmet
from pipistrelle.protocol.events import PoolInfo

POOLS = (
    PoolInfo("cpu", "0-3", "0-3", properties={"rack": 1}),
    PoolInfo(
        "gpu",
        "4-5",
        "4-11",
        units_per_node=4,
        unit="gpu",
        node_class="xe9680",
        properties={"gpu_model": "a100", "nvlink": True, "memory_gb": 80, "load": 0.5, "features": "fast, ib"},
    ),
    PoolInfo("old", "6", "12-13", units_per_node=2, unit="gpu", properties={"gpu_model": "k80", "nvlink": False}),
)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("pool=cpu", ["cpu"]),
        ("unit=gpu", ["gpu", "old"]),
        ("class=xe9680", ["gpu"]),
        ("gpu_model=a100", ["gpu"]),
        (" gpu_model = a100 ", ["gpu"]),
        ("a100", ["gpu"]),
        ("old", ["old"]),
        ("xe9680", ["gpu"]),
        ("nvlink", ["gpu"]),
        ("nvlink=false", ["old"]),
        ("nvlink=true", ["gpu"]),
        ("memory_gb=80", ["gpu"]),
        ("memory_gb=80.0", ["gpu"]),
        ("memory_gb=8x", []),
        ("load=.5", ["gpu"]),
        ("rack=1", ["cpu"]),
        ("ib", ["gpu"]),
        ("fast&ib", ["gpu"]),
        ("a100|k80", ["gpu", "old"]),
        ("a100|k80&nvlink", ["gpu"]),
        ("(a100|k80)&unit=gpu&nvlink=false", ["old"]),
        ("cpu|(a100&(ib|slow))", ["cpu", "gpu"]),
        ("h100", []),
        ("unit=gpu&cpu", []),
    ],
)
def test_pools_that_meet_a_constraint(text: str, names: list[str]) -> None:
    """`&` binds before `|`; words are names, classes, properties and features, numbers are compared as such."""
    constraint = parse_constraint(text)

    assert [pool.name for pool in POOLS if constraint.met_by(pool)] == names


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "&", "a&", "|a", "a b", "a&&b", "(a", "a)", "()", "a=", "=a", "a=b=c", "[a|b]", "a*2", "a,b", "{a}"),
        *("(" * 60 + "a" + ")" * 60, "a" * 1001),
    ],
)
def test_constraints_that_cannot_be_read(text: str) -> None:
    """Each is rejected with the expected form; Slurm's counts and brackets are among them."""
    with pytest.raises(PlatformError, match=r"the constraint .*expected words, KEY=VALUE"):
        parse_constraint(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("h100", "no pool meets its constraint 'h100'"),
        ("nvlink&h100", "no pool meets its constraint 'nvlink&h100': none has 'h100'"),
        ("cpu&nvlink", "no pool meets its constraint 'cpu&nvlink'"),
        ("pool=gpus", "there is no pool 'gpus' for its constraint 'pool=gpus' (did you mean 'gpu'?)"),
        ("pool=x", "there is no pool 'x' for its constraint 'pool=x' (there are cpu, gpu, old)"),
    ],
)
def test_words_that_no_pool_has_are_reported(text: str, says: str) -> None:
    """An unknown pool is named with the closest one; any other word that no pool has is named alone."""
    assert why_unmet(parse_constraint(text), text, POOLS) == says
