"""Platforms and workloads as a user names them."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipistrelle.platforms import catalogue as platforms
from pipistrelle.platforms.simgrid.platform_file import SimGridPlatform
from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.runs.inputs.named import (
    load_hosts,
    load_machine,
    load_platform,
    load_workload,
    platform_for,
    units_remark,
)
from pipistrelle.traces import catalogue as workloads
from pipistrelle.traces.files import read_text
from pipistrelle.traces.logs.kinds import Units

LINE = "1 0 -1 100 4 -1 -1 4 200 -1 1 7 2 -1 -1 -1 -1 -1\n"


def refused(call: Callable[[], Any]) -> str:
    """Return the text of the error, which has exit code 2."""
    with pytest.raises(PipistrelleError) as caught:
        call()
    assert caught.value.exit_code == 2
    return str(caught.value)


@pytest.mark.parametrize("name", platforms.names())
def test_every_bundled_platform_is_available_by_name(name: str) -> None:
    """A name is enough."""
    assert load_platform(name) == platforms.get(name)


@pytest.mark.parametrize("name", workloads.names())
def test_every_bundled_workload_is_available_by_name_with_a_machine(name: str) -> None:
    """A bundled workload runs without naming a platform."""
    workload = load_workload(name)

    assert len(workload) > 0
    assert platform_for(workload).units == workload.machine_size


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("kth-sp", "Did you mean 'kth-sp2'?"),
        ("Grizzly", "Did you mean 'grizzly'?"),
        ("nowhere/machine.toml", "Known: "),
        ("", "Known: "),
        ("x" * 5000, "Known: "),
    ],
)
def test_an_unknown_platform_brings_the_closest(name: str, hint: str) -> None:
    """Neither a bundled name nor a file: the error lists what is available."""
    text = refused(lambda: load_platform(name))

    assert f"there is no platform '{name}'" in text
    assert "a bundled platform or a TOML file" in text
    assert hint in text


@pytest.mark.parametrize(
    ("name", "hint"),
    [("dmo", "Did you mean 'demo'?"), ("log.swf.gz", "Known: demo"), ("x" * 5000, "Known: demo")],
)
def test_an_unknown_workload_brings_the_closest(name: str, hint: str) -> None:
    """The same for workloads."""
    text = refused(lambda: load_workload(name))

    assert f"there is no workload '{name}'" in text
    assert "SWF, Batsim's JSON, a batch system's log" in text
    assert hint in text


def test_a_platform_from_a_file(tmp_path: Path) -> None:
    """A path leads to the machine that the file describes."""
    path = tmp_path / "mine.toml"
    path.write_text('name = "mine"\n[[pools]]\nname = "all"\nnodes = 12\n')

    assert load_platform(str(path)).units == 12


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "the key 'name' is missing"),
        (b"name = mine", "this is not TOML"),
        (b"\xff\xfe", "the file is not UTF-8 text"),
        (b'name = "mine"\n[[pools]]\nname = "all"\nnodes = 0\n', "a count is too small"),
    ],
)
def test_a_platform_file_that_is_wrong_is_named(tmp_path: Path, content: bytes, says: str) -> None:
    """The error names the file and what is wrong in it."""
    path = tmp_path / "mine.toml"
    path.write_bytes(content)
    text = refused(lambda: load_platform(str(path)))

    assert says in text
    assert str(path) in text


def test_a_folder_is_no_platform_and_no_workload(tmp_path: Path) -> None:
    """Both report it without a traceback."""
    assert "there is no platform" in refused(lambda: load_platform(str(tmp_path)))
    assert "is a folder" in refused(lambda: load_workload(str(tmp_path)))


@pytest.mark.parametrize("name", ["log.swf", "log.swf.gz", "log"])
def test_a_workload_from_a_file(tmp_path: Path, name: str) -> None:
    """The content decides the kind of file, not the name."""
    path = tmp_path / name
    path.write_bytes(gzip.compress(LINE.encode()) if name.endswith(".gz") else LINE.encode())

    assert load_workload(str(path)).ids == ["1"]


def test_unsorted_submit_times_need_sort(tmp_path: Path) -> None:
    """They are refused, unless the caller asks for sorting."""
    path = tmp_path / "log.swf"
    path.write_text(LINE.replace("1 0", "1 50", 1) + LINE.replace("1 0", "2 40", 1))

    assert str(path) in refused(lambda: load_workload(str(path)))
    assert load_workload(str(path), sort=True).ids == ["2", "1"]


def test_a_workload_that_does_not_know_its_machine_needs_a_platform(tmp_path: Path) -> None:
    """The error says where the size would be and which option to use."""
    path = tmp_path / "log.swf"
    path.write_text(LINE)
    workload = load_workload(str(path))
    text = refused(lambda: platform_for(workload))

    assert "log.swf: the workload does not give the size of its machine" in text
    assert "MaxProcs" in text
    assert "--platform" in text


@pytest.mark.parametrize(("directive", "units"), [("MaxProcs: 64", 64), ("MaxNodes: 12", 12)])
def test_a_machine_from_the_header_is_one_pool_of_equal_units(tmp_path: Path, directive: str, units: int) -> None:
    """It is named after the workload."""
    path = tmp_path / "log.swf"
    path.write_text(f"; {directive}\n{LINE}")
    machine = platform_for(load_workload(str(path)))

    assert (machine.name, machine.units, machine.nodes, len(machine.pools)) == ("log-machine", units, units, 1)


def test_a_header_with_an_impossible_machine_is_refused(tmp_path: Path) -> None:
    """A machine beyond the limit is an error in our shape, not a memory problem."""
    path = tmp_path / "log.swf"
    path.write_text(f"; MaxProcs: 99999999999\n{LINE}")
    workload = load_workload(str(path))

    assert "1 to 10,000,000, found MaxProcs: 99999999999" in refused(lambda: platform_for(workload))


def test_unreadable_text_file_error_has_the_reason(tmp_path: Path) -> None:
    """A missing file, a folder and bytes that are no text have their own messages."""
    binary = tmp_path / "binary"
    binary.write_bytes(b"ab\xff")

    assert "cannot read the file (No such file or directory)" in refused(lambda: read_text(tmp_path / "absent"))
    assert "cannot read the file (Is a directory)" in refused(lambda: read_text(tmp_path))
    assert f"{binary}, byte 2: the file is not UTF-8 text" in refused(lambda: read_text(binary))


XML = """<platform version="4.1"><zone id="z" routing="None">
<host id="master_host" speed="1Gf"/><host id="a" speed="1Gf"/><host id="b" speed="2Gf"/>
</zone></platform>
"""


def test_a_platform_in_xml_can_be_had_as_hosts(tmp_path: Path) -> None:
    """Hosts where they are needed, groups of units elsewhere; roles are added to the former."""
    path = tmp_path / "two.xml"
    path.write_text(XML)

    machine = load_machine(str(path))

    assert isinstance(machine, SimGridPlatform)
    assert [host.name for host in machine.hosts] == ["a", "b"]
    assert load_platform(str(path)) == machine.to_platform()
    assert [host.name for host in load_hosts(str(path), master="a", roles={"b": "storage"}).hosts] == ["master_host"]


def test_hosts_need_a_file_in_xml(tmp_path: Path) -> None:
    """Neither a bundled platform nor a TOML file has single hosts."""
    (tmp_path / "own.toml").write_text('name = "own"\n')

    assert "there is no platform file 'tiny'" in refused(lambda: load_hosts("tiny"))
    assert "not XML" in refused(lambda: load_hosts(str(tmp_path / "own.toml")))


SACCT = "JobID|Submit|ElapsedRaw|NNodes|NCPUS\n1|2024-01-01T08:00:00|10|2|48\n"
LEASES = (
    '<lease-workload><site/><lease-requests><lease-request arrival="00:00:00"><lease id="1"><nodes>'
    '<node-set numnodes="2"/></nodes><start/><duration time="01:00:00"/></lease></lease-request></lease-requests>'
    "</lease-workload>"
)


def test_a_centres_log_is_read_as_told(tmp_path: Path) -> None:
    """Units define what sizes count, the zone defines the clock."""
    path = tmp_path / "jobs.txt"
    path.write_text(SACCT)
    told = load_workload(str(path), units="processors", timezone="Europe/Prague")
    plain = load_workload(str(path))

    assert (told.size.tolist(), plain.size.tolist()) == ([48], [2])
    assert (told.timezone, plain.timezone) == ("Europe/Prague", None)
    assert (plain.epoch or 0) - (told.epoch or 0) == 3600


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"units": "processors"}, "--units applies only to the log of a batch system"),
        ({"timezone": "UTC"}, "--timezone applies only to the log of a batch system"),
        ({"units": "processors", "timezone": "UTC"}, "--units and --timezone apply only to the log of a batch system"),
    ],
)
def test_how_to_read_a_log_is_refused_for_what_is_none(tmp_path: Path, options: dict[str, Any], says: str) -> None:
    """Neither SWF nor a bundled workload gives a warning."""
    path = tmp_path / "log.swf"
    path.write_text(LINE)

    assert says in refused(lambda: load_workload(str(path), **options))
    assert says in refused(lambda: load_workload("demo", **options))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (SACCT, "machine. Slurm sacct never gives it: name a platform with --platform, whose units"),
        (LEASES, "machine: expected a site of 1 to 10,000,000 nodes. Name a platform with --platform."),
    ],
)
def test_a_centres_log_without_a_machine_needs_a_platform(tmp_path: Path, text: str, says: str) -> None:
    """The message does not mention other formats."""
    path = tmp_path / "log"
    path.write_text(text)
    workload = load_workload(str(path))

    assert says in refused(lambda: platform_for(workload))


@pytest.mark.parametrize(
    ("text", "platform", "units", "says"),
    [
        (SACCT, "tiny", "nodes", None),
        (SACCT, "tiny", "processors", "count processors, but tiny hands out nodes: leave out --units processors"),
        (SACCT, "hpc2n", "nodes", "count nodes, but hpc2n hands out cores: count processors with --units processors"),
        (SACCT, "hpc2n", "processors", None),
        (LEASES, "hpc2n", "nodes", "count nodes, but hpc2n hands out cores: name a machine of nodes"),
        (LINE, "hpc2n", "nodes", None),
    ],
)
def test_sizes_in_other_units_than_the_machine_are_reported(
    tmp_path: Path, text: str, platform: str, units: Units, says: str | None
) -> None:
    """A log of nodes on a machine of cores would run all the same, and mean nothing."""
    path = tmp_path / "log"
    path.write_text(text)
    told = units_remark(load_workload(str(path)), load_platform(platform), units)

    assert (told is None) == (says is None)
    assert (says or "") in (told or "")
