"""SimGrid's platform XML: which hosts are read, how Batsim numbers them, and which errors are reported."""

import json
import re

import pytest

from pipistrelle.platforms.describe import describe_simgrid
from pipistrelle.platforms.description import Pool
from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.read import parse_platform, to_toml
from pipistrelle.platforms.simgrid.platform_file import SimGridPlatform, parse_simgrid
from pipistrelle.platforms.simgrid.quantities import SleepPstate, Watts
from pipistrelle.runs.inputs.named import is_platform, load_hosts, load_platform, read_platform

HEAD = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
"""
ONE = '<host id="one" speed="1Gf"/>'


def zone(*parts):
    """Return a file with one zone, each part of it on a line of its own from line 5 on."""
    return HEAD + '<zone id="z" routing="Full">\n' + "\n".join(parts) + "\n</zone>\n</platform>\n"


def host(attributes="", *, speed="1Gf", **props):
    """Return the host that a file with this one host has."""
    inside = "".join(f'<prop id="{name}" value="{value}"/>' for name, value in props.items())
    return parse_simgrid(zone(f'<host id="one" speed="{speed}" {attributes}>{inside}</host>'), "p.xml").hosts[0]


def names(text, **options):
    """Return the names of the compute hosts, in order."""
    return [host.name for host in parse_simgrid(text, "p.xml", **options).hosts]


def refused(text, **options):
    """Return the message of the error."""
    with pytest.raises(PlatformError) as caught:
        parse_simgrid(text, "p.xml", **options)
    return str(caught.value)


def test_all_attributes_of_a_host_are_read():
    """Speeds by pstate, cores, first pstate, props, watts, watts off and pstates to sleep in."""
    one = host(
        'core="4" pstate="1" coordinates="0 0 0"',
        speed="2Gf, 1Gf,1f,0.5f,.25f",
        wattage_per_state="80:90:200, 75:140, 5:5:5, 90:90, 1e2:1e2",
        wattage_off="4.5",
        sleep_pstates="2:3:4",
        mem="64 GB",
    )

    assert (one.id, one.name, one.role, one.cores, one.pstate) == (0, "one", "compute_node", 4, 1)
    assert one.speeds == (2e9, 1e9, 1.0, 0.5, 0.25)
    assert one.watts[:3] == (Watts(80, 90, 200), Watts(75, 75, 140), Watts(5, 5, 5))
    assert (one.watt_off, one.sleep_pstates) == (4.5, (SleepPstate(2, 3, 4),))
    assert one.properties["mem"] == "64 GB"
    assert one.properties["role"] == ""
    assert one.properties["sleep_pstates"] == "2:3:4"


def test_a_host_need_only_have_a_name_and_a_speed():
    """One core, the first pstate, no watts; an attribute spelled as in SimGrid's own defaults is the same."""
    one = host()

    assert (one.cores, one.pstate, one.watts, one.watt_off, one.sleep_pstates) == (1, 0, (), 0.0, ())
    assert host('pstate="0.0"') == one


@pytest.mark.parametrize(
    ("text", "speed"),
    [
        ("3f", 3.0),
        ("1.5kf", 1500.0),
        ("100.0Mf", 1e8),
        ("1Tf", 1e12),
        ("1Pf", 1e15),
        ("1Ef", 1e18),
        ("2Zf", 2e21),
        ("1Yf", 1e24),
        ("1e3f", 1e3),
        ("1E-9Mf", 1e-3),
        ("+1Gf", 1e9),
        ("7flops", 7.0),
        ("2megaflops", 2e6),
        ("1zettaflops", 1e21),
        ("1zetaflops", 1e21),
        ("98.095", 98.095),
    ],
)
def test_units_of_speed(text, speed):
    """SimGrid's units, short and long; without one a number counts flop/s."""
    assert host(speed=text).speeds == (speed,)


@pytest.mark.parametrize(
    "text", ["", "Gf", "1 Gf", "1Kif", "1Gib", "1GF", "-1Gf", "nanf", "inf", "1e999f", "0x1f", "1Gf,", "1Gf;2Gf", "١f"]
)
def test_invalid_speeds_are_rejected(text):
    """The message names host and line, and shows how to write a speed."""
    message = refused(zone(ONE, f'<host id="two" speed="{text}"/>'))

    assert message.startswith(
        "p.xml, line 6: host 'two': a speed cannot be read: expected one speed per pstate, as '1Gf'"
    )
    assert f"found {text!r}" in message


