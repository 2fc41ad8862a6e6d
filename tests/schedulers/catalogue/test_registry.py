"""Schedulers by name, from files and modules, and policies put together from parts."""

import importlib.metadata
import sys
from importlib.metadata import EntryPoint
from math import prod
from pathlib import Path
from types import ModuleType

import pytest

from pipistrelle.schedulers.catalogue.names import GROUP, PARTS, is_policy_name, registered
from pipistrelle.schedulers.catalogue.parts import compose
from pipistrelle.schedulers.catalogue.presets import library
from pipistrelle.schedulers.catalogue.registry import describe, make_policy
from pipistrelle.schedulers.composed import ComposedPolicy
from pipistrelle.schedulers.orders.fixed import Sjf
from pipistrelle.schedulers.policy.errors import PolicyError
from pipistrelle.schedulers.policy.interfaces import Policy

POLICY = """
class Mine:
    name = "mine"
    order = None
    def decide(self, view):
        pass

def make():
    return Mine()

def broken():
    raise RuntimeError("no licence")

def picky(size):
    return Mine()

incomplete = dict
number = 7
_hidden = Mine
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    """Return the path of a file with policies."""
    path = tmp_path / "my_policies.py"
    path.write_text(POLICY)
    return str(path)


def failure(name: str, **parts: str) -> str:
    """Return the text of the error that a name leads to."""
    with pytest.raises(PolicyError) as caught:
        make_policy(name, **parts)
    assert caught.value.exit_code == 2
    return str(caught.value)


def test_the_presets_are_registered_and_described() -> None:
    """Each can be made, has a place among all that can be named, and one line about it."""
    ours = {
        "conservative",
        "easy",
        "easy-sjbf",
        "easy-slices",
        "easy_bf_fast",
        "fcfs",
        "filler",
        "maui",
        "pbs",
        "recorded",
        "titan-bins",
    }

    assert {*library(), "maui", "recorded"} == ours <= set(registered())
    assert registered() == sorted(registered())
    assert {name: make_policy(name).name for name in ours} == {name: name for name in ours}
    assert describe("easy") == "EASY backfilling: one reservation, jobs pass in the order of submission"
    assert all(describe(name) for name in ours)


def test_other_packages_join(monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry point is a scheduler by name; none hides a bundled name; a broken one is described."""

    def theirs() -> Policy:
        """Return an external policy."""
        return compose()

    package = ModuleType("their_package")
    package.theirs = theirs  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "their_package", package)
    points = [
        EntryPoint("theirs", "their_package:theirs", GROUP),
        EntryPoint("easy", "absent_module_of_theirs:easy", GROUP),
        EntryPoint("broken", "absent_module_of_theirs:broken", GROUP),
    ]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda *, group: points if group == GROUP else [])

    assert registered() == sorted({*library(), "maui", "recorded", "slurm", "slurmctld", "theirs", "broken"})
    assert make_policy("theirs").name == "fcfs+none+lowest"
    assert make_policy("easy").name == "easy"
    assert describe("theirs") == "Return an external policy."
    assert describe("broken").startswith("not available: the scheduler cannot be loaded (ModuleNotFoundError")
    assert is_policy_name("theirs")
    assert "broken = absent_module_of_theirs:broken" in failure("broken")
    assert "'theirs' has no parts" in failure("theirs", order="sjf")


def test_each_call_makes_a_new_policy() -> None:
    """Two runs never share one by accident."""
    assert make_policy("easy") is not make_policy("easy")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("eazy", "Did you mean 'easy'?"),
        ("EASY-SJBF", "Known: conservative, easy, easy-sjbf, easy-slices, easy_bf_fast, fcfs, filler"),
        ("fillr", "Did you mean 'filler'?"),
        ("", "Known: conservative, easy, easy-sjbf, easy-slices, easy_bf_fast, fcfs, filler"),
    ],
)
def test_an_unknown_name_brings_the_closest(name: str, hint: str) -> None:
    """The error names the request, the available names, and how to give a file."""
    text = failure(name)

    assert f"there is no scheduler '{name}'" in text
    assert hint in text
    assert "file.toml or file.py:CLASS" in text


def test_a_python_file_without_a_class_is_told_its_classes(tmp_path: Path) -> None:
    """The file is not run; one without classes, or that is no Python, gets the form."""
    mine = tmp_path / "mine.py"
    for content, names in (
        ("raise SystemExit\nclass First: ...\nclass Second: ...\n", f"{mine}:First or {mine}:Second."),
        ("x = 1\n", f"{mine}:CLASS."),
        ("class :\0", f"{mine}:CLASS."),
    ):
        mine.write_text(content, encoding="utf-8")
        assert failure(str(mine)).endswith(f"To run a class of this file, name it: {names}")


def test_a_class_or_function_in_a_file(file: str) -> None:
    """Anything that returns a policy when called without arguments, private names included."""
    assert [make_policy(f"{file}:{name}").name for name in ("Mine", "make", "_hidden")] == ["mine"] * 3


