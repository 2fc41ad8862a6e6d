"""The library of machines, and the manual's page on it."""

import gzip
import re
import subprocess
import sys
from itertools import dropwhile, takewhile

import pytest

from pipistrelle.platforms import catalogue, description
from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.naming.rule import TopologyRule
from pipistrelle.platforms.read import parse_platform, to_toml
from pipistrelle.protocol.units.nodesets import NodeSet

SIZES = {
    "curie": (5544, 93_312),
    "demo": (256, 256),
    "grizzly": (1490, 1490),
    "hpc2n": (120, 240),
    "intrepid": (40_960, 40_960),
    "kth-sp2": (100, 100),
    "salomon": (1008, 1008),
    "seven-jobs": (4, 4),
    "summit-like": (4608, 27_648),
    "theta": (4360, 4360),
    "tiny": (4, 4),
    "titan": (18_688, 18_688),
}


def test_the_library_holds_these_machines():
    """Names are in alphabetical order."""
    assert catalogue.names() == tuple(SIZES)


@pytest.mark.parametrize(("name", "size"), SIZES.items())
def test_a_machine_of_the_library(name, size):
    """Each has the size its source gives, its file's name, a description and a source, and survives writing."""
    platform = catalogue.get(name)

    assert (platform.nodes, platform.units) == size
    assert platform.name == name
    assert platform.description
    assert platform.source
    assert parse_platform(to_toml(platform), name) == platform
    assert catalogue.describe(name).startswith(f"{platform.description} (")
    assert "\n" not in catalogue.describe(name)


def test_the_line_on_a_machine():
    """Units are named where they are not the nodes."""
    assert catalogue.describe("tiny").endswith(" (4 nodes)")
    assert catalogue.describe("hpc2n").endswith(" (120 nodes, 240 units)")


def test_the_pools_of_curie():
    """The three kinds of nodes have the cores that the log's header gives."""
    groups = catalogue.get("curie").info.pools

    assert [(group.name, group.units, group.nodes) for group in groups] == [
        ("thin", "0-80639", "0-5039"),
        ("fat", "80640-92159", "5040-5399"),
        ("hybrid", "92160-93311", "5400-5543"),
    ]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("kth", "the library has no platform 'kth'. Did you mean 'kth-sp2'?"),
        ("frontier", "the library has no platform 'frontier'. Known: curie, demo, grizzly"),
        ("Curie", "the library has no platform 'Curie'. Did you mean 'curie'?"),
        ("../read", "the library has no platform '../read'."),
        ("", "the library has no platform ''."),
    ],
)
def test_an_unknown_machine_is_refused(name, message):
    """An unknown name raises `PlatformError` with a suggestion."""
    for ask in (catalogue.get, catalogue.describe):
        with pytest.raises(PlatformError) as caught:
            ask(name)
        assert message in str(caught.value)


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("KTH-SP2-1996-2.1-cln.swf.gz", "kth-sp2"),
        ("HPC2N-2002-2.2-cln.swf.gz", "hpc2n"),
        ("CEA-Curie-2011-2.1-cln.swf.gz", "curie"),
        ("ALCF-Theta-2022.swf.gz", "theta"),
        ("LANL-Grizzly-2018-01.swf", "grizzly"),
    ],
)
def test_sizes_are_those_of_the_logs(traces_dir, file, name):
    """The units of a machine are the processors in the header of its log."""
    path = traces_dir / file
    with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as log:
        procs = next(int(line.split(b":")[1]) for line in log if line.startswith(b"; MaxProcs"))

    assert catalogue.get(name).units == procs


@pytest.fixture(scope="module")
def manual(project_root):
    """Return the text of the manual's page."""
    return (project_root / "docs" / "reference" / "platforms.md").read_text(encoding="utf-8")


def rows_after(manual, heading):
    """Return the cells of the first table after a line, without its heading rows."""
    lines = iter(manual.partition(heading)[2].splitlines())
    table = takewhile(lambda line: line.startswith("|"), dropwhile(lambda line: not line.startswith("|"), lines))
    return [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in table][2:]


def test_the_manual_lists_the_library(manual):
    """The table of machines is the library, name by name, size by size."""
    library = [[name, str(p.nodes), str(p.units), p.description] for name in SIZES for p in [catalogue.get(name)]]

    assert rows_after(manual, "## The library") == library


def test_the_manual_lists_every_key(manual):
    """The tables of keys are the fields of a platform and of its parts."""
    keys = [row[0] for row in rows_after(manual, "At the top:")]
    assert keys == [*description.Platform.__struct_fields__, "node_table"]
    topology = rows_after(manual, "In the `[topology]` table:")
    assert [row[0] for row in topology] == list(TopologyRule.__struct_fields__)
    assert [row[0] for row in rows_after(manual, "In each `[[pools]]` table:")] == list(
        description.Pool.__struct_fields__
    )
    failing = rows_after(manual, "In each `[[failures]]` table:")
    assert [row[0] for row in failing] == list(description.Failing.__struct_fields__)
    classes = rows_after(manual, "Each `[[classes]]` table gives the limits of one queue, with these keys:")
    assert [row[0] for row in classes] == list(description.JobClass.__struct_fields__)


def test_the_manual_states_the_limits(manual):
    """The limits in the text are those in the code."""
    assert f"{description.MOST_UNITS:,} schedulable units" in manual
    assert f"1 to {description._LONGEST_NAME} ASCII letters" in manual
    assert f"1 to {description._LONGEST_TITLE} printable characters" in manual


def test_the_manuals_machine_is_read(manual):
    """The TOML of the manual's first example is valid and describes the machine in the text."""
    zeus = parse_platform(re.search(r"```toml\n(.*?)```", manual, re.DOTALL)[1], "manual")

    assert [(group.nodes, group.units) for group in zeus.info.pools] == [("0-95", "0-95"), ("96-103", "96-127")]


def test_the_manuals_code_runs(manual):
    """Each Python block runs on its own."""
    blocks = re.findall(r"```python\n(.*?)```", manual, re.DOTALL)
    assert len(blocks) == 3
    for block in blocks:
        done = subprocess.run([sys.executable, "-c", block], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


def test_salomon_is_that_of_its_resource_trace():
    """Nodes of each class: qlong has all nodes without coprocessors, qmic those with, but for two of qexp alone."""
    salomon = catalogue.get("salomon")
    nodes = {one.name: len(NodeSet.parse(one.units)) for one in salomon.info.classes}
    every = {"qexp": 1008, "SERVICE": 1008, **dict.fromkeys(("qprod", "qmpp", "qfree", "qprace"), 1006)}

    assert nodes == {**every, "qlong": 576, "qmic": 430}
    assert sum(pool.nodes for pool in salomon.pools if "coprocessors_per_node" in pool.properties) == 432
