"""What a user gets from ``pip install .``: the wheel, its data files, its entry points."""

import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

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
    below = {".".join(path.parent.relative_to(ROOT).parts) for path in ROOT.glob("*/**/__init__.py")}
    folders = {name for name in below if not name.startswith(("tests", "docs", "benchmarks", "build", "."))}

    folders.remove("cli.top")
    assert {f"pipistrelle.{folder}" for folder in folders} | {*ODD} == set(setuptools["packages"])
    mapped = {f"pipistrelle.{folder}": folder for folder in folders if "." not in folder}
    assert mapped | ODD == setuptools["package-dir"]


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
    wanted = {path for path in wanted if path.parent.name != "top"} | set((ROOT / "docs").glob("*.md"))
    wanted |= {_marker(folder) for folder in folders}
    wanted |= {*(ROOT / "platforms").rglob("library/*.toml"), *(ROOT / "traces" / "library").glob("*.swf.gz")}
    wanted |= {*(ROOT / "schedulers" / "library").glob("*.toml")}
    wanted |= {*(ROOT / "cli" / "skeletons").iterdir()}
    wanted |= {path for path in (ROOT / "studies" / "page" / "web").rglob("*") if path.is_file()}
    wanted |= {ROOT / "protocol" / "SPEC.md", ROOT / "protocol" / "schema.json"}

    names = {f"pipistrelle/{path.relative_to(ROOT).as_posix()}" for path in wanted}
    names |= {"pipistrelle/__init__.py", "pipistrelle/__main__.py", "pipistrelle/py.typed"}
    assert names <= set(wheel.namelist())


def test_the_wheel_takes_no_other_name(wheel: zipfile.ZipFile) -> None:
    """Nothing but ``pipistrelle`` and its metadata reaches site-packages; no tests, no generic names."""
    tops = {name.partition("/")[0] for name in wheel.namelist()}

    assert {top for top in tops if not top.endswith(".dist-info")} == {"pipistrelle"}
    assert not [name for name in wheel.namelist() if "__pycache__" in name or "/vectors/" in name]


def test_the_wheel_has_the_command(wheel: zipfile.ZipFile) -> None:
    """The command ``pipistrelle`` is an entry point of the wheel."""
    name = next(name for name in wheel.namelist() if name.endswith("entry_points.txt"))

    assert "pipistrelle = pipistrelle.cli.__main__:main" in wheel.read(name).decode()
