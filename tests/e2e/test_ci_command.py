"""``pipistrelle check cases``: exit codes, JUnit XML, files and messages; ``compare`` with a case."""

import shutil
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from pipistrelle.reports.cases.case import bundled_folder

PEERS = Path(__file__).resolve().parent.parent / "peers"


@pytest.fixture
def cases(shell):
    """Return a shell with three cases: one the same, one that differs, one that cannot be run."""
    for name in ("ties", "dual-ended", "walltime-kill"):
        shutil.copytree(bundled_folder() / name, shell.folder / "cases" / name)
    differs = shell.folder / "cases" / "dual-ended" / "case.toml"
    differs.write_text(differs.read_text().replace("nodes<=1", "nodes<=2"))
    (shell.folder / "cases" / "walltime-kill" / "jobs.swf").unlink()
    return shell


def test_exit_codes_and_junit(cases):
    """0 if all is the same, 1 if something differs, 2 if something could not be run; the JUnit file says which."""
    found = cases.run("check", "cases", "cases", "--junit", "out.xml")
    suite = ElementTree.fromstring((cases.folder / "out.xml").read_text())[0]  # noqa: S314 - our own

    assert found.code == 2
    assert found.out.splitlines()[-1] == "3 cases: 1 same, 1 differs, 1 failed"
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "1")
    assert [[child.tag for child in test] for test in suite] == [["failure"], [], ["error"]]
    assert cases.run("check", "cases", "cases", "-k", "dual").code == 1
    assert cases.run("check", "cases", "cases/ties").code == 0
    assert "dual-ended" in cases.run("check", "cases", "cases", "--list", "-k", "*-ended").ok().out


def test_updating_the_packages_cases_is_refused(cases):
    """The package's golden results are not updated, and a missing case is rejected."""
    for words in (
        ["check", "cases", "--update"],
        ["check", "cases", "nowhere"],
        ["check", "cases", "cases", "-k", "x"],
        ["check", "cases", "cases", "--update", "--list"],
    ):
        found = cases.run(*words)
        assert (found.code, found.out) == (2, "")


def test_a_case_may_have_a_program_as_scheduler(cases):
    """A case's scheduler may be a program in its folder; how it writes units, and its reasons, are not compared."""
    folder = cases.folder / "cases" / "ties"
    shutil.copy(PEERS / "broken.py", folder / "mine.py")
    text = (folder / "case.toml").read_text()
    words = [sys.executable, "mine.py", "{endpoint}", "none", "native"]
    (folder / "case.toml").write_text(text.replace('"fcfs"', str(words)))

    assert cases.run("check", "cases", "cases/ties").code == 0
    (folder / "case.toml").write_text(text.replace('"fcfs"', str([*words[:3], "first-event-only", "native"])))
    found = cases.run("check", "cases", "cases/ties")
    assert found.code == 1
    assert "the run fails: " in found.out


def test_a_run_against_a_case(cases):
    """`compare` takes the golden results of a case, of small and of large runs, with all its options."""
    cases.run("run", "-w", "cases/ties/jobs.json", "--scheduler", "fcfs", "--in-process", "-o", "ties", "-q").ok()
    cases.run("run", "--scheduler", "easy", "--in-process", "-o", "demo", "-q").ok()
    large = bundled_folder()

    assert cases.run("compare", "ties", "cases/ties").code == 0
    assert cases.run("compare", "demo", f"{large / 'demo-easy'}").code == 0
    other = cases.run("compare", "demo", f"{large / 'demo-conservative'}", "--by", "size", "--jobs", "jobs.csv")
    assert other.code == 1
    assert "decision 37" in other.out
    assert "run 2: 34919.0 s: EXECUTE_JOB w0!40 on 195" in other.out


def test_results_within_tolerances_pass(cases):
    """The exit code is 0, the figures are printed, and the JUnit file has no failure."""
    path = cases.folder / "cases" / "dual-ended" / "case.toml"
    path.write_text(f'{path.read_text()}\n[tolerances]\nmakespan = "±10%"\n')
    found = cases.run("check", "cases", "cases", "-k", "dual", "--junit", "out.xml")

    assert (found.code, found.out.splitlines()[-1]) == (0, "1 case: 1 within")
    assert "makespan: golden" in found.out
    assert 'failures="0"' in (cases.folder / "out.xml").read_text()
