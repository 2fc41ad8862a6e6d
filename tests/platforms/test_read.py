"""A machine's TOML text: reading, errors and writing."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipistrelle.platforms.description import Platform, Pool
from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.read import parse_platform, to_toml
from pipistrelle.protocol.base.errors import PipistrelleError

HEAD = 'name = "m"\n[[pools]]\nname = "a"\n'
POOL = f"{HEAD}nodes = 2\n"


def test_a_file_with_every_key_is_read():
    """All keys are read; whole and fractional numbers and booleans keep their type."""
    text = """
    name = "zeus"
    description = "d"
    source = "s"
    [[pools]]
    name = "cpu"
    nodes = 96
    [[pools]]
    name = "gpu"
    nodes = 8
    units_per_node = 4
    unit = "gpu"
    names = "g[1-8]"
    node_class = "dgx"
    mttf = "10250h"
    age = 3600
    [pools.properties]
    gb = 80
    price = 2.0
    nvlink = true
    model = "H100"
    """
    platform = parse_platform(text, "zeus.toml")

    assert platform == Platform(
        name="zeus",
        description="d",
        source="s",
        pools=(
            Pool(name="cpu", nodes=96),
            Pool(
                name="gpu",
                nodes=8,
                units_per_node=4,
                unit="gpu",
                names="g[1-8]",
                node_class="dgx",
                mttf="10250h",
                age=3600.0,
                properties={"gb": 80, "price": 2.0, "nvlink": True, "model": "H100"},
            ),
        ),
    )
    assert [type(value) for value in platform.pools[1].properties.values()] == [int, float, bool, str]


def test_a_gpu_a_node_is_a_unit_of_its_own_kind():
    """If each node has one unit, the unit need not be called a node."""
    assert parse_platform(f'{POOL}unit = "gpu"\n', "m.toml").pools[0].unit == "gpu"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            'name = "m"\nnodes 4\n',
            "m.toml, line 2, column 7: this is not TOML: expected '=' after a key in a key/value pair. "
            "Text needs quotes; a pool begins with [[pools]].",
        ),
        ("name = zeus\n", "m.toml, line 1, column 8: this is not TOML: invalid value."),
        ("name = ", "m.toml, end of the text: this is not TOML: invalid value."),
        ('name = "m"\nname = "n"\n', "m.toml, line 2, column 11: this is not TOML: cannot overwrite a value."),
        (f"nodes = {'9' * 5000}", "m.toml: a number is too long. 'pipistrelle help platforms' lists every key."),
        (f"nodes = {'[' * 5000}", "m.toml: arrays or tables are nested too deep."),
        ("name = '\ud800'", "m.toml: the text is not Unicode. Save the file as UTF-8."),
        ("", "m.toml: the key 'name' is missing: expected name, pools. 'pipistrelle help platforms' lists every key."),
        ('name = "m"\n', "m.toml: the key 'pools' is missing: expected name, pools"),
        (
            'name = "m"\n[[pools]]\nname = "a"\n',
            "m.toml: pools[0]: the key 'nodes' is missing: expected name, nodes.",
        ),
        (
            'nam = "m"\n',
            "m.toml: unknown key 'nam'. Did you mean 'name'? 'pipistrelle help platforms' lists every key.",
        ),
        (f"{HEAD}nods = 2\n", "m.toml: pools[0]: unknown key 'nods'. Did you mean 'nodes'?"),
        (
            f"{POOL}colour = 2\n",
            "m.toml: pools[0]: unknown key 'colour'. Known: name, nodes, units_per_node, unit, prologue, epilogue",
        ),
        (f'{POOL}"a` - at `$.pools" = 2\n', "pools[0]: unknown key 'a` - at `$.pools'."),
        (f'{POOL}[[pools]]\nname = "b"\nnodes = "2"\n', "m.toml: pools[1].nodes: a value of the wrong type: "),
        (f'{HEAD}nodes = "2"', "pools[0].nodes: a value of the wrong type: expected a whole number, found '2'."),
        (f"{HEAD}nodes = true", "expected a whole number, found true."),
        (f"{HEAD}nodes = 2.0", "expected a whole number, found 2.0."),
        (f"{HEAD}nodes = 1e400", "expected a whole number, found inf."),
        (f"{HEAD}nodes = [2]", "expected a whole number, found an array."),
        (f"{HEAD}nodes = 2024-01-01", "expected a whole number, found 2024-01-01."),
        (f"{POOL}units_per_node = false", "pools[0].units_per_node: a value of the wrong type: "),
        ("name = 4\npools = []", "m.toml: name: a value of the wrong type: expected text in quotes, found 4."),
        ('name = "m"\n[pools]\n', "m.toml: pools: a value of the wrong type: expected tables, each headed [[pools]]"),
        ('name = "m"\npools = [1]\n', "m.toml: pools[0]: a value of the wrong type: expected a table, found 1."),
        (f"{POOL}properties = 1", "pools[0].properties: a value of the wrong type: expected a table, found 1."),
        (
            f"{POOL}properties = {{ok = 1, gb = [1]}}",
            "pools[0].properties.gb: a value of the wrong type: "
            "expected true or false, a whole number, a number or text in quotes, found an array.",
        ),
        (f'{POOL}properties = {{"a\\nb" = [1]}}', "pools[0].properties.'a\\nb': a value of the wrong type"),
        (f"{POOL}properties.gb.hbm = 1", "pools[0].properties.gb: a value of the wrong type: "),
        (
            f'{POOL}unit = "nod"',
            "pools[0].unit: not one of the choices: expected 'node', 'core' or 'gpu', found 'nod'. "
            "Did you mean 'node'?",
        ),
        (f"{POOL}unit = 1", "pools[0].unit: a value of the wrong type: expected text in quotes, found 1."),
        (f"{HEAD}nodes = 0", "pools[0].nodes: a count is too small: expected a whole number of at least 1, found 0."),
        (f"{HEAD}nodes = -3", "found -3."),
        (f"{HEAD}nodes = -{'9' * 4000}", "found a number of about 3986 digits."),
        (f"{POOL}units_per_node = 0", "pools[0].units_per_node: a count is too small"),
        (
            f"{POOL}units_per_node = 4",
            "m.toml: pools[0].unit: a node is not several nodes: expected 'core' or 'gpu' with units_per_node = 4, "
            "found 'node'. Name the unit, or leave units_per_node out to hand out whole nodes.",
        ),
        (
            f"{POOL}{POOL.partition(chr(10))[2]}",
            "m.toml: pools[1].name: the pool name 'a' is used twice: expected a name of its own for each pool, "
            "found 'a' in pools[0] too.",
        ),
        ('name = "m"\npools = []\n', "m.toml: pools: a platform has no pool: expected one [[pools]] table or more"),
        (
            f"{HEAD}nodes = 10000001",
            "m.toml: pools: a platform is too large: expected at most 10000000 schedulable units in all, "
            "found 10000001 in 1 pool(s).",
        ),
        (f"{HEAD}nodes = {'9' * 4000}", "found a number of about 3986 digits in 1 pool(s)."),
        ('name = ""\n[[pools]]\nname = "a"\nnodes = 1', "m.toml: name: a platform's name is not valid"),
        (
            'name = "m"\n[[pools]]\nname = "a b"\nnodes = 1',
            "m.toml: pools[0].name: a pool's name is not valid: expected 1 to 64 ASCII letters, digits, '.', '_' or "
            "'-', a letter or digit first, found 'a b'.",
        ),
        (f'name = "m"\n[[pools]]\nname = "{"a" * 65}"\nnodes = 1', "a pool's name is not valid"),
        (f"{POOL}properties = {{'' = 1}}", "pools[0].properties: a property's name is not valid"),
        (
            f"{POOL}properties = {{gb = inf}}",
            "pools[0].properties.gb: a property is not finite: expected text, a finite",
        ),
        (f"{POOL}properties = {{gb = -nan}}", "found nan."),
        (
            f"{POOL}properties = {{gb = 9223372036854775808}}",
            "pools[0].properties.gb: a property is too large a number: expected a whole number of 64 bits, "
            "found 9223372036854775808.",
        ),
    ],
)
def test_a_bad_text_is_refused_with_its_place(text, message):
    """Each error has one message with place, rule, value and what to do."""
    with pytest.raises(PlatformError) as caught:
        parse_platform(text, "m.toml")

    assert message in str(caught.value)
    assert str(caught.value).startswith("m.toml")
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, PipistrelleError)


@given(st.text())
def test_any_text_is_a_machine_or_an_error(text):
    """Random text raises `PlatformError` and nothing else."""
    with pytest.raises(PlatformError):
        parse_platform(text, "random.toml")


WORDS = st.sampled_from(
    [
        "name",
        "description",
        "source",
        "pools",
        "nodes",
        "units_per_node",
        "unit",
        "properties",
        "x",
        "[",
        "]",
        "[[pools]]\n",
        "{",
        "}",
        "=",
        ",",
        ".",
        "\n",
        '"',
        "'a'",
        '"node"',
        '"core"',
        "1",
        "-1",
        "1.5",
        "nan",
        "true",
        "2024-01-01",
        "07:30:00",
        "#",
        "\\",
    ]
)
LINES = st.builds(
    "{} = {}\n".format,
    st.sampled_from(["name", "nodes", "unit", "units_per_node", "properties", "pools", "properties.x", "y"]),
    st.sampled_from(
        ["1", "0", "'a'", "'node'", "'core'", "true", "1.5", "[]", "[1]", "{}", "{x=1}", "2024-01-01", "nan"]
    ),
)


@given(
    st.one_of(
        st.lists(WORDS, max_size=30).map(" ".join),
        st.lists(st.one_of(LINES, st.just("[[pools]]\n"), st.just("[pools.properties]\n")), max_size=8).map("".join),
        st.lists(LINES, max_size=3).map(lambda lines: 'name = "m"\n[[pools]]\n' + "".join(lines)),
    )
)
def test_any_text_of_the_formats_words_is_a_machine_or_an_error(text):
    """Nearly valid text raises `PlatformError` and nothing else; a machine that is read survives writing."""
    try:
        platform = parse_platform(text, "random.toml")
    except PlatformError:
        return

    assert parse_platform(to_toml(platform), "again.toml") == platform


NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,8}", fullmatch=True)
TEXTS = st.text(max_size=20)
PROPERTIES = st.dictionaries(
    NAMES,
    st.one_of(TEXTS, st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False), st.booleans()),
    max_size=3,
)
POOLS = st.one_of(
    st.builds(Pool, name=NAMES, nodes=st.integers(1, 1000), properties=PROPERTIES),
    st.builds(Pool, name=NAMES, nodes=st.just(3), node_class=NAMES, mttf=st.floats(1e-9, 1e9), age=st.floats(0, 1e9)),
    NAMES.map(lambda name: Pool(name=name, nodes=3, names=f"n{name}[08-10]", mttf="2h")),
    st.builds(
        Pool,
        name=NAMES,
        nodes=st.integers(1, 1000),
        units_per_node=st.integers(1, 100),
        unit=st.sampled_from(["core", "gpu"]),
        properties=PROPERTIES,
    ),
)
PLATFORMS = st.builds(
    lambda name, description, source, pools: Platform(
        name=name, description=description, source=source, pools=tuple(pools)
    ),
    st.text(min_size=1, max_size=20).filter(lambda text: text.isprintable() and text.strip()),
    TEXTS,
    TEXTS,
    st.lists(POOLS, min_size=1, max_size=4, unique_by=lambda pool: pool.name),
)


@given(PLATFORMS)
def test_a_machine_written_is_read_back_the_same(platform):
    """Writing and reading keep every value and its type, whatever characters the texts hold."""
    again = parse_platform(to_toml(platform), "again.toml")

    assert again == platform
    for before, after in zip(platform.pools, again.pools, strict=True):
        for value, copy in zip(before.properties.values(), after.properties.values(), strict=True):
            assert type(value) is type(copy)
            if isinstance(value, float):
                assert math.copysign(1, value) == math.copysign(1, copy)


def test_the_text_written():
    """Keys are in the format's order, empty texts and properties are left out."""
    platform = Platform(
        name='a "b"',
        pools=(
            Pool(name="x", nodes=3),
            Pool(name="y", nodes=1, units_per_node=2, unit="gpu", properties={"v1.2": True}),
        ),
    )

    assert to_toml(platform) == (
        'name = "a \\"b\\""\n'
        '\n[[pools]]\nname = "x"\nnodes = 3\nunits_per_node = 1\nunit = "node"\n'
        '\n[[pools]]\nname = "y"\nnodes = 1\nunits_per_node = 2\nunit = "gpu"\n'
        '\n[pools.properties]\n"v1.2" = true\n'
    )
