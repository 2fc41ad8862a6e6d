"""What a user gets from ``pip install .``: the wheel, its data files, its entry points."""

import ast
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from pipistrelle.protocol.fields import package_version

ROOT = Path(__file__).resolve().parent.parent
#: what schedulers in other languages are built into
BUILT = ("node_modules", "target")
LEFT_OUT = shutil.ignore_patterns(
    "__pycache__", ".*", "*.egg-info", "build", "dist", "pipistrelle-out", "tests", *BUILT
)
#: the package itself, and the documentation's pages: {package: its folder}
ODD = {"pipistrelle": "cli/top", "pipistrelle.docs": "docs"}


@pytest.fixture(scope="module")
def pyproject() -> dict[str, Any]:
    """Return pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """Build the wheel, as pip does, from a copy that holds no left-overs of earlier builds."""
    source = tmp_path_factory.mktemp("wheel") / "source"
    shutil.copytree(ROOT, source, ignore=LEFT_OUT)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(source.parent), "."]
    built = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return zipfile.ZipFile(next(source.parent.glob("pipistrelle-*.whl")))


def test_packages_are_the_folders(pyproject: dict[str, Any]) -> None:
    """``packages``, written by hand, names every folder with an ``__init__.py``, mapped to itself, and `ODD`."""
    setuptools = pyproject["tool"]["setuptools"]
    tops = [path for path in ROOT.iterdir() if not (path / "pyvenv.cfg").exists()]  # except for environments
    found = [path.parent.relative_to(ROOT) for top in tops for path in top.glob("**/__init__.py")]
    below = {".".join(folder.parts) for folder in found}
    folders = {name for name in below if not name.startswith(("tests", "docs", "benchmarks", "build", "."))}

    folders.remove("cli.top")
    assert {f"pipistrelle.{folder}" for folder in folders} | {*ODD} == set(setuptools["packages"])
    mapped = {f"pipistrelle.{folder}": folder for folder in folders if "." not in folder}
    assert mapped | ODD == setuptools["package-dir"]


def test_the_citation_names_the_version(pyproject: dict[str, Any]) -> None:
    """CITATION.cff has the version and the licence of the package, and the code has its version."""
    project = pyproject["project"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8").splitlines()

    assert f"version: {project['version']}" in citation
    assert f"license: {project['license']}" in citation
    assert package_version() == project["version"]


def test_compiled_wheels_are_built_for_each_python_named(pyproject: dict[str, Any]) -> None:
    """cibuildwheel builds for the Pythons of the classifiers, from the lowest supported version."""
    project = pyproject["project"]
    names = [name.rpartition(" ")[2] for name in project["classifiers"] if "Python :: 3." in name]

    assert [f"cp{name.replace('.', '')}-*" for name in names] == pyproject["tool"]["cibuildwheel"]["build"]
    assert project["requires-python"] == f">={names[0]}"


def test_every_package_is_typed(pyproject: dict[str, Any]) -> None:
    """Each package's folder holds the marker that tells type checkers to read its annotations."""
    folders = set(pyproject["tool"]["setuptools"]["package-dir"].values()) - {"docs"}
    assert not [name for name in folders if not _marker(name).is_file()]


def _marker(folder: str) -> Path:
    return ROOT / folder / "py.typed"


def test_the_wheel_holds_all_modules_and_data(wheel: zipfile.ZipFile, pyproject: dict[str, Any]) -> None:
    """Modules, markers, bundled platforms, workloads and schedulers, the protocol and its schema are in the wheel."""
    folders = set(pyproject["tool"]["setuptools"]["package-dir"].values()) - {*ODD.values()}
    wanted = {path for folder in folders for path in (ROOT / folder).rglob("*.py")}
    wanted = {path for path in wanted if path.parent.name != "top"} | {
        ROOT / "docs" / "index.md",
        *(ROOT / "docs").glob("*/*.md"),
    }
    wanted |= {_marker(folder) for folder in folders}
    wanted |= {*(ROOT / "platforms").rglob("library/*.toml"), *(ROOT / "traces" / "library").glob("*.swf.gz")}
    wanted |= {*(ROOT / "schedulers").rglob("library/*.toml"), *(ROOT / "runs").rglob("library/*.toml")}
    wanted |= {*(ROOT / "cli" / "skeletons").iterdir()}
    wanted |= {path for path in (ROOT / "reports").rglob("web/**/*") if path.is_file()}
    wanted |= {ROOT / "protocol" / "SPEC.md", ROOT / "protocol" / "schema.json"}

    names = {f"pipistrelle/{path.relative_to(ROOT).as_posix()}" for path in wanted}
    names |= {"pipistrelle/__init__.py", "pipistrelle/__main__.py", "pipistrelle/py.typed"}
    assert names <= set(wheel.namelist())


def test_the_wheel_takes_no_other_name(wheel: zipfile.ZipFile) -> None:
    """Nothing but ``pipistrelle`` and its metadata reaches site-packages; no tests, no generic names."""
    tops = {name.partition("/")[0] for name in wheel.namelist()}

    assert {top for top in tops if not top.endswith(".dist-info")} == {"pipistrelle"}
    assert not [name for name in wheel.namelist() if "__pycache__" in name or "/vectors/" in name]


def test_the_wheel_has_the_programs(wheel: zipfile.ZipFile) -> None:
    """``pipistrelle`` and ``pipistrelle-batsim`` are entry points of the wheel."""
    name = next(name for name in wheel.namelist() if name.endswith("entry_points.txt"))

    text = wheel.read(name).decode()
    assert "pipistrelle = pipistrelle.cli.__main__:main" in text
    assert "pipistrelle-batsim = pipistrelle.cli.__main__:batsim" in text


def test_every_compiled_module_exists(listed: tuple[str, ...]) -> None:
    """Each module that setup.py names is a module, named once and in order."""
    assert all((ROOT / name).is_file() for name in listed)
    assert list(listed) == sorted(set(listed))


@pytest.fixture
def listed() -> tuple[str, ...]:
    """Return what setup.py has mypyc compile."""
    tree = ast.parse((ROOT / "setup.py").read_text(encoding="utf-8"))
    names = [node for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "COMPILED"]
    return ast.literal_eval(names[0].value)


@pytest.mark.parametrize(
    ("asked", "command", "message"),
    [
        ("yes", "bdist_wheel", "PIPISTRELLE_COMPILE is 'yes': expected 1 (compile) or 0"),
        ("1", "editable_wheel", "an editable install would not see its edits; install without -e"),
    ],
)
def test_an_impossible_compiled_build_is_rejected(tmp_path: Path, asked: str, command: str, message: str) -> None:
    """One line says why; nothing is built."""
    env = {**os.environ, "PIPISTRELLE_COMPILE": asked}
    words = [sys.executable, str(ROOT / "setup.py"), command]
    told = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)

    assert told.returncode == 1
    assert told.stderr.strip().endswith(message)
    assert "Traceback" not in told.stderr
    assert not list(tmp_path.iterdir())