@pytest.mark.parametrize(
    ("cores", "text", "watts"),
    [
        (1, "95:190", Watts(95, 190, 190)),
        (1, "95:100:190", Watts(95, 190, 190)),
        (4, "95:120:180", Watts(95, 100, 180)),
    ],
)
def test_the_old_name_of_watts_gives_one_busy_core(cores, text, watts):
    """From it the draw at no load is extrapolated, so that one busy core of four draws what the file says."""
    assert host(f'core="{cores}"', watt_per_state=text, watt_off="3").watts == (watts,)
    assert cores == 1 or watts.epsilon + (watts.full - watts.epsilon) / cores == 120


def test_the_new_name_of_watts_wins():
    """A file for old and new SimGrid versions has both; the new one is read."""
    one = host(wattage_per_state="1:2", watt_per_state="3:4", wattage_off="5", watt_off="6")

    assert (one.watts, one.watt_off) == ((Watts(1, 1, 2),), 5.0)


@pytest.mark.parametrize("element", ["cluster", "cabinet"])
def test_numbered_hosts(element):
    """Prefix, each number of the radical, suffix; numbers lose leading zeros, as in SimGrid."""
    text = zone(f'<{element} id="c" prefix="n" suffix=".x" radical="8-10,3, 05 - 06" speed="2Gf" bw="1Bps" lat="1us"/>')

    assert names(text) == ["n10.x", "n3.x", "n5.x", "n6.x", "n8.x", "n9.x"]


def test_props_of_a_cluster_and_of_zones():
    """Each host has the props of its cluster and of its zones; an inner zone overrides an outer one."""
    inside = (
        '<cluster id="c" prefix="c" suffix="" radical="0-1" speed="1Gf" core="2"><prop id="rack" value="7"/></cluster>'
        '<AS id="in" routing="Full"><prop id="room" value="B"/><host id="d" speed="1Gf"/></AS>'
        '<peer id="e" speed="1Gf"/>'
    )
    hosts = parse_simgrid(zone('<prop id="room" value="A"/><prop id="site" value="S"/>', inside), "p.xml").hosts

    assert [(host.name, host.properties, host.zone_properties) for host in hosts[1:]] == [
        ("c1", {"rack": "7", "role": ""}, {"room": "A", "site": "S", "rack": "7"}),
        ("d", {"role": ""}, {"room": "B", "site": "S"}),
        ("e", {"role": ""}, {"room": "A", "site": "S"}),
    ]
    assert hosts[0].cores == 2


@pytest.mark.parametrize(
    ("topology", "parameters"),
    [("TORUS", "2,3,2"), ("FAT_TREE", "2;4,3;1,2;1,2"), ("DRAGONFLY", "2,4;3,3;1,1;2"), ("FLAT", "")],
)
def test_a_topology_fixes_the_number_of_hosts(topology, parameters):
    """A radical of another size is rejected, as is an invalid topology; only hosts have props."""
    form = (
        f'<cluster id="c" prefix="" suffix="" radical="%s" speed="1Gf" topology="{topology}" '
        'topo_parameters="%s"><prop id="a" value="b"/></cluster>'
    )
    hosts = parse_simgrid(zone(form % ("0-11", parameters)), "p.xml").hosts

    assert len(hosts) == 12
    assert hosts[0].zone_properties == ({"a": "b"} if topology == "FLAT" else {})
    if topology != "FLAT":
        assert "does not suit its topology: expected 12 hosts" in refused(zone(form % ("0-12", parameters)))
        for wrong in ("", "0,1;2", "a;b;c;d", ";;;", f"{parameters};9"):
            assert f"topo_parameters of a {topology} cannot be read" in refused(zone(form % ("0-11", wrong)))


def test_the_order_is_that_of_names_as_bytes():
    """Batsim 4 numbers h10 before h2, and capitals before small letters, whatever the order of the file."""
    text = zone(
        *(f'<host id="{name}" speed="1Gf"/>' for name in ("é", "h2", "z", "h10", "Z", "h1", "\U0001f987", "\uffee"))
    )

    assert (
        names(text) == sorted(names(text), key=str.encode) == ["Z", "h1", "h10", "h2", "z", "é", "\uffee", "\U0001f987"]
    )


