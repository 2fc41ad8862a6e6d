"""Lists of node names as Slurm writes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.naming.hostlists import compressed, expanded

FORMS = [
    ("n[01-02,05],g1", ["n01", "n02", "n05", "g1"], "g1,n[01-02,05]"),
    ("n[8-12]", ["n8", "n9", "n10", "n11", "n12"], "n[8-12]"),
    ("n9,n09,n10", ["n9", "n09", "n10"], "n[9,09-10]"),
    ("login", ["login"], "login"),
    ("c[0-1]s[3-4]", ["c0s3", "c0s4", "c1s3", "c1s4"], "c0s[3-4],c1s[3-4]"),
    ("r1-n[1-2]x", ["r1-n1x", "r1-n2x"], "r1-n1x,r1-n2x"),
    ("n007", ["n007"], "n007"),
]


@pytest.mark.parametrize(("text", "names", "short"), FORMS)
def test_a_list_is_written_out_and_compressed(text, names, short):
    """Ranges, padding, several ranges in one name, and names without numbers."""
    assert names == expanded(text, "x")
    assert short == compressed(names)


@pytest.mark.parametrize("text", ["n[1-", "n[3-1]", "n[a-b]", "n[1-2]]", "n1,,n2", "n[0-999999999]", "n[]"])
def test_a_malformed_list_is_one_message(text):
    """The place and the list are in the message."""
    with pytest.raises(PlatformError, match=r"slurm.conf:7"):
        expanded(text, "slurm.conf:7")


def test_a_product_of_ranges_is_bounded():
    """Three ranges of a thousand would be a billion names."""
    with pytest.raises(PlatformError, match="too many"):
        expanded("a[0-999]b[0-999]c[0-999]", "x")


@given(st.sets(st.tuples(st.sampled_from("ng"), st.integers(0, 1200), st.integers(1, 4)), min_size=1, max_size=60))
def test_compressing_loses_no_name(numbers):
    """What is compressed gives the same set of names again."""
    names = {f"{head}{number:0{width}}" for head, number, width in numbers}

    assert names == set(expanded(compressed(names), "x"))
