"""Tables of nodes from files, by a platform's file and by the command line."""

from pathlib import Path

import pytest

from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.node_rows import with_node_rows
from pipistrelle.platforms.topology.nodes import NodeTable
from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.runs.description.setup import load_setup
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.inputs.named import load_platform
from pipistrelle.runs.inputs.node_table import load_node_rows

CSV = """name,class,mttf,installed,gpu_model,slot,spare
n1,old,100h,2014-05-01,k20x,1,true
n3,new,,2017-04-30 12:00,v100,2.5,
"""
LIVES = """SN,location,insert,remove,duration,out,event
1,n1,2014-01-01 00:00:00,2017-06-01 00:00:00,107654400,TRUE,DBE
2,n2,2014-01-01 00:00:00,2017-01-01 00:00:00,94694400,FALSE,
2,n3,2017-03-01 00:00:00,2019-01-01 00:00:00,57974400,FALSE,
3,n2,2017-04-01 00:00:00,2019-01-01 00:00:00,55296000,FALSE,
4,n2,2017-04-02 00:00:00,2019-01-01 00:00:00,55209600,FALSE,
"""
PLATFORM = 'name = "m"\npools = [{ name = "all", nodes = 4, names = "n[1-4]" }]\n'
DAY = 86_400.0


@pytest.fixture
def platform(tmp_path: Path) -> str:
    """Return the name of a platform's file."""
    (tmp_path / "m.toml").write_text(PLATFORM)
    return str(tmp_path / "m.toml")


def table_of(platform: str, text: str) -> NodeTable:
    """Return the table of a platform's nodes with the values of a file."""
    return NodeTable.of(with_node_rows(load_platform(platform), load_node_rows(text)).info)


def test_a_csv_table(tmp_path: Path, platform: str) -> None:
    """Own columns are facts, others properties; an installation's date gives the age at time 0."""
    (tmp_path / "a,at=b.csv").write_text(CSV)
    nodes = table_of(platform, f"{tmp_path}/a,at=b.csv,at=2017-05-01")

    assert [nodes.classes[one] for one in nodes.node_class] == ["old", "", "new", ""]
    assert (nodes.age[0], nodes.age[2], nodes.mttf[0]) == (1096 * DAY, DAY / 2, 360_000.0)
    for key, said in (("slot", {1: "0", 2.5: "2"}), ("spare", {True: "0"}), ("gpu_model", {"k20x": "0", "v100": "2"})):
        assert {value: str(some) for value, some in nodes.with_property(key).items()} == said


def test_a_toml_table(tmp_path: Path, platform: str) -> None:
    """The same keys, and dates without quotes."""
    (tmp_path / "t.toml").write_text(
        '[[nodes]]\nname = "n2"\nclass = "new"\ninstalled = 2017-04-30\nrack = 7\n[[nodes]]\nname = "n4"\nmttf = 9\n'
    )
    nodes = table_of(platform, f"{tmp_path}/t.toml,at=2017-05-01")

    assert (nodes.age[1], nodes.mttf[3]) == (DAY, 9.0)
    assert {value: str(some) for value, some in nodes.with_property("rack").items()} == {7: "1"}


def test_lives_at_a_date(tmp_path: Path, platform: str) -> None:
    """A GPU is present from insert to remove (the later of two); age is time in place; classes are batches."""
    (tmp_path / "lives.csv").write_text(LIVES)
    nodes = table_of(platform, f"{tmp_path}/lives.csv,at=2017-05-01")

    assert [nodes.classes[one] for one in nodes.node_class] == ["old", "new", "old", ""]
    assert nodes.age[:3].tolist() == [1216 * DAY, 29 * DAY, (1096 + 61) * DAY]