def test_master_and_storages_do_not_compute():
    """The master has no number, storages are numbered after the compute hosts; both may have speed 0."""
    disk = '<host id="a" speed="0f"><prop id="role" value="storage"/></host>'
    machine = parse_simgrid(zone(disk, '<host id="master_host" speed="0f"/>', ONE, '<host id="two" speed="1f"/>'), "p")

    assert [(host.id, host.name) for host in machine.hosts] == [(0, "one"), (1, "two")]
    assert [(host.id, host.role, host.properties) for host in machine.storages] == [(2, "storage", {"role": "storage"})]
    assert (machine.master.id, machine.master.role, machine.master.properties) == (-1, "master", {"role": "master"})


def test_roles_from_the_command_line():
    """A host can get a role, and another host can become the master; having no master is allowed."""
    text = zone(
        ONE, '<host id="two" speed="1f"/>', '<host id="three" speed="1f"><prop id="role" value="master"/></host>'
    )
    machine = parse_simgrid(text, "p.xml", roles={"two": "storage", "three": "master"})

    assert ([host.name for host in machine.hosts], machine.storages[0].name) == (["one"], "two")
    assert machine.master.name == "three"
    assert names(zone(ONE, '<host id="two" speed="1f"/>'), master="one") == ["two"]
    assert names(zone(ONE), roles={"one": "compute_node"}, master="one") == ["one"]
    assert parse_simgrid(zone(ONE), "p.xml").master is None


def test_the_platform_can_be_limited_to_its_first_hosts():
    """Storages are still numbered after them; 0, or more than exist, is an error."""
    disk = '<host id="a" speed="0f"><prop id="role" value="storage"/></host>'
    machine = parse_simgrid(zone(disk, *(f'<host id="h{n}" speed="1f"/>' for n in range(3))), "p.xml").limited(2)

    assert [(host.id, host.name) for host in (*machine.hosts, *machine.storages)] == [(0, "h0"), (1, "h1"), (2, "a")]
    for count in (0, 3):
        with pytest.raises(PlatformError, match=rf"cannot be limited to {count} hosts: expected 1 to 2"):
            machine.limited(count)


def test_unused_parts_are_counted():
    """Network, disks, traces and files of other programs are read and reported."""
    machine = parse_simgrid(
        HEAD + '<config id="c"><prop id="a" value="1"/></config><zone id="z" routing="None">'
        '<link id="l"><prop id="a" value="1"/></link><router id="r"/><backbone id="b"/>'
        '<host id="h" speed="1f" state_file="s"><disk id="d"/><mount storageId="x"/></host>'
        '<peer id="i" speed="1f" speed_file="f" availability_file=""/><host_link id="h"/>'
        '<route><link_ctn/><link_ctn/></route><trace id="t">0 1</trace></zone>'
        '<actor><argument value="1"/></actor></platform>',
        "p.xml",
    )

    assert machine.unused == (
        *(("config", 1), ("link", 1), ("router", 1), ("backbone", 1), ("disk", 1), ("mount", 1)),
        *(("host state_file", 1), ("peer speed_file", 1), ("host_link", 1), ("link_ctn", 2), ("route", 1)),
        *(("trace", 1), ("argument", 1), ("actor", 1)),
    )


def test_the_machine_of_native_runs():
    """Neighbours that differ only in their names form a pool of whole nodes, with the hosts' properties."""
    machine = parse_simgrid(
        zone(
            '<prop id="site" value="S"/>',
            '<cluster id="c" prefix="a" suffix="" radical="0-1" speed="2Gf,1Gf" core="4"/>',
            '<host id="a2" speed="2Gf,1Gf" core="4"/>',
            '<host id="b" speed="2Gf,1Gf" core="4" pstate="1"><prop id="gb" value="64"/>'
            '<prop id="no name" value="1"/></host>',
            '<host id="master_host" speed="2Gf,1Gf" core="4"/>',
            '<host id="n" speed="2Gf,1Gf" core="4"/>',
        ),
        "/home/me/my site.xml",
    )
    platform = machine.to_platform()
    common = {"site": "S", "speed": 2e9, "cores": 4}

    assert (platform.name, platform.units) == ("my site", 5)
    assert platform.pools == (
        Pool(name="hosts-0", nodes=3, names="a[0-2]", properties={**common, "first_host": "a0", "last_host": "a2"}),
        Pool(
            name="hosts-1",
            nodes=1,
            names="b",
            properties={**common, "speed": 1e9, "gb": "64", "first_host": "b", "last_host": "b"},
        ),
        Pool(name="hosts-2", nodes=1, names="n", properties={**common, "first_host": "n", "last_host": "n"}),
    )
    assert parse_platform(to_toml(platform), "back") == platform


