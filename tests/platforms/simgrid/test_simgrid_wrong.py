"""Wrong platform files in SimGrid's XML: one message each, with file, line, element and what to do."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipistrelle.platforms.description import MOST_UNITS
from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.simgrid.platform_file import parse_simgrid
from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.runs.inputs.named import load_platform

HEAD = '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n<platform version="4.1">\n'
ONE = '<host id="one" speed="1Gf"/>'


def zone(*parts):
    """Return a file with one zone, each part of it on a line of its own from line 5 on."""
    return HEAD + '<zone id="z" routing="Full">\n' + "\n".join(parts) + "\n</zone>\n</platform>\n"


def cluster(attributes, element="cluster"):
    """Return a file with one cluster, on line 5."""
    return zone(f'<{element} id="c" prefix="n" suffix="" speed="1Gf" bw="1Bps" lat="1us" {attributes}/>')


def with_host(attributes="", speed="1Gf", **props):
    """Return a file with one host, on line 5."""
    inside = "".join(f'<prop id="{name}" value="{value}"/>' for name, value in props.items())
    return zone(f'<host id="one" speed="{speed}" {attributes}>\n{inside}</host>')


def refused(text, **options):
    """Return the message of the error."""
    with pytest.raises(PlatformError) as caught:
        parse_simgrid(text, "p.xml", **options)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("", "p.xml, line 1, column 1: this is not XML: no element found."),
        ("not XML", "p.xml, line 1, column 1: this is not XML: syntax error."),
        ("\n\n<?xml version='1.0'?><platform", "p.xml, line 3, column 22: this is not XML: unclosed token."),
        (f"{HEAD}<zone id='z'>\n <host id=one/>", "p.xml, line 5, column 11: this is not XML: not well-formed"),
        (f"{HEAD}<zone id='é'></AS>", "p.xml, line 4, column 16: this is not XML: mismatched tag."),
        (f"{HEAD}</platform>\n<platform/>", "p.xml, line 5, column 1: this is not XML: junk after document element."),
        (zone('<host id="a" id="b" speed="1f"/>'), "p.xml, line 5, column 14: this is not XML: duplicate attribute."),
        (zone('<host id="&lot;" speed="1f"/>'), "p.xml, line 5, column 1: this is not XML: undefined entity."),
        (zone(ONE, "&lot;"), "p.xml, line 6, column 1: this is not XML: undefined entity."),
        (zone("\0"), "p.xml, line 5, column 1: this is not XML: not well-formed"),
        ("\ud800", "p.xml: the text is not Unicode. Save the file as UTF-8."),
        (zone("two words"), "p.xml, line 5: text between the elements of zone 'z': found 'two words'."),
    ],
)
def test_invalid_xml_is_rejected(text, begins):
    """Line and column are those of the file, whatever comes before its declaration."""
    assert refused(text).startswith(begins)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<adag/>", "p.xml, line 1: this is not a SimGrid platform: expected <platform version='4.1'>, found <adag>."),
        (
            zone(ONE).replace("4.1", "3"),
            "p.xml, line 3: this SimGrid platform is of an old version: expected version 4 or 4.1, found '3'. "
            "SimGrid's program simgrid_update_xml brings it up to date.",
        ),
        (
            zone(ONE).replace("4.1", "4.11"),
            "p.xml, line 3: this SimGrid platform is of a newer version: expected 4.1, found '4.11'.",
        ),
        (zone(ONE).replace("4.1", "four"), "p.xml, line 3: a version cannot be read: expected 4.1, found 'four'."),
        ("<platform/>", "p.xml, line 1: <platform> has no version: expected the attribute(s) version."),
        (zone('<host id="a"/>'), "p.xml, line 5: host 'a' has no speed: expected the attribute(s) id, speed."),
        (zone('<host speed="1f"/>'), "p.xml, line 5: <host> has no id: expected the attribute(s) id, speed."),
        (zone('<host id="" speed="1f"/>'), "p.xml, line 5: host '' has an empty id."),
        (with_host('cores="4"'), "p.xml, line 5: host 'one' has an unknown attribute 'cores'. Did you mean 'core'?"),
        (zone(ONE, '<hots id="a"/>'), "p.xml, line 6: unknown element 'hots' in zone 'z'. Did you mean 'host'? "),
        (f"{HEAD}{ONE}", "p.xml, line 4: host 'one' is not allowed in <platform>: expected AS, actor, cabinet,"),
        (
            zone("<peer id='p' speed='1f'><disk/></peer>"),
            "p.xml, line 5: <disk> is not allowed in peer 'p': expected no elements",
        ),
        (zone('<include file="x"/>'), "p.xml, line 5: <include> is not supported. Replace it by the file"),
        (
            zone(ONE, ONE),
            "p.xml, line 6: the host 'one' is described twice: expected a unique name for each host, ",
        ),
        (
            with_host('core="0"'),
            "p.xml, line 5: host 'one': a count cannot be read: expected a whole number of at least 1, found '0'.",
        ),
        (with_host('core="2.5"'), "p.xml, line 5: host 'one': a count cannot be read"),
        (with_host(f'core="{"9" * 5000}"'), "p.xml, line 5: host 'one': a count cannot be read"),
        (
            with_host('pstate="-1"'),
            "p.xml, line 5: host 'one': a count cannot be read: expected a whole number of at least 0",
        ),
        (
            with_host('pstate="1"'),
            "p.xml, line 5: host 'one' begins in a pstate that it does not have: expected a pstate from 0 to 0, "
            "one for each speed, found 1.",
        ),
        (zone(f"{ONE}<prop id='a' value='b'/>"), "p.xml, line 5: prop 'a' stands too late in zone 'z'"),
        (
            zone('<prop id="a" value="b"/><prop id="a" value="c"/>'),
            "p.xml, line 5: zone 'z' has the prop 'a' twice: found 'b' and 'c'.",
        ),
        (zone('<prop id="a"/>'), "p.xml, line 5: prop 'a' has no value: expected the attribute(s) id, value."),
        (HEAD + "</platform>", "p.xml: the platform has no compute hosts: expected a <host>, <cluster>"),
        (zone('<host id="master_host" speed="1f"/>'), "p.xml: the platform has no compute hosts"),
    ],
)
def test_elements_and_attributes(text, message):
    """File, line, element and id, the rule, and the next step."""
    assert refused(text).startswith(message)


@pytest.mark.parametrize(
    "radical", ["", "-", "1-", "-1", "3-1", "a", "0-3,", "1,,2", "0-1-2", "0..3", "1.5", "٣", "2147483648", "9" * 5000]
)
def test_a_radical_that_gives_no_hosts(radical):
    """The message shows how to write one."""
    assert refused(cluster(f'radical="{radical}"')).startswith(
        "p.xml, line 5: cluster 'c': a radical cannot be read: expected numbers and ascending ranges"
    )


def test_numbers_that_a_radical_gives_twice():
    """They would make two hosts with the same name."""
    message = refused(cluster('radical="0-4,2"', element="cabinet"))

    assert message.startswith("p.xml, line 5: the host 'n2' is described twice: expected a unique name for each host")
    assert "found cabinet 'c', and line 5 has it too." in message


@pytest.mark.parametrize(
    "radical", ["0-10000000", "0-9999999,10000000", "0-2147483647", ",".join(["0-2000000000"] * 999)]
)
def test_a_radical_beyond_the_limit(radical):
    """It is rejected before any host is created."""
    message = refused(cluster(f'radical="{radical}"'))

    assert message.startswith(
        f"p.xml, line 5: a platform is too large: expected at most {MOST_UNITS} hosts in all, found "
    )


def test_an_unknown_topology():
    """The message suggests the closest one."""
    message = refused(cluster('radical="0-3" topology="FATTREE"'))

    assert message == "p.xml, line 5: cluster 'c': unknown topology 'FATTREE'. Did you mean 'FAT_TREE'?"


@pytest.mark.parametrize(
    ("props", "says"),
    [
        ({"wattage_per_state": "1:2"}, "the watts do not suit the pstates: expected 4 part(s)"),
        ({"wattage_per_state": "1:2,1:2,1:2,1"}, "the watts of a pstate cannot be read: expected two or three numbers"),
        ({"wattage_per_state": "1:2,1:2,1:2,1:2:3:4"}, "found '1:2:3:4'"),
        ({"wattage_per_state": "1:2,1:2,1:2,1:-2"}, "found '1:-2'"),
        ({"watt_per_state": "1:2,1:2,1:nan,1:2"}, "found '1:nan'"),
        ({"wattage_off": "10 W"}, "the watts cannot be read: expected a number of at least 0, found '10 W'"),
        ({"watt_off": "inf"}, "the watts cannot be read: expected a number of at least 0, found 'inf'"),
        (
            {"sleep_pstates": ""},
            "the sleep_pstates cannot be read: expected triples SLEEPING:SWITCHING_OFF:SWITCHING_ON",
        ),
        ({"sleep_pstates": "1:2"}, "of pstates from 0 to 3, as '1:2:3', found '1:2'"),
        ({"sleep_pstates": "1:2:4"}, "the sleep_pstates cannot be read"),
        ({"sleep_pstates": "1:2:99999999999"}, "the sleep_pstates cannot be read"),
        ({"sleep_pstates": "1:2:-3"}, "the sleep_pstates cannot be read"),
        ({"sleep_pstates": "1:2:1"}, "the sleep_pstates contradict each other: expected each pstate to sleep in once"),
        ({"sleep_pstates": "1:2:2,1:2:2"}, "found pstate 1 again in '1:2:2,1:2:2'"),
        ({"sleep_pstates": "1:2:2,2:1:1"}, "found pstate 1 again"),
        ({"sleep_pstates": "1:2:3"}, "a host would take forever to switch: expected a speed above 0"),
        ({}, "cannot compute: expected a speed above 0 in each pstate to compute in, found pstate 3 of speed 0"),
        ({"role": "server"}, "has an unknown role: expected 'compute_node', 'storage' or 'master', found 'server'"),
        ({"role": "storge"}, "Did you mean 'storage'?"),
    ],
)
def test_properties_that_contradict_the_host(props, says):
    """Watts and pstates to sleep in are checked even though a run without energy does not need them."""
    message = refused(with_host(speed="3f,2f,1f,0f", **props))

    assert message.startswith("p.xml, line 5: host 'one'")
    assert says in message


def test_roles_that_contradict_each_other():
    """A host with two roles, two masters, and a host that does not exist."""
    two = '<host id="two" speed="1f"><prop id="role" value="master"/></host>'

    assert "host 'two' has two roles: expected one, in the file or on the command line, found 'master' in the file" in (
        refused(zone(ONE, two), roles={"two": "storage"})
    )
    assert "at most one master: expected one host called 'one' or with the role 'master', found 'one' and 'two'" in (
        refused(zone(ONE, two), master="one")
    )
    assert "a role is added to the unknown host 'tow'. Did you mean 'two'?" in refused(
        zone(two), roles={"tow": "master"}
    )
    assert "to the unknown host" in refused(zone(two), roles={"\n" * 99: "master"})


BOMB = "".join(f'<!ENTITY l{level} "{f"&l{level - 1};" * 20 if level else "lol"}">\n' for level in range(20))


@pytest.mark.parametrize(
    ("internal", "says"),
    [
        (BOMB, "p.xml, line 2: a platform declares no entities"),
        ('<!ENTITY secret SYSTEM "file:///etc/passwd">', "p.xml, line 2: a platform declares no entities"),
        (
            '<!ENTITY % more SYSTEM "http://localhost/more.dtd"> %more;',
            "p.xml, line 2: a platform declares no entities",
        ),
        ('<!ATTLIST host speed CDATA "1Gf">', "p.xml, line 2: a platform's document type must not declare anything"),
    ],
)
def test_a_document_type_with_declarations_is_refused(internal, says):
    """Entities are never expanded, attributes never filled in, files never fetched; a billion laughs end at once."""
    text = zone('<host id="&l19;" speed="1f"/>')

    assert refused(text.replace('dtd">', f'dtd" [{internal}]>')).startswith(says)


def test_deep_or_huge_files_are_rejected_quickly():
    """Deep nesting, huge names and long lists are rejected quickly, with one message."""
    opened = "".join(f'<zone id="{n}" routing="Full"><prop id="p{n}" value=""/>' for n in range(50_000))

    assert "zones are nested too deep: expected at most 100 nested elements" in refused(HEAD + opened)
    assert "unknown element" in refused(zone(f"<{'x' * 100_000}/>"))
    assert "this is not a SimGrid platform" in refused(f"<{'x' * 100_000}/>")
    assert "a speed cannot be read" in refused(with_host(speed="1Gf," * 100_000))
    assert "contradict" in refused(with_host(speed="1f," * 99_999 + "1f", sleep_pstates=",".join(["0:1:1"] * 50_000)))


SNIPPETS = (
    *(
        "<",
        ">",
        "/>",
        '"',
        "'",
        " ",
        "\n",
        "=",
        "&",
        ";",
        "<!--",
        "-->",
        "<![CDATA[",
        "]]>",
        "<?xml ",
        "?>",
        "<!DOCTYPE ",
    ),
    *(
        "[",
        "]",
        "<!ENTITY a 'b'>",
        "<platform version='4.1'>",
        "</platform>",
        "<zone id='z'>",
        "</zone>",
        "<AS id='a'>",
    ),
    *("<host id='h' speed='1f'>", "</host>", "<prop id='role' value='", "<prop id='sleep_pstates' value='0:0:0'/>"),
    *(
        "<cluster id='c' prefix='' suffix='' speed='1f' radical='0-3'",
        " topology='TORUS' topo_parameters='2,2'",
        "</cluster>",
    ),
    *("<host id='master_host' speed='0'/>", "<link id='l'/>", "version='3'", "\0", "\ud800", "é", "1-5,", "1e9Gf"),
)


@given(st.one_of(st.text(), st.lists(st.sampled_from(SNIPPETS), max_size=25).map("".join)))
def test_any_text_is_read_or_refused(text):
    """Whatever the file contains, the only error is ours."""
    with suppress(PlatformError):
        parse_simgrid(text, "p.xml")


VALUES = st.one_of(
    st.text(st.characters(exclude_characters='"<&', exclude_categories=["Cs", "Cc"])), st.sampled_from(SNIPPETS[-3:])
)
NUMBERS = st.text("0123456789-,:;.eEfkMG ", max_size=12)


@given(NUMBERS | VALUES, NUMBERS | VALUES, NUMBERS, NUMBERS, NUMBERS, NUMBERS)
def test_any_value_is_read_or_refused(speed, core, watts, off, sleep, radical):
    """Attributes and properties of any content raise PlatformError or give finite numbers of at least 0."""
    clean = [value.replace("\0", "").replace("\ud800", "") for value in (speed, core)]
    props = f'<prop id="wattage_per_state" value="{watts}"/><prop id="watt_off" value="{off}"/>'
    props += f'<prop id="sleep_pstates" value="{sleep}"/>'
    text = zone(
        f'<host id="h" speed="{clean[0]}" core="{clean[1]}">{props}</host>',
        f'<cluster id="c" prefix="" suffix="" radical="{radical[:6]}" speed="1f" topo_parameters="{sleep}"/>',
    )
    try:
        machine = parse_simgrid(text, "p.xml")
    except PlatformError:
        return
    for host in machine.hosts:
        assert all(0 <= speed < float("inf") for speed in host.speeds)
        assert host.cores >= 1


@given(st.binary())
def test_any_bytes_are_read_or_refused(tmp_path_factory, content):
    """A file of any content gives our error."""
    path = tmp_path_factory.getbasetemp() / "any.xml"
    path.write_bytes(content)
    with pytest.raises(PipistrelleError):
        load_platform(str(path))
