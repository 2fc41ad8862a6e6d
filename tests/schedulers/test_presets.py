"""Policies as TOML files: the library, and a user's own."""

import tomllib
from pathlib import Path

import pytest

from pipistrelle.schedulers.policy import ComposedPolicy, PolicyError
from pipistrelle.schedulers.presets import Preset, library, parse_preset
from pipistrelle.schedulers.registry import make_policy


def refused(path: Path) -> str:
    """Return the text of the error that a file leads to."""
    with pytest.raises(PolicyError) as caught:
        make_policy(str(path))
    assert caught.value.exit_code == 2
    return str(caught.value)


@pytest.mark.parametrize("name", list(library()))
def test_a_preset_of_the_library(project_root: Path, name: str) -> None:
    """It names all its parts, has a description of one line, and is a policy called as the file is."""
    preset = library()[name]
    keys = tomllib.loads((project_root / "schedulers" / "library" / f"{name}.toml").read_text(encoding="utf-8"))

    assert tuple(keys) == Preset.__struct_fields__
    assert preset.description
    assert "\n" not in preset.description
    assert make_policy(name).name == name


def test_the_new_ones_are_what_they_are_called() -> None:
    """The two rules that reserve single units are presets."""
    assert library()["conservative"].parts == {"order": "fcfs", "backfill": "conservative", "placement": "lowest"}
    assert library()["easy-slices"].parts == {"order": "fcfs", "backfill": "easy-slices", "placement": "lowest"}


def test_a_users_own_file(tmp_path: Path) -> None:
    """It is called as the file is, and its parts can be replaced."""
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
        ('order = "fifo"', "there is no order 'fifo'. Known: fcfs, sjf."),
        ('placement = "lowst"', "Did you mean 'lowest'?"),
        ('odrer = "fcfs"', "mine.toml: unknown key 'odrer'. Did you mean 'order'?"),
        ("[backfilling]\nrule = 1", "unknown key 'backfilling'. Did you mean 'backfill'?"),
        ('"\\u001b[2J" = 1', "unknown key '?[2J'"),
        ("order = 3", "mine.toml: order: a value of the wrong type: expected text, found 3."),
        ('order = ["sjf"]', "expected text, found ['sjf']"),
        ("order = sjf", "mine.toml, line 1, column 9: this is not TOML: invalid value. Texts need quotes"),
        ('order = "sjf', "this is not TOML"),
        ('order = "sjf"\norder = "sjf"', "this is not TOML"),
        (f"order = {'9' * 5000}", "a number is too long"),
        ("order = " + "[" * 100_000, "nested too deep"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, text: str, says: str) -> None:
    """The message says where, what is wrong, and what there is."""
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