@pytest.mark.parametrize("where", ["p.xml", "a/b\\p.xml", "p"])
def test_a_platform_is_named_after_its_file(where):
    """The last part of the path, without its suffix."""
    assert parse_simgrid(zone(ONE), where).name == "p"


@pytest.mark.parametrize(
    ("where", "name"), [("", "platform"), (" .xml", "platform"), ("a\nb", "a?b"), ("x" * 999, "x" * 300)]
)
def test_a_file_name_that_is_not_allowed_is_corrected(where, name):
    """A name that is not allowed for a platform is corrected, because the file's content is valid."""
    assert parse_simgrid(zone(ONE), where).to_platform().name == name


def test_the_facts_of_a_simgrid_platform():
    """Those of the machine, then the hosts that do not compute and the parts that are not used."""
    disk = '<host id="a" speed="0f"><prop id="role" value="storage"/></host>'
    facts = describe_simgrid(parse_simgrid(zone(ONE, disk, '<link id="l"/><link id="m"/><router id="r"/>'), "p.xml"))

    assert facts[0] == ("platform", "p")
    assert facts[-4][0] == "pool hosts"
    assert facts[-3:] == [("master host", "none"), ("storages", "a"), ("read, not used", "2 link, 1 router")]


def test_blank_lines_and_a_byte_order_mark_may_come_first():
    """SimGrid accepts blank lines before the declaration, and some of its own files have them."""
    assert names("\ufeff" + zone(ONE)) == names("\n \n" + zone(ONE)) == names(zone(ONE).partition("?>")[2]) == ["one"]
    assert names(zone(ONE).replace("'1.0'", "'1.0'\n encoding='iso-8859-1'")) == ["one"]


@pytest.mark.parametrize("version", ["4", "4.0", "4.1", "4.10"])
def test_versions(version):
    """Version 4 files are valid in 4.1."""
    assert names(zone(ONE).replace("4.1", version)) == ["one"]


@pytest.mark.parametrize(("name", "known"), [("p.xml", True), ("p.toml", True), ("p", True), ("p.swf", False)])
def test_content_or_suffix_tells_what_a_file_is(tmp_path, name, known):
    """A platform in XML is found under any name, and read by it."""
    path = tmp_path / name
    path.write_text("\n1 0 -1" if name == "p.swf" else zone(ONE))

    assert is_platform(str(path)) is known
    if known:
        assert load_platform(str(path)).units == 1
    assert not is_platform(str(tmp_path))
    assert not is_platform("x" * 5000)


def test_the_manuals_platform_is_read(project_root):
    """The page's example is valid and is what the text says of it."""
    page = (project_root / "docs" / "reference" / "platforms.md").read_text(encoding="utf-8")
    machine = parse_simgrid(re.search(r"```text\n(<\?xml.*?)```", page, re.DOTALL)[1], "site.xml")
    first = machine.hosts[0]
    sleep = first.sleep_pstates[0]

    assert len(machine.hosts) == machine.to_platform().pools[0].nodes == 11
    assert [host.name for host in machine.hosts[:4]] == ["n0", "n1", "n10", "n2"]
    assert sleep.sleeping == 2
    assert (1 / first.speeds[sleep.switching_off], 1 / first.speeds[sleep.switching_on]) == (5, 20)


def first_message(path):
    """Return the data of the first event that a recorded Batsim sent."""
    frame = json.loads(path.read_text(encoding="utf-8").splitlines()[0])[1]
    return json.loads(frame)["events"][0]["data"]


def as_batsim_says(host):
    """Return a host as a Batsim describes it at the beginning of a simulation."""
    told = {"id": host.id, "name": host.name, "state": "idle"}
    return {**told, "properties": host.properties, "zone_properties": host.zone_properties}


