"""Bundled cases and their golden results, and the messages when a run differs."""

import json
import shutil
from pathlib import Path

import pytest

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.reports.cases.case import bundled_folder, case_folders, read_case
from pipistrelle.reports.cases.golden import CHECKS_FILE, golden_difference, has_checks_alone
from pipistrelle.reports.cases.play import play

LARGE = ("demo-conservative", "demo-easy", "demo-failures")
#: of those the ones that take long
SLOW = ("demo-conservative", "demo-failures")
BUNDLED = [folder.name for folder in case_folders(bundled_folder())]


@pytest.fixture
def case(tmp_path: Path):
    """Return a function that copies a bundled case and returns its folder."""

    def copied(name: str, *, run: tuple[str, str] | None = None, golden: bool = True) -> Path:
        folder = tmp_path / name
        shutil.copytree(bundled_folder() / name, folder)
        if run is not None:
            text = (folder / "case.toml").read_text()
            assert run[0] in text
            (folder / "case.toml").write_text(text.replace(*run))
        if not golden:
            shutil.rmtree(folder / "golden")
        return folder

    return copied


@pytest.mark.parametrize("name", [pytest.param(one, marks=[pytest.mark.slow] * (one in SLOW)) for one in BUNDLED])
def test_a_bundled_case_is_the_same(name: str) -> None:
    """Its results are the golden ones, and it states what it proves and why."""
    folder = bundled_folder() / name
    told = read_case(folder)

    assert told.proves.endswith(".")
    assert told.because.strip().endswith(".")
    assert (play(folder).verdict, has_checks_alone(told.golden)) == ("same", name in LARGE)


def test_the_bundled_cases_are_small() -> None:
    """All of them take less than 200 kB."""
    assert sum(path.stat().st_size for path in bundled_folder().rglob("*") if path.is_file()) < 200_000


@pytest.mark.parametrize(
    ("name", "run"),
    [
        ("easy-ends-before-shadow", ('"easy"', '"fcfs"')),
        ("easy-extra-nodes", ('"easy"', '"fcfs"')),
        ("easy-delays-the-third", ('"easy"', '"conservative"')),
        ("conservative-keeps-promises", ('"conservative"', '"easy"')),
        ("ties", ('"fcfs"', '"fcfs"\norder = "sjf"\nplacement = "random,seed=2"')),
        ("walltime-kill", ('"fcfs"', '"fcfs"\n[[run.transform]]\nstep = "scale"\nruntimes = "25%"\n')),
        ("failure-at-completion", ('"fcfs"', '"fcfs"\nrequeue = "never"')),
        ("maintenance-ramp-down", ("@100 +50s", "@101 +50s")),
        ("requeue-with-checkpoint", ('"5s"', '"6s"')),
        ("fairshare-decay", ("factor = 0.5", "factor = 1.0")),
        ("dual-ended", ("nodes<=1", "nodes<=2")),
        ("class-limits", ('"machine.toml"', '"demo"')),
    ],
)
def test_a_case_notices_its_rule(name: str, run: tuple[str, str], case) -> None:
    """When the rule differs, the case fails and names a decision or a job."""
    outcome = play(case(name, run=run))

    assert outcome.verdict == "differs", outcome.lines
    assert outcome.difference is not None
    assert outcome.difference["decision"] or outcome.difference["job"]


def test_the_first_difference_of_a_large_case(case) -> None:
    """A byte a row is enough to name the decision and the job, as two runs with all rows do."""
    outcome = play(case("demo-easy", run=('"easy"', '"easy-sjbf"')))

    assert outcome.difference is not None
    decision, job = outcome.difference["decision"], outcome.difference["job"]
    text = "58107.0 s: EXECUTE_JOB w0!124 on 24-25 (backfilled before w0!30)"
    assert (decision["number"], decision["second"]["text"]) == (101, text)
    assert job["id"] == "w0!124"
    assert outcome.lines[0] == "decision 101"


def test_golden_results_are_made_and_renewed(case) -> None:
    """Without golden results the case fails; on request they are written, and changes are listed."""
    folder = case("ties", golden=False)
    assert play(folder).verdict == "failed"
    assert [play(folder, update=True).verdict for _ in range(2)] == ["new", "same"]
    assert play(folder).verdict == "same"
    assert sorted(path.name for path in (folder / "golden").iterdir()) == sorted(
        path.name for path in (bundled_folder() / "ties" / "golden").iterdir()
    )
    text = (folder / "case.toml").read_text()
    (folder / "case.toml").write_text(text.replace('"fcfs"', '"fcfs"\norder = "sjf"'))
    (folder / "jobs.json").write_text((folder / "jobs.json").read_text().replace('"walltime": 20', '"walltime": 30', 1))
    updated = play(folder, update=True)

    assert updated.verdict == "updated"
    assert updated.lines[0] == "the inputs are not the same: the jobs of workload w0"
    assert play(folder).verdict == "same"


def test_golden_results_have_no_versions() -> None:
    """The golden results contain no version."""
    for name in BUNDLED:
        config = json.loads((bundled_folder() / name / "golden" / "out_config.json").read_text())
        assert "versions" not in config


def test_a_run_that_fails_differs(case) -> None:
    """A scheduler that raises ends the run, and the message says so."""
    folder = case("kill-race")
    (folder / "killer.py").write_text((folder / "killer.py").read_text().replace("self.killed = True", "raise OSError"))
    outcome = play(folder)

    assert outcome.verdict == "differs"
    assert any("the run fails: " in line for line in outcome.lines)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no run"),
        ("proves = 3\n[run]\n", "expected a text"),
        ("prooves = 'x'\n[run]\n", "Did you mean 'proves'"),
        ("[run]\nworkload = 'nowhere.swf'\n", "nowhere.swf"),
        ("[run]\nscheduler = 'fcsf'\n", "fcsf"),
        ("run = 3", "expected a table"),
        ("[run", "case.toml"),
    ],
)
def test_what_is_wrong_with_a_case(text: str, says: str, tmp_path: Path) -> None:
    """The case fails, and the message says where."""
    (tmp_path / "case.toml").write_text(text)
    outcome = play(tmp_path)

    assert outcome.verdict == "failed"
    assert says in outcome.lines[0]


@pytest.mark.parametrize("damage", ["not base64", '{"decisions": "AA=", "jobs": ""}'])
def test_damaged_golden_results(damage: str, case) -> None:
    """They are refused, not taken for a difference; rows that were changed by hand, too."""
    large, small = case("demo-easy"), case("ties")
    (large / "golden" / CHECKS_FILE).write_text(damage)
    summary = large / "golden" / "out_summary.json"
    summary.write_text(summary.read_text().replace('"results_sha256": "', '"results_sha256": "0'))
    with (small / "golden" / "out_jobs.csv").open("a") as file:
        file.write("more\n")
    (small / "case.toml").write_text((small / "case.toml").read_text().replace('"fcfs"', '"fcfs"\norder = "sjf"'))

    for folder in (large, small):
        assert play(folder).verdict == "failed"


def test_no_cases(tmp_path: Path) -> None:
    """Folders without a case, or without one of this name, are refused."""
    for folder, patterns in ((tmp_path, ()), (tmp_path / "none", ()), (bundled_folder(), ("nothing",))):
        with pytest.raises(PipistrelleError):
            case_folders(folder, patterns)
    with pytest.raises(PipistrelleError, match=r"no out_summary.json"):
        golden_difference(tmp_path, tmp_path)
