"""The schedulers in other languages decide exactly as our EASY; errors in their folders are reported."""

import fcntl
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from pipistrelle.schedulers.catalogue.foreign import read_foreign

FOREIGN = Path(__file__).resolve().parent.parent.parent / "schedulers" / "foreign"
LANGUAGES = ("c", "javascript", "rust")
#: files of a run that follow from the scheduler's decisions
DECIDED = ("out_jobs.csv", "out_decisions.csv", "out_machine_states.csv", "out_schedule.csv")
#: submit time, run time, size, requested time: same times, competing jobs, equal ends, missing walltimes
JOBS = (
    *((0, 100, 3, 100), (0, 50, 1, None), (0, 60, 8, 90), (0, 100, 2, 100), (0, 30, 2, 95), (5, 0.1, 1, 5)),
    *((100, 20, 7, 20), (100, 40, 1, 20), (101, 40, 5, 50), (102.7, 10, 3, 20), (103, 10, 1, 500), (104, 10, 1, 500)),
)
SLOW_TO_START = 'name = "slow"\n[[pools]]\nname = "all"\nnodes = 8\nprologue = 7\nepilogue = 3.3\n'


def stale(folder: Path, built: Path) -> bool:
    """Return whether a program is older than its sources."""
    sources = [path for path in folder.iterdir() if path.suffix in {".c", ".rs", ".toml"}]
    return not built.exists() or (built.is_file() and any(s.stat().st_mtime > built.stat().st_mtime for s in sources))


@pytest.fixture(params=LANGUAGES)
def foreign(request) -> str:
    """Return the folder of a scheduler that is built, or skip."""
    folder = FOREIGN / request.param
    described = read_foreign(str(folder))
    for tool in {described.build[0], described.argv[0]} - {described.built}:
        if shutil.which(tool) is None:
            pytest.skip(f"no {tool} on this machine (.ci/foreign installs it where that can be)")
    with (folder / "scheduler.toml").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # two workers may build it at the same time
        if stale(folder, Path(described.built)):
            built = subprocess.run(described.build, capture_output=True, text=True, check=False)
            missing = ("No such file or directory", "no matching package", "cannot find", "network", "code E")
            if built.returncode and any(text in built.stderr for text in missing):
                pytest.skip(f"{request.param}: a library is absent: .ci/foreign ({built.stderr.splitlines()[-1]})")
            assert built.returncode == 0, built.stderr
    return str(folder)


def test_a_foreign_scheduler_decides_as_easy_does(shell, foreign):
    """Ties, jobs without walltime, prologues, odd times: all decisions have the same bytes; the queue empties."""
    jobs = [
        {
            "id": str(number),
            "subtime": submit,
            "res": size,
            "profile": f"{run}",
            **({"walltime": wanted} if wanted else {}),
        }
        for number, (submit, run, size, wanted) in enumerate(JOBS)
    ]
    profiles = {job["profile"]: {"type": "delay", "delay": float(job["profile"])} for job in jobs}
    shell.write("w.json", json.dumps({"nb_res": 8, "jobs": jobs, "profiles": profiles}))
    shell.write("slow.toml", SLOW_TO_START)
    common = ("-w", "w.json", "-p", "slow.toml")
    shell.run("run", *common, "--out", "ours", "--in-process", "--scheduler", "easy").ok()
    shell.run("run", *common, "--out", "theirs", "--strict", "--scheduler", foreign).ok()

    ours, theirs = shell.files("ours"), shell.files("theirs")
    assert {name: theirs[name] for name in DECIDED} == {name: ours[name] for name in DECIDED}
    assert len(shell.ended_jobs("theirs")) == len(JOBS)


