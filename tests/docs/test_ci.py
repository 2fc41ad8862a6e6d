"""README.md and .ci/run: the same commands."""

import os
import re
import subprocess
from pathlib import Path

import click
import pytest

from pipistrelle.cli.main import cli

ROOT = Path(__file__).resolve().parent.parent.parent
RUN = ROOT / ".ci" / "run"


def set_up_commands(page: str) -> list[str]:
    """Return the lines of a page's sh blocks."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", (ROOT / page).read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


@pytest.fixture(scope="module")
def script() -> str:
    """Return the text of .ci/run."""
    return RUN.read_text(encoding="utf-8")


def test_two_commands_set_up_all(script: str) -> None:
    """The README has one command for the main job and one for the tests, and .ci/run runs these two."""
    commands = set_up_commands("README.md")

    assert len(commands) == 2
    assert re.findall(r'^as_readme "(.*)"$', script, flags=re.MULTILINE) == commands


def test_contributing_has_the_same_command(script: str) -> None:
    """CONTRIBUTING.md gives the README's command for the tests."""
    assert set_up_commands("CONTRIBUTING.md") == set_up_commands("README.md")[1:]


def test_the_compiled_build_is_made_as_its_page_says(script: str) -> None:
    """Its tests run on what the page's command installs, and the compiler is installed where possible."""
    (command,) = set_up_commands("docs/how-to/compiled.md")

    assert f"\ncompile='{command}'\n" in script
    assert "\nif .ci/compiler; then\n" in script
    assert os.access(ROOT / ".ci" / "compiler", os.X_OK)


def test_the_linters_run_as_contributors_are_told(script: str) -> None:
    """Each linter that CONTRIBUTING.md names is a line of .ci/run."""
    for command in ("ruff check", "ruff format --check", "mypy"):
        assert f"`{command}`" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
        assert command in script.splitlines()


def test_linters_ignore_what_a_build_leaves(tmp_path: Path) -> None:
    """In a copy without .git, where .gitignore does not apply, ruff checks the sources and not what pip built."""
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    for name in ("source.py", "build/lib/pipistrelle/built.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()

    seen = subprocess.run(["ruff", "check", "--show-files"], cwd=tmp_path, check=True, capture_output=True, text=True)

    assert [Path(line).name for line in seen.stdout.split()] == ["pyproject.toml", "source.py"]


def test_every_language_of_a_skeleton_is_installed_where_that_can_be(script: str) -> None:
    """The script looks for each one and has a package for it; if all are installed, it does nothing."""
    text = (ROOT / ".ci" / "languages").read_text(encoding="utf-8")
    suffixes = {path.suffix for path in (ROOT / "cli" / "skeletons").iterdir()}

    assert suffixes == {".python", ".go", ".cpp", ".js", ".rs"}
    assert re.search(r"^for pair in go:golang-go g\+\+:g\+\+ node:nodejs rustc:rustc; do$", text, flags=re.MULTILINE)
    assert "\n.ci/languages || " in script


def test_the_schedulers_in_other_languages_are_built(script: str) -> None:
    """The script installs what each one needs from Debian, and builds each one as its folder says."""
    path = ROOT / ".ci" / "foreign"
    text = path.read_text(encoding="utf-8")

    assert os.access(path, os.X_OK)
    assert "\n.ci/foreign || " in script
    for package in ("libzmq3-dev", "libjansson-dev", "librust-zmq-dev", "librust-serde-json-dev"):
        assert package in text
        assert package in (ROOT / "docs" / "how-to" / "foreign-schedulers.md").read_text(encoding="utf-8")


def test_the_browser_is_installed_where_that_can_be(script: str) -> None:
    """Debian's browser, with its driver; if both are installed, the script does nothing."""
    text = (ROOT / ".ci" / "browser").read_text(encoding="utf-8")

    assert os.access(ROOT / ".ci" / "browser", os.X_OK)
    assert "--yes --no-install-recommends chromium chromium-driver" in text
    assert "\n.ci/browser || " in script


def test_the_site_is_built_strictly(script: str) -> None:
    """The command is CONTRIBUTING.md's: a dead link fails, before the slower tests, some of which need the site."""
    install, build = "python -m pip install -e '.[docs]'", "python docs/make_site.py"

    assert f"`{install} && {build}`" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    lines = script.splitlines()
    assert lines.index(install) < lines.index(build) < lines.index("python -m pytest -n auto -q -m slow")


def test_the_script_is_sound(script: str) -> None:
    """It is executable, is Bash, stops at the first failure, and names no host."""
    assert os.access(RUN, os.X_OK)
    assert script.startswith("#!/usr/bin/env bash\n")
    assert "set -euo pipefail" in script
    assert "://" not in script
    subprocess.run(["bash", "-n", str(RUN)], check=True)


def test_the_workflow_has_our_commands() -> None:
    """Each line of the example workflow that runs `pipistrelle` is a valid command line."""
    text = (ROOT / "docs" / "examples" / "ci" / "workflow.yml").read_text(encoding="utf-8")
    lines = re.findall(r"run: pipistrelle (.+)", text)

    assert len(lines) == 2
    for line in lines:
        name, *words = line.split()
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        command.make_context(name, words)