def test_a_platforms_file_names_its_table(tmp_path: Path, platform: str) -> None:
    """Relative to the platform's own folder."""
    (tmp_path / "lives.csv").write_text(LIVES)
    Path(platform).write_text('node_table = "lives.csv,at=2017-05-01"\n' + PLATFORM)

    found = load_platform(platform)
    assert [(group.nodes, group.node_class) for group in found.info.groups if group.node_class] == [
        *(("0 2", "old"), ("1", "new")),
    ]
    assert load_setup(RunSpec(platform=platform, workload=("demo",))).platform == found


def test_a_run_takes_a_table(tmp_path: Path, platform: str) -> None:
    """As the option says; its file is one of the run's inputs."""
    (tmp_path / "n.csv").write_text("name,class\nn1,new\n")
    spec = RunSpec(platform=platform, workload=("demo",), node_table=f"{tmp_path}/n.csv")

    assert [group.node_class for group in load_setup(spec).platform.info.groups] == ["new"]
    assert f"{tmp_path}/n.csv" in spec.inputs
    with pytest.raises(PipistrelleError, match=r"n\.csv, line 2: a table of nodes does not match"):
        load_setup(RunSpec(platform="intrepid", workload=("demo",), node_table=f"{tmp_path}/n.csv"))


@pytest.mark.parametrize(
    ("name", "text", "at", "says"),
    [
        ("a.csv", "class\nnew\n", "", "a.csv, line 2: a row names no node"),
        ("a.csv", "name,age,installed\nn1,5,2017-01-01\n", "", "an age and a date of installation"),
        ("a.csv", "name,installed\nn1,2017-01-01\n", "", "a date of installation needs the date of time 0"),
        ("a.csv", "name,installed\nn1,2017-01-02\n", ",at=2017-01-01", "a node was installed after time 0"),
        ("a.csv", "name,installed\nn1,soon\n", ",at=2017-01-01", "line 2, installed: a date cannot be read"),
        ("a.csv", "name\nn1\n", ",at=now", "a date cannot be read: expected a date, such as 2017-05-01"),
        (
            "a.csv",
            LIVES,
            "",
            "a table of GPU lives needs a date, to select those in service: expected a.csv,at=2017-05-01",
        ),
        ("a.csv", "name,class\nn1\n", "", "line 2"),
        ("a.toml", "nodes = 3\n", "", "this is not a table of nodes"),
        ("a.toml", "[[nodes]]\nname = 'n1'\nx = []\n", "", r"nodes\[0\].x: a value of the wrong type"),
        ("a.toml", "[[nodes]]\nname = 'n1'\nage = true\n", "", r"nodes\[0\], age: a time is malformed"),
        ("a.toml", "nodes", "", "this is not TOML"),
    ],
)
def test_tables_that_cannot_be_read(tmp_path: Path, name: str, text: str, at: str, says: str) -> None:
    """Each is refused by file and line."""
    (tmp_path / name).write_text(text)
    with pytest.raises(PipistrelleError, match=says):
        load_node_rows(name + at, str(tmp_path))


def test_a_text_alone_cannot_read_a_table() -> None:
    """Files are the caller's business."""
    from pipistrelle.platforms.read import parse_platform

    with pytest.raises(PlatformError, match="node_table: a table of nodes cannot be read here"):
        parse_platform('node_table = "x.csv"\n' + PLATFORM, "m.toml")
    with pytest.raises(PlatformError, match="node_table: a value of the wrong type"):
        parse_platform("node_table = 3\n" + PLATFORM, "m.toml", lambda _: [])


@pytest.mark.slow
@pytest.mark.parametrize(("date", "stable", "known"), [("2017-05-01", 8_434, 18_578), ("2017-08-01", 8_881, 18_069)])
def test_titans_stable_gpus(traces_dir: Path, date: str, stable: int, known: int) -> None:
    """The number equals that of the lifetimes; the paper's simulation had 8,500, its Table II 9,500."""
    path = next(traces_dir.glob("Titan-GPU-lives*"))
    nodes = table_of("titan", f"{path},at={date}")

    assert nodes.stable is not None
    assert (int(nodes.stable.sum()), int((nodes.node_class > 0).sum())) == (stable, known)