@pytest.fixture(scope="module")
def reference(tmp_path_factory) -> tuple[tuple[str, ...], dict[str, bytes]]:
    """Return the options for a real log, or for the demo if there is none, and the outputs of our EASY."""
    from pipistrelle.runs.description.spec import RunSpec
    from pipistrelle.runs.execution.run import RunOptions, run

    folder = Path(os.environ.get("PIPISTRELLE_TRACES", FOREIGN.parents[2] / "shared" / "traces"))
    log = folder / "KTH-SP2-1996-2.1-cln.swf.gz"
    options = ("-w", str(log), "-p", "kth-sp2") if log.is_file() else ("-w", "demo", "-p", "demo")
    out = tmp_path_factory.mktemp("easy")
    run(RunSpec(workload=(options[1],), platform=options[3], scheduler="easy"), RunOptions(out=out))
    return options, {name: (out / name).read_bytes() for name in DECIDED}


@pytest.mark.slow
def test_a_real_log_has_the_same_schedule(shell, foreign, reference):
    """All of KTH's jobs run when and where they do under our EASY, and for the same reasons."""
    options, ours = reference
    shell.run("run", *options, "--out", "theirs", "--strict", "--quiet", "--scheduler", foreign).ok()

    theirs = shell.files("theirs")
    assert {name: theirs[name] for name in DECIDED} == ours


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_is_one_readable_file(language):
    """A complete scheduler has fewer than 300 lines."""
    (source,) = (FOREIGN / language).glob("easy.[cjr]*")
    lines = source.read_text(encoding="utf-8").splitlines()

    assert 100 < len(lines) < 300
    assert max(map(len, lines)) <= 120


@pytest.mark.parametrize(
    ("text", "fragments"),
    [
        ("argv = [", ["mine/scheduler.toml", "this is not TOML"]),
        ('argv = ["./easy"]', ["expected {endpoint} in one of the words of argv", "found ./easy"]),
        ("argv = []", ["argv", "expected a list of length >= 1"]),
        ('argv = "easy {endpoint}"', ["argv", "a value of the wrong type", "expected a list"]),
        ('name = "mine"', ["the key 'argv' is missing"]),
        ('argv = ["x", "{endpoint}"]\nbuilt = "x"', ["expected build together with built"]),
        ('argv = ["x", "{endpoint}"]\nbuild-command = "x"', ["unknown key 'build-command'", "Known: argv, name,"]),
        (
            'argv = ["{folder}/x", "{endpoint}"]\nbuild = ["cc", "{folder}/x.c"]\nbuilt = "{folder}/x"',
            ["mine: the scheduler is not built", "found no mine/x", "Build it: cc mine/x.c"],
        ),
        ('argv = ["{folder}/x", "{endpoint}"]', ["mine/x", "cannot start the scheduler"]),
    ],
)
def test_a_wrong_folder_is_reported(shell, text, fragments):
    """The message names file and key, or the command that builds the program; nothing is run."""
    (shell.folder / "mine").mkdir()
    shell.write("mine/scheduler.toml", text)
    shell.run("run", "-p", "tiny", "-w", shell.small(), "--scheduler", "mine").failed(2, *fragments)


def test_a_folder_is_described_and_trusted_as_a_program(shell):
    """The run's description names it, with the digest of its file; the run is named after the folder."""
    peer = shell.peer("good")
    (shell.folder / "mine").mkdir()
    shell.write("mine/scheduler.toml", f"argv = {peer!r}")
    shell.run("run", "-p", "tiny", "-w", shell.small(), "--scheduler", "mine").ok()
    (folder,) = (shell.folder / "pipistrelle-out").iterdir()

    assert folder.name == "small-mine-1"
    described = str(folder / "out_command.json")
    assert shell.run("validate", described).ok().out.splitlines()[-1].endswith(" ".join(peer))
    shell.run("explain", "job", str(folder), "w0!1").ok()
    shell.run("schedule", "mine", "--connect", "x").failed(2, "a program of its own", "run --scheduler mine")
    shell.run("run", "--scheduler", "pipistrelle-out").failed(2, "the folder 'pipistrelle-out' has no scheduler.toml")
    shell.write("mine/scheduler.toml", f"argv = {peer!r} # changed")
    shell.run("run", described).failed(2, "mine/scheduler.toml", "has changed")
