"""``pipistrelle check scheduler``: our schedulers pass, and broken ones fail the script for their fault."""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from pipistrelle.runs.conformance.scripts import SCRIPTS
from pipistrelle.runs.conformance.suite import ScriptOutcome, play_script

PEERS = Path(__file__).resolve().parent.parent / "peers"
BY_NAME = {script.name: script for script in SCRIPTS}
#: scripts with nodes that jobs share
ON_NODES = [script.name for script in SCRIPTS if script.platform is not None]
#: {fault of peers/broken.py: the script that finds it}
FAULTS = {
    "waits-after-the-end": "one-job",
    "fails-at-the-end": "one-job",
    "no-empty-reply": "no-jobs",
    "first-event-only": "one-instant",
    "submissions-first": "one-instant",
    "overcommits": "larger-than-free",
    "contiguous-text": "scattered",
    "small-buffer": "many-at-once",
    "only-success-frees": "walltimes",
    "needs-walltimes": "no-walltime",
    "rounds-times": "fractions",
    "narrow-times": "late",
    "ascii-names": "odd-names",
    "folds-case": "odd-names",
    "number-names": "odd-names",
    "strict-fields": "unknown-fields",
    "knows-all-types": "unknown-events",
    "knows-its-calls": "calls",
    "frees-killed-jobs-again": "kill-race",
    "deaf-to-rejections": "rejection",
    "keeps-cancelled-jobs": "cancelled",
    "keeps-preempted-jobs": "preempted",
    "starts-on-failed-nodes": "idle-node-fails",
    "forgets-attempts": "job-loses-its-node",
    "nodes-first": "failure-at-an-end",
    "any-repair-is-whole": "repaired-in-maintenance",
    "no-maintenance": "maintenance",
    "draws-lots": "told-again",
    "ignores-starts": "taken-over",
    "waits-for-its-jobs": "ends-early",
    "waits-after-refusal": "refused",
}
BATSIM_FAULTS = {
    "waits-after-the-end": "one-job",
    "waits-for-the-impossible": "larger-than-the-machine",
    "strict-fields": "unknown-fields",
    "knows-all-notifies": "unknown-events",
    "frees-killed-jobs-again": "kill-race",
    "forgets-attempts": "job-loses-its-node",
}
#: {fault of peers/broken_on_nodes.py: the script that finds it}
FAULTS_ON_NODES = {
    "ignores-exclusive": "whole-nodes",
    "ignores-cores": "shared-cores",
    "splits-jobs": "shared-cores",
    "ignores-memory": "shared-memory",
    "ignores-memory-per-core": "shared-memory",
    "lowest-gpus": "shared-gpus",
    "adds-shares-of-gpus": "shared-gpus",
    "ignores-models": "shared-gpus",
    "starts-beside-exclusive": "exclusive-job",
    "names-nodes-only": "several-nodes",
    "frees-first-node": "several-nodes",
    "ignores-licenses": "licenses",
    "ignores-others": "licenses",
    "keeps-failed-jobs": "shared-node-fails",
    "places-anew": "shared-taken-over",
    "ignores-tasks": "shared-taken-over",
    "ignores-gpu-numbers": "shared-taken-over",
    "forgets-licenses": "shared-taken-over",
}
#: scripts that take long, or are much like another
SLOW = {
    *("submissions-first", "folds-case", "number-names", "no-empty-reply", "knows-all-types", "knows-all-notifies"),
    *("waits-after-the-end", "forgets-attempts", "ascii-names", "narrow-times"),
}
#: faults that show as silence; only these wait for the limit (s)
SILENT = 0.4
PATIENT = 120.0
Play = Callable[..., ScriptOutcome]


@pytest.fixture
def play(forks) -> Play:
    """Return a function that plays a script to a scheduler in a file, or to one of our schedulers."""

    def played(
        script: str, words: Sequence[str], dialect: str = "native", limit: float = PATIENT, **more: Any
    ) -> ScriptOutcome:
        path, *rest = words
        whole = [sys.executable, path, *rest] if forks is None else [*forks.words(Path(path)), *rest]
        return play_script(BY_NAME[script], whole, dialect=dialect, limit=limit, **more)  # type: ignore[arg-type]

    return played


@pytest.fixture
def broken(play) -> Play:
    """Return a function that plays a script to a scheduler with a fault."""

    def played(script: str, fault: str, dialect: str = "native") -> ScriptOutcome:
        limit = SILENT if fault.startswith(("waits", "knows-all", "no-empty")) else PATIENT
        return play(script, [str(PEERS / "broken.py"), "{endpoint}", fault, dialect], dialect, limit)

    return played


