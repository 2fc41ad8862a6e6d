"""Lists of node names as Slurm writes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.naming import hostlists
from pipistrelle.platforms.naming.hostlists import compressed, expanded
from pipistrelle.platforms.slurm.conf import read_slurm_conf
from pipistrelle.platforms.slurm.machine import slurm_platform

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


def test_the_lists_of_a_file_have_a_bound_together(monkeypatch):
    """A short line can name all nodes; a hundred thousand such lines are refused early."""
    monkeypatch.setattr(hostlists, "MOST_IN_FILE", 25)
    lines = "".join(f"PartitionName=p{one} Nodes={{}}\n" for one in range(3))
    nodes = "ClusterName=c\nNodeName=n[0-9] Feature=a\nNodeSet=s Feature=a\n"

    for named in ("n[0-9]", "ALL", "n1,ALL", "s"):
        with pytest.raises(PlatformError, match=r"f:6: the lists of the file have too many names"):
            slurm_platform(read_slurm_conf(nodes + lines.format(*[named] * 3), "f"))
    slurm_platform(read_slurm_conf(nodes + lines.format("n[0-9]", "ALL", "n[1-5]"), "f"))


def test_a_configuration_includes_a_bounded_number_of_files():
    """A file that includes another one again and again is refused early."""
    text = "ClusterName=c\n" + "Include a\n" * 1001

    with pytest.raises(PlatformError, match=r"f:1002: the file includes too many files.*at most 1,000"):
        read_slurm_conf(text, "f", lambda path, by: (path, "NodeName=n\n"))