def test_an_object_in_a_module() -> None:
    """A module that can be imported is as good as a file."""
    assert make_policy("pipistrelle.schedulers.catalogue.parts:compose").name == "fcfs+none+lowest"


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("Mne", "it has no 'Mne'. Did you mean 'Mine'?"),
        ("broken", "cannot create the policy (RuntimeError: no licence)"),
        ("picky", "expected a class or function without required arguments"),
        ("number", "cannot create the policy (TypeError: 'int' object is not callable)"),
        ("incomplete", "this is not a policy: it has no 'name': expected an object with name, order and decide(view)"),
        ("", "it has no ''"),
    ],
)
def test_file_without_the_policy_is_reported(file: str, what: str, says: str) -> None:
    """The error names the file or the whole name, and what is missing."""
    text = failure(f"{file}:{what}")

    assert says in text
    assert file in text


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("import absent_module_of_mine", "ModuleNotFoundError: No module named 'absent_module_of_mine'"),
        ("def f(:\n", "SyntaxError"),
        ("raise OSError('no such device')", "OSError: no such device"),
        ("x = '\0'", "cannot import it ("),
    ],
)
def test_file_that_cannot_be_imported_is_reported(tmp_path: Path, content: str, says: str) -> None:
    """The user's code may raise anything; the message is one line with the kind of error."""
    path = tmp_path / "bad.py"
    path.write_text(content)
    text = failure(f"{path}:Mine")

    assert says in text
    assert str(path) in text


def test_missing_file_or_module_is_reported(tmp_path: Path) -> None:
    """No traceback for a wrong path."""
    assert "there is no such file" in failure(f"{tmp_path}/absent.py:Mine")
    assert "No module named 'absent_module_of_mine'" in failure("absent_module_of_mine:Mine")
    assert "cannot import it" in failure(":Mine")
    assert "cannot import it" in failure("..relative:Mine")


def test_two_files_of_one_name_are_two_files(tmp_path: Path) -> None:
    """Loading one does not hide the other."""
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.py").write_text(POLICY.replace('"mine"', f'"{folder}"'))
    names = [make_policy(f"{tmp_path}/{folder}/mine.py:Mine").name for folder in ("a", "b", "a")]

    assert names == ["a", "b", "a"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("easy", True),
        ("easy-sjbf", True),
        ("my.py:Mine", True),
        ("my.toml", True),
        ("a folder/my.toml", True),
        ("package.module:make", True),
        ("./program", False),
        ("eazy", False),
        ("python my.py", False),
        ("python my.py:Mine", False),
        ("python my.py {endpoint} my.toml", False),
        ("python my.py {endpoint} a:b", False),
        ("tcp://127.0.0.1:28000", False),
    ],
)
def test_name_is_distinguished_from_a_program(text: str, expected: bool) -> None:
    """Registered names and MODULE:OBJECT are policies; endpoints and command lines are not."""
    assert is_policy_name(text) is expected


def test_a_path_may_have_spaces(tmp_path: Path) -> None:
    """An existing file is used, not a program of two words; without the file, a program is."""
    (tmp_path / "my policies").mkdir()
    (tmp_path / "my policies" / "mine.py").write_text(POLICY)

    assert is_policy_name(f"{tmp_path}/my policies/mine.py:Mine")
    assert not is_policy_name(f"{tmp_path}/my policies/other.py:Mine")
    assert make_policy(f"{tmp_path}/my policies/mine.py:Mine").name == "mine"


def test_parts_replace_those_of_a_preset() -> None:
    """The policy's name includes the replaced parts."""
    policy = make_policy("easy", order="sjf", backfill="none", placement="lowest")

    assert isinstance(policy, ComposedPolicy)
    assert policy.name == "easy+order=sjf+backfill=none+placement=lowest"
    assert type(policy.order) is Sjf


def test_only_presets_have_parts(file: str) -> None:
    """A policy of the user's own cannot be taken apart; the options that were given are named."""
    text = failure(f"{file}:Mine", order="sjf", backfill="none")

    assert "has no parts to replace by --order --backfill" in text
    assert (
        "expected a TOML file or one of conservative, easy, easy-sjbf, easy-slices, easy_bf_fast, fcfs, filler" in text
    )
    assert "no parts" in failure("eazy", order="sjf")


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ({"order": "fifo"}, "there is no order 'fifo'. Known: bins, fcfs, maui, pbs, sjf."),
        ({"order": "sfj"}, "there is no order 'sfj'. Did you mean 'sjf'?"),
        ({"backfill": "eazy"}, "there is no backfill 'eazy'. Did you mean 'easy'?"),
        ({"backfill": "first-fit"}, "Did you mean 'firstfit'?"),
        ({"placement": "lowst"}, "there is no placement 'lowst'. Did you mean 'lowest'?"),
    ],
)
def test_an_unknown_part_brings_the_closest(parts: dict[str, str], says: str) -> None:
    """Each axis has its own names."""
    with pytest.raises(PolicyError) as caught:
        compose(**parts)

    assert says in str(caught.value)
    assert says in failure("easy", **parts)


def test_every_listed_name_can_be_made() -> None:
    """The names that the command line lists are those of the tables of parts."""
    for axis, parts in PARTS.items():
        assert all(compose(**{axis: part}) for part in parts)


def test_any_order_goes_with_any_backfilling_and_placement() -> None:
    """The axes are orthogonal, and the name tells all three unless one is given."""
    names = [
        compose(order=order, backfill=backfill, placement=placement).name
        for order in PARTS["order"]
        for backfill in PARTS["backfill"]
        for placement in PARTS["placement"]
    ]

    assert len(set(names)) == prod(len(parts) for parts in PARTS.values())
    assert "sjf+easy-sjbf+lowest" in names
    assert compose(name="mine").name == "mine"
