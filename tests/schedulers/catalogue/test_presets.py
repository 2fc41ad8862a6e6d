"""Policies as TOML files: the library, and a user's own."""

import tomllib
from pathlib import Path

import pytest

from pipistrelle.schedulers.catalogue.presets import Preset, library, parse_preset
from pipistrelle.schedulers.catalogue.registry import make_policy
from pipistrelle.schedulers.composed import ComposedPolicy
from pipistrelle.schedulers.orders.fixed import Fcfs
from pipistrelle.schedulers.orders.pbs import PbsOptions, PbsOrder
from pipistrelle.schedulers.policy.errors import FormulaError, PolicyError

PBS = 'order = "pbs"\n[order-options]\n'
BINS = 'order = "bins"\n[[order-options.bins]]\n'


def refused(path: Path) -> str:
    """Return the text of the error that a file leads to."""
    with pytest.raises((PolicyError, FormulaError)) as caught:
        make_policy(str(path))
    assert caught.value.exit_code == 2
    return str(caught.value)


@pytest.mark.parametrize("name", list(library()))
def test_a_preset_of_the_library(project_root: Path, name: str) -> None:
    """It names all its parts, has a description of one line, and is a policy named like the file."""
    preset = library()[name]
    keys = tomllib.loads((project_root / "schedulers" / "library" / f"{name}.toml").read_text(encoding="utf-8"))

    assert tuple(keys)[:4] == Preset.__struct_fields__[:4]
    assert preset.description
    assert "\n" not in preset.description
    assert make_policy(name).name == name


def test_the_new_ones_are_what_they_are_called() -> None:
    """The two rules that reserve single units are presets."""
    assert library()["conservative"].parts == {"order": "fcfs", "backfill": "conservative", "placement": "lowest"}
    assert library()["easy-slices"].parts == {"order": "fcfs", "backfill": "easy-slices", "placement": "lowest"}


def test_a_users_own_file(tmp_path: Path) -> None:
    """It is named like the file, and its parts can be replaced."""
    path = tmp_path / "mine.toml"
    path.write_text('# ours\norder = "sjf"\nbackfill = "conservative"\n')

    assert isinstance(make_policy(str(path)), ComposedPolicy)
    assert make_policy(str(path)).name == "mine"
    assert make_policy(str(path), backfill="easy").name == "mine+backfill=easy"
    assert parse_preset(path.read_text(), "x") == Preset("", "sjf", "conservative", "lowest")


