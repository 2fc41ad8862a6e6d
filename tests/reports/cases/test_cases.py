"""Bundled cases and their golden results, and the messages when a run differs."""

import json
import lzma
import shutil
from contextlib import chdir
from pathlib import Path

import pytest

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.reports.cases.case import bundled_folder, case_folders, read_case
from pipistrelle.reports.cases.golden import golden_difference
from pipistrelle.reports.cases.play import CaseOutcome, play
from pipistrelle.reports.cases.tolerances import AllowedChange, CaseError
from pipistrelle.reports.report.differences import first_difference
from pipistrelle.runs.execution.connection import InProcess
from pipistrelle.runs.execution.run import RunOptions, run
from pipistrelle.runs.folders.packed import PACKED_FILE, pack_rows
from pipistrelle.runs.folders.run_jobs import read_run_jobs

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
    assert (play(folder).verdict, (told.golden / PACKED_FILE).is_file()) == ("same", name in LARGE)


def test_the_bundled_cases_are_small() -> None:
    """All of them take less than 250 kB, of which three with 5,000 jobs each take 11 bytes per job."""
    assert sum(path.stat().st_size for path in bundled_folder().rglob("*") if path.is_file()) < 250_000


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
    """Golden results of 5,000 jobs name the decision and the job that differ, with what each was and is."""
    outcome = play(case("demo-easy", run=('"easy"', '"easy-sjbf"')))

    assert outcome.difference is not None
    decision, job = outcome.difference["decision"], outcome.difference["job"]
    assert decision["number"] == 101
    assert decision["first"]["text"] == "58107.0 s: EXECUTE_JOB w0!121 on 24-25 (backfilled before w0!30)"
    assert decision["second"]["text"] == "58107.0 s: EXECUTE_JOB w0!124 on 24-25 (backfilled before w0!30)"
    assert job["id"] == "w0!121"
    assert (job["first"]["start"], job["second"]["start"]) == (58107.0, 58448.0)
    assert outcome.lines[0] == "decision 101"


def test_packed_rows_are_those_of_the_tables(case, tmp_path: Path) -> None:
    """A run compared with its own packed rows has no difference, also with failures, attempts and rejections."""
    for name in ("demo-failures", "requeue-with-checkpoint", "class-limits"):
        spec = read_case(bundled_folder() / name).spec
        with chdir(bundled_folder() / name):
            run(spec, RunOptions(connection=InProcess(), out=tmp_path / name, check=False))
        packed = tmp_path / f"{name}-packed"
        packed.mkdir()
        pack_rows(tmp_path / name, packed)
        shutil.copy(tmp_path / name / "out_config.json", packed)

        assert first_difference(read_run_jobs(tmp_path / name), read_run_jobs(packed)) is None
        assert first_difference(read_run_jobs(packed), read_run_jobs(tmp_path / name)) is None


@pytest.mark.parametrize(
    ("text", "near", "far"),
    [
        ("+3%", (100.0, 103.0, 0.0), (103.1,)),
        ("-3%", (97.0, 500.0), (96.9,)),
        ("±3%", (97.0, 103.0), (96.9, 103.1)),
        ("+-3%", (97.0, 103.0), (96.9, 103.1)),
        ("+/-3 %", (97.0, 103.0), (96.9, 103.1)),
        ("3%", (97.0, 103.0), (96.9, 103.1)),
        ("+1min", (160.0, -5.0), (160.1,)),
        ("-0.5", (99.5, 1e9), (99.4,)),
        (0, (100.0,), (99.999, 100.001)),
        (2.5, (97.5, 102.5), (97.4,)),
    ],
)
def test_what_a_tolerance_allows(text, near, far) -> None:
    """More, less or both, as a share of the golden value 100 or in its unit."""
    tolerance = AllowedChange.parse(text, "here")

    assert [tolerance.holds(100.0, value) for value in near] == [True] * len(near)
    assert [tolerance.holds(100.0, value) for value in far] == [False] * len(far)


@pytest.mark.parametrize("text", ["", "much", "+", "%", "+3 %%", "±-3%", True, "inf", "1h%"])
def test_tolerances_that_cannot_be_read(text) -> None:
    """They are refused with examples."""
    with pytest.raises(CaseError, match="at most 3 % more"):
        AllowedChange.parse(text, "here")


def test_a_case_with_tolerances_checks_these_figures_alone(case) -> None:
    """Other decisions pass as long as the named figures are near enough; beyond, the decision is named, too."""
    folder = case("demo-easy", run=('"easy"', '"easy-sjbf"'))
    text = (folder / "case.toml").read_text()

    def played(*lines: str) -> CaseOutcome:
        (folder / "case.toml").write_text("\n".join([text, "[tolerances]", *lines]))
        return play(folder)

    within = played('mean_wait = "+60%"', "completed = 0")
    assert (within.verdict, len(within.lines)) == ("within", 2)
    assert within.lines[0].startswith("mean_wait: golden ")
    assert within.lines[0].endswith(": within +60%")
    beyond = played('mean_wait = "±0.1%"', "completed = 0")
    assert beyond.verdict == "differs"
    assert beyond.lines[0].endswith(": beyond ±0.1%")
    assert beyond.lines[2] == "decision 101"
    assert "Did you mean 'mean_wait'" in played('mean_wiat = "+3%"').lines[0]
    assert "tolerances.mean_wait" in played('mean_wait = "a lot"').lines[0]


def test_tolerances_do_not_excuse_other_inputs(case) -> None:
    """Another machine or workload differs even if the figures are near."""
    folder = case("ties", run=('"fcfs"', '"fcfs"\n[tolerances]\nmean_wait = "1000%"\n'))
    text = (folder / "jobs.json").read_text()
    (folder / "jobs.json").write_text(text.replace('"walltime": 20', '"walltime": 30', 1))
    outcome = play(folder)

    assert outcome.verdict == "differs"
    assert "the inputs are not the same: the jobs of workload w0" in outcome.lines


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


@pytest.mark.parametrize(
    "damage", [b"not packed", lzma.compress(b"[]"), lzma.compress(b'{"decisions": {}, "jobs": {}}')]
)
def test_damaged_golden_results(damage: bytes, case) -> None:
    """They are refused, not taken for a difference; rows that were changed by hand, too."""
    large, small = case("demo-easy"), case("ties")
    (large / "golden" / PACKED_FILE).write_bytes(damage)
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