@pytest.fixture
def broken_on_nodes(play) -> Play:
    """Return a function that plays a script to a scheduler with a fault on nodes that jobs share."""

    def played(script: str, fault: str) -> ScriptOutcome:
        return play(script, [str(PEERS / "broken_on_nodes.py"), "{endpoint}", fault])

    return played


@pytest.fixture
def ours(play) -> Play:
    """Return a function that plays a script to one of our schedulers."""

    def played(script: str, name: str, dialect: str) -> ScriptOutcome:
        way = ["--dialect", "batsim", "--bind"] if dialect == "batsim" else ["--connect"]
        program = str(Path(sys.executable).with_name("pipistrelle"))
        return play(
            script, [program, "schedule", name, *way, "{endpoint}", "--quiet"], dialect, configured=name == "slurm"
        )

    return played


def pairs(faults: dict[str, str]) -> list[Any]:
    """Return pairs of fault and script; some are slow."""
    return [pytest.param(*pair, marks=[pytest.mark.slow] * (pair[0] in SLOW)) for pair in faults.items()]


@pytest.mark.parametrize(("fault", "script"), pairs(FAULTS))
def test_a_fault_is_found(fault, script, broken):
    """The script for a fault fails, and its messages are kept."""
    outcome = broken(script, fault)

    assert outcome.verdict == "failed"
    assert outcome.lines
    assert outcome.log


@pytest.mark.parametrize(("fault", "script"), pairs(BATSIM_FAULTS))
def test_a_fault_is_found_in_the_other_dialect(fault, script, broken):
    """The same for schedulers that listen."""
    outcome = broken(script, fault, "batsim")

    assert (outcome.verdict, bool(outcome.log)) == ("failed", True)


@pytest.mark.parametrize(("fault", "script"), FAULTS_ON_NODES.items())
def test_a_fault_on_shared_nodes_is_found(fault, script, broken_on_nodes):
    """The server rejects the decision, or a job never runs; without the fault the script passes."""
    outcome = broken_on_nodes(script, fault)

    assert outcome.verdict == "failed"
    assert "illegal decision (wrong_resources)" in outcome.lines[0] or "stalled" in outcome.lines[0]


@pytest.mark.parametrize("script", ON_NODES)
def test_shared_nodes_need_a_feature(script, broken, broken_on_nodes):
    """A scheduler without it runs jobs that take whole nodes, and skips the other scripts, with the reason."""
    without, outcome = broken(script, "none"), broken_on_nodes(script, "none")

    assert (outcome.verdict, outcome.lines) == ("passed", [])
    if script == "whole-nodes":
        assert (without.verdict, without.lines) == ("passed", [])
    else:
        assert (without.verdict, without.lines) == ("skipped", ["its HELLO does not name the feature 'resources'"])


@pytest.mark.parametrize("script", BY_NAME)
def test_easy_passes(script, ours):
    """It passes each script that applies in the native dialect."""
    outcome = ours(script, "easy", "native")

    assert outcome.verdict in {"passed", "skipped"}, outcome.lines
    assert (outcome.verdict == "skipped") == ("native" in BY_NAME[script].absent)


@pytest.mark.parametrize("more", [(), ("--cancellations",)])
def test_only_subscribed_schedulers_receive_job_cancelled(more, play):
    """Only a subscriber receives JOB_CANCELLED. Both pass: one drops such jobs, the other tries to start them."""
    program = str(Path(sys.executable).with_name("pipistrelle"))
    words = [program, "schedule", "easy", "--connect", "{endpoint}", "--quiet", *more]
    outcome = play("cancelled", words)
    told = [text for side, text in outcome.log if side == "server" and '"JOB_CANCELLED"' in text]
    begun = "\n".join(text for side, text in outcome.log if side == "scheduler" and "EXECUTE_JOB" in text)

    assert outcome.verdict == "passed", outcome.lines
    assert (bool(told), "w0!waits" in begun) == (bool(more), not more)


SHORT = ("calls", "idle-node-fails", "taken-over", "shared-gpus", "shared-taken-over")


@pytest.mark.parametrize(
    "script", [pytest.param(one, marks=[pytest.mark.slow] * (one not in SHORT)) for one in BY_NAME]
)
def test_slurm_passes_with_a_slurm_conf_of_each_machine(script, ours):
    """Only the script with a job that is larger than the machine does not apply."""
    outcome = ours(script, "slurm", "native")

    assert outcome.lines == [] or script == "larger-than-the-machine"
    assert (outcome.verdict == "skipped") == ("native" in BY_NAME[script].absent)


@pytest.mark.slow
@pytest.mark.parametrize("dialect", ["native", "batsim"])
@pytest.mark.parametrize("name", ["fcfs", "conservative", "maui"])
def test_all_bundled_schedulers_pass(name, dialect, ours):
    """The other schedulers pass too, in both dialects."""
    wrong = {
        script: outcome.lines for script in BY_NAME if (outcome := ours(script, name, dialect)).verdict == "failed"
    }

    assert wrong == {}


