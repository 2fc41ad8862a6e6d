"""The public names of ``import pipistrelle``: cheap to import, typed, documented, and all of them used by a script."""

import ast
import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import fields

import pipistrelle
from pipistrelle.api.options import RunKeywords
from pipistrelle.runs.description.spec import RunSpec

ROOT = Path(__file__).resolve().parent.parent.parent
SCRIPT = ROOT / "tests" / "typing" / "public_names.py"


def for_checkers() -> dict[str, tuple[str, str]]:
    """Return {public name: (module, name in it)} of the imports that only type checkers see."""
    tree = ast.parse((ROOT / "cli" / "top" / "__init__.py").read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    found = {}
    for node in block.body:
        if isinstance(node, ast.ImportFrom):
            assert node.module is not None
            found |= {
                one.asname or one.name: (node.module.removeprefix("pipistrelle."), one.name) for one in node.names
            }
        elif isinstance(node, ast.Assign):
            found[ast.unparse(node.targets[0])] = found.pop(ast.unparse(node.value))
    return found


def test_type_checkers_see_the_names_that_are_imported() -> None:
    """The imports under TYPE_CHECKING are the table that `__getattr__` uses."""
    assert for_checkers() == pipistrelle._NAMES


@pytest.mark.parametrize("name", pipistrelle.__all__)
def test_every_public_name_exists_and_has_a_docstring(name: str) -> None:
    """Each name is a class or function with a docstring of its own."""
    thing = getattr(pipistrelle, name)

    assert callable(thing)
    if Path(sys.modules[thing.__module__].__file__ or "").suffix == ".py":  # what is compiled keeps no docstrings
        assert inspect.getdoc(thing)
    assert not name.startswith("_")


def test_the_script_uses_every_public_name() -> None:
    """tests/typing/public_names.py, which mypy checks, uses each name."""
    tree = ast.parse(SCRIPT.read_text(encoding="utf-8"))
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "pp"
    }

    assert set(pipistrelle.__all__) - used == set()


@pytest.mark.slow
def test_the_script_runs(tmp_path: Path) -> None:
    """What mypy has checked also runs."""
    environment = {**os.environ, "TMPDIR": str(tmp_path), "MPLBACKEND": "agg"}
    run = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True, env=environment, check=False)

    assert run.returncode == 0, run.stderr
    assert "waited" in run.stdout


def test_importing_the_package_imports_nothing_else() -> None:
    """``import pipistrelle`` imports neither other modules of ours nor other packages."""
    code = "import sys; before = set(sys.modules); import pipistrelle; print(sorted(set(sys.modules) - before))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    new = ast.literal_eval(run.stdout)

    assert {name.partition(".")[0] for name in new} - set(sys.stdlib_module_names) == {"pipistrelle"}
    assert [name for name in new if name.startswith("pipistrelle")] == ["pipistrelle"]


def test_a_wrong_name_gives_the_closest_one() -> None:
    """The error of a misspelt name suggests the right one."""
    with pytest.raises(AttributeError, match=r"has no attribute 'runn'. Did you mean 'run'"):
        pipistrelle.runn  # type: ignore[attr-defined]  # noqa: B018


def test_names_are_completed() -> None:
    """``dir`` has all public names, for completion in notebooks."""
    assert set(pipistrelle.__all__) < set(dir(pipistrelle))


def test_the_keywords_of_run_are_the_options_of_the_command() -> None:
    """Each field of a run's description is a keyword, except for those that the run records."""
    own = {"workload", "platform", "scheduler", "files", "resumed"}

    assert set(RunKeywords.__annotations__) == {one.name for one in fields(RunSpec)} - own