SEVEN = '<prop id="watt_per_state" value="100:200, 93:170, 10:10"/><prop id="watt_off" value="10 W"/>'


def test_watts_that_do_not_count_are_left_out():
    """Watts for fewer pstates than the host has are an error only if energy is measured; the rest is read."""
    hosts = zone(f'<host id="venus" speed="1Gf, 50Mf, 1f, 1f">{SEVEN}<prop id="sleep_pstates" value="1:2:3"/></host>')
    assert refused(hosts, energy=True).startswith("p.xml, line 5: host 'venus': the watts do not suit the pstates")
    (venus,) = parse_simgrid(hosts, "p.xml", energy=False).hosts
    assert (venus.watts, venus.watt_off, venus.sleep_pstates) == ((), 0.0, (SleepPstate(1, 2, 3),))
    assert venus.properties["watt_off"] == "10 W"


@pytest.mark.parametrize(
    ("hosts", "master", "computing"),
    [
        (["master_host", "a"], "master_host", 1),
        (["master_host0", "a", "b"], "master_host0", 2),
        (["master_host0", "master_host", "a"], "master_host", 2),
        (["master_host0", "master_host1", "a"], None, 3),
        (["master_hosts", "a"], None, 2),
    ],
)
def test_the_master_of_a_native_run(tmp_path, hosts, master, computing):
    """Batsim's files name their master in several ways; Batsim, like our command, has an option for it."""
    path = tmp_path / "p.xml"
    path.write_text(zone(*(f'<host id="{name}" speed="1f"/>' for name in hosts)))
    machine = read_platform(str(path))
    assert isinstance(machine, SimGridPlatform)
    assert (None if machine.master is None else machine.master.name) == master
    assert load_platform(str(path)).units == computing
    assert load_hosts(str(path)).to_platform().units == len(hosts) - ("master_host" in hosts)


def test_a_real_batsim_describes_its_platform_equally(batsim4_dir):
    """Numbers, names and properties in each recording on four hosts are those that we read."""
    machine = parse_simgrid((batsim4_dir / "nonet4.xml").read_text(), "nonet4.xml")
    recordings = [path for path in sorted(batsim4_dir.glob("wire_*.jsonl")) if "energy" not in path.name]

    assert len(recordings) >= 8
    for path in recordings:
        said = first_message(path)
        assert [as_batsim_says(host) for host in machine.hosts] == said["compute_resources"]
        assert [as_batsim_says(host) for host in machine.storages] == said["storage_resources"]
    assert machine.master.name == "master_host"


def test_a_real_batsim_orders_hosts_by_their_names(batsim4_dir):
    """Limited to four hosts of 128, it took host0, host1, host10 and host100; its watts and pstates are read too."""
    said = first_message(batsim4_dir / "wire_batsched_energy_bf_monitoring.first60.jsonl")["compute_resources"]
    props = {name: value for name, value in said[0]["properties"].items() if name != "role"}
    speeds = ",".join(["1Gf"] * 13 + ["1f", f"{1 / 6.1}f", "0.01f"])
    inside = "".join(f'<prop id="{name}" value="{value}"/>' for name, value in props.items())
    hosts = [f'<host id="host{number}" speed="{speeds}">{inside}</host>' for number in range(128)]
    machine = parse_simgrid(zone(*hosts, '<host id="master_host" speed="1f"/>'), "p.xml").limited(4)

    assert [as_batsim_says(host) for host in machine.hosts] == said
    assert machine.hosts[0].sleep_pstates == (SleepPstate(sleeping=13, switching_off=14, switching_on=15),)
    assert (machine.hosts[0].watts[0], machine.hosts[0].watt_off) == (Watts(95, 95, 190.738), 10)


def test_a_large_platform_of_a_real_run(batsim4_dir):
    """All 1490 hosts are one pool, as many as the recorded workload needs."""
    platform = load_platform(str(batsim4_dir / "nonet1490.xml"))

    assert (platform.name, platform.units, len(platform.pools)) == ("nonet1490", 1490, 1)
    assert json.loads((batsim4_dir / "w_1000_l0.85.json").read_text())["nb_res"] == platform.units