@pytest.mark.slow
def test_a_fault_in_a_feature_fails_its_script_only(broken):
    """All others pass: a scheduler that keeps cancelled jobs is only wrong when jobs are cancelled."""
    failed = [script for script in BY_NAME if broken(script, "keeps-cancelled-jobs").verdict == "failed"]

    assert failed == ["cancelled"]


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "dialect"), [("none", "native"), ("aware", "native"), ("none", "batsim")])
def test_without_a_fault_all_scripts_pass(fault, dialect, broken):
    """The broken scheduler fails because of the fault alone."""
    wrong = {script: found.lines for script in BY_NAME if (found := broken(script, fault, dialect)).verdict == "failed"}

    assert wrong == {}


def test_every_script_has_a_fault_that_it_finds():
    """The exception is all-nodes-fail, which none of these faults fails alone."""
    found = {*FAULTS.values(), *BATSIM_FAULTS.values(), *FAULTS_ON_NODES.values()}

    assert set(BY_NAME) - found == {"all-nodes-fail"}
    assert set(ON_NODES) == set(FAULTS_ON_NODES.values())


def test_all_reports_agree(shell):
    """Text, JSON, JUnit XML and logs report the same; the exit code is 1."""
    words = ["--", sys.executable, str(PEERS / "broken.py"), "{endpoint}", "only-success-frees", "native"]
    found = shell.run(
        "check", "scheduler", "-k", "walltimes", "-k", "large", "--json", "--junit", "c.xml", "--logs", "l", *words
    )
    told = json.loads(found.out)
    suite = ElementTree.fromstring((shell.folder / "c.xml").read_text())[0]  # noqa: S314 - our own

    assert found.code == 1
    assert (told["passed"], told["failed"], told["skipped"]) == (1, 1, 1)
    failed = next(one for one in told["scripts"] if one["verdict"] == "failed")
    assert failed["name"] == "walltimes"
    assert {one["from"] for one in failed["messages"]} == {"server", "scheduler"}
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("3", "1", "1")
    assert [path.name for path in (shell.folder / "l").iterdir()] == ["walltimes.log"]
    text = (shell.folder / "l" / "walltimes.log").read_text()
    assert "COMPLETED_WALLTIME_REACHED" in text
    assert text.startswith("# ")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "no scheduler is given"),
        (["--", "./mine", "x"], "{endpoint}"),
        (["--", "/bin/sh"], "{endpoint}"),
        (["easyy"], "Did you mean 'easy'?"),
        (["--", "./not-there", "{endpoint}"], "cannot start the scheduler"),
        (["--", "false", "{endpoint}"], "exchanged no message: the scheduler ended with exit code 1"),
        (["-k", "nothing", "easy"], "no test is called 'nothing'"),
        (["--list", "easy"], "omit the scheduler"),
        (["--list", "--json"], "--list runs nothing"),
        (["--limit", "0", "easy"], "--limit"),
    ],
)
def test_a_wrong_script_or_scheduler_is_refused(words, says, shell):
    """Exit code 2 and a reason."""
    found = shell.run("check", "scheduler", *words)

    assert (found.code, found.out) == (2, "")
    assert says in found.err


def test_a_script_without_jobs_gives_no_warning(shell):
    """Its workload is empty on purpose."""
    assert shell.run("check", "scheduler", "fcfs", "-k", "no-jobs").ok().out == "passed   no-jobs\n1 passed, 0 failed\n"


def test_a_folder(shell):
    """A folder with a scheduler.toml stands for its program."""
    words = [sys.executable, str(PEERS / "broken.py"), "{endpoint}", "none", "native"]
    (shell.folder / "mine").mkdir()
    shell.write("mine/scheduler.toml", f'name = "mine"\nargv = {words}\n')

    assert shell.run("check", "scheduler", "mine", "-k", "one-job").ok().out == "passed   one-job\n1 passed, 0 failed\n"


def test_the_list_and_the_name_of_a_bundled_scheduler(shell):
    """`--list` has them all; the name of one of our schedulers stands for its command."""
    listed = shell.run("check", "scheduler", "--list").ok().out
    assert [name for name in BY_NAME if name in listed] == list(BY_NAME)
    assert shell.run("check", "scheduler", "fcfs", "-k", "one-job").ok().out == "passed   one-job\n1 passed, 0 failed\n"


def test_every_script_is_documented():
    """The page has a row for each, with what `--list` says."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "how-to" / "conformance.md").read_text(encoding="utf-8")

    assert all(f"| `{script.name}` | {script.situation} |\n" in page for script in SCRIPTS)