def test_an_empty_file_has_the_defaults(tmp_path: Path) -> None:
    """No key must be there; a byte order mark is no key."""
    path = tmp_path / "plain.toml"
    path.write_bytes(b"\xef\xbb\xbf")

    assert make_policy(str(path)).name == "plain"
    assert parse_preset("", "x") == Preset()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('backfill = "conservativ"', "mine.toml: there is no backfill 'conservativ'. Did you mean 'conservative'?"),
        ('order = "fifo"', "there is no order 'fifo'. Known: bins, fcfs, maui, pbs, sjf."),
        ('placement = "lowst"', "Did you mean 'lowest'?"),
        ('odrer = "fcfs"', "mine.toml: unknown key 'odrer'. Did you mean 'order'?"),
        ("[backfilling]\nrule = 1", "unknown key 'backfilling'. Did you mean 'backfill'?"),
        ('"\\u001b[2J" = 1', "unknown key '\\x1b[2J'"),
        (
            'order-options = "x"',
            "mine.toml: order-options: a value of the wrong type: expected a table, found 'x'",
        ),
        ("[order-options]\nx = 1", "mine.toml: the order 'fcfs' has no options: expected order = bins or maui or pbs"),
        (
            f"{PBS}formla = '1'",
            "mine.toml: order-options: unknown key 'formla'. Did you mean 'formula'?",
        ),
        (f"{PBS}formula = 1", "order-options.formula: a value of the wrong type: expected text in quotes, found 1."),
        (
            f"{PBS}formula = 'ncpu'",
            "order-options.formula, column 1: unknown name: found 'ncpu'. Did you mean 'ncpus'?",
        ),
        (f"{PBS}decay-time = '3 fortnights'", "order-options: an invalid value: expected one of ms, s, min"),
        (f"{PBS}decay-time = -1", "expected a decay-time not below 0, found -1."),
        (f"{PBS}decay-factor = nan", "expected a decay-factor from 0 to 1, found nan."),
        (f"{PBS}decay-factor = 1{'0' * 400}", "mine.toml: order-options"),
        (
            f"{PBS}fairshare-entity = 'team'",
            "order-options.fairshare-entity: not one of the choices: expected 'user', 'group', 'account', 'queue' or",
        ),
        (f"{PBS}queue-priorities = {{a = 'x'}}", "order-options.queue-priorities.a: a value of the wrong type"),
        (f"{PBS}queue-priorities = {{a = inf}}", "expected a finite queue priority, found inf for 'a'."),
        (f"{PBS}fairshare-shares = {{a = -1}}", "expected shares not below 0, found -1.0 for 'a'."),
        (
            "backfill = 'depth'\n[backfill-options]\ndepth = -1",
            "backfill-options.depth: an invalid value: expected a whole number >= 0, found -1.",
        ),
        (
            f"{BINS}smallest = 1",
            "mine.toml: order-options.bins[0]: the key 'name' is missing: expected name, smallest.",
        ),
        (
            f"{BINS}name = 'a'\nsmallest = 0",
            "order-options.bins[0].smallest: an invalid value: expected a whole number >= 1, found 0.",
        ),
        (
            f"{BINS}name = 'a'\nsmallest = 1\nbost = 1",
            "order-options.bins[0]: unknown key 'bost'. Did you mean 'boost'?",
        ),
        (
            f"{BINS}name = 'a'\nsmallest = '1'",
            "bins[0].smallest: a value of the wrong type: expected a whole number, found '1'.",
        ),
        ("order = 'bins'\n[order-options]\nbins = 3", "expected tables, each headed [[order-options.bins]], found 3."),
        (
            f"{BINS}name = 'a'\nsmallest = 1\nboost = 'x'",
            "bins[0]: an invalid value: expected a number and a unit, as 24h, for 'boost', found 'x'.",
        ),
        (f"{BINS}name = 'a'\nsmallest = 1\nlongest-walltime = 0", "expected a longest-walltime above 0, found 0"),
        (
            f"{BINS}name = 'a'\nsmallest = 1\n[[order-options.bins]]\nname = 'b'\nsmallest = 1",
            "expected bins with different smallest sizes, found two with 1.",
        ),
        ("order = 3", "mine.toml: order: a value of the wrong type: expected text in quotes, found 3."),
        ('order = ["sjf"]', "expected text in quotes, found an array"),
        ("order = sjf", "mine.toml, line 1, column 9: this is not TOML: invalid value. Texts need quotes"),
        ('order = "sjf', "this is not TOML"),
        ('order = "sjf"\norder = "sjf"', "this is not TOML"),
        (f"order = {'9' * 5000}", "a number is too long"),
        ("order = " + "[" * 100_000, "nested too deep"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, text: str, says: str) -> None:
    """The message says where, what is wrong, and what is available."""
    path = tmp_path / "mine.toml"
    path.write_text(text)

    assert says in refused(path)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """Absent, a folder, not text, a name that no file can have."""
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "bytes.toml").write_bytes(b'order = "\xff"')

    assert "there is no such file" in refused(tmp_path / "absent.toml")
    assert "cannot read the file (Is a directory)" in refused(tmp_path / "folder.toml")
    assert "bytes.toml, byte 9: the file is not UTF-8 text" in refused(tmp_path / "bytes.toml")
    assert "cannot read the file" in refused(tmp_path / "nu\0ll.toml")


def test_options_of_a_preset_and_of_the_caller(tmp_path: Path) -> None:
    """The caller's go before the file's, tables in them are merged, and a part that is replaced loses its own."""
    path = tmp_path / "mine.toml"
    path.write_text(f"{PBS}formula = 'ncpus'\nqueue-priorities = {{a = 1, b = 2}}\n")

    policy = make_policy(str(path), order_options={"queue-priorities": {"b": 3}})
    assert isinstance(policy, ComposedPolicy)
    assert isinstance(policy.order, PbsOrder)
    assert policy.order.options == PbsOptions("ncpus", {"a": 1, "b": 3})
    assert isinstance(make_policy(str(path), order="fcfs").order, Fcfs)
    with pytest.raises(PolicyError, match="the order 'fcfs' has no options: expected order = bins or maui or pbs"):
        make_policy(str(path), order="fcfs", order_options={"formula": "1"})
    with pytest.raises(PolicyError, match=r"'x\.py:Y' has no options: expected a TOML file or one of .*, found depth"):
        make_policy("x.py:Y", backfill_options={"depth": 1})
