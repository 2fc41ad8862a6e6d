"""`pipistrelle explain`: why each job waited, for every kind of run, or one clear message."""

import json
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

#: who waits: 2 for all nodes, which 3 passes; 4 behind it; see tests/reports/explain/test_explain.py
ROWS = ((1, 0, 100, 3, 100), (2, 1, 50, 4, 50), (3, 2, 60, 1, 90), (4, 3, 100, 1, 200), (5, 4, 10, 9, 10))
CLASSES = """
name = "classy"
[[pools]]
name = "all"
nodes = 4
[[classes]]
name = "q"
max_nodes = 2
"""
JOBS = {
    "nb_res": 4,
    "jobs": [
        {"id": "1", "subtime": 0, "res": 2, "walltime": 100, "profile": "d", "queue": "q", "user": "ann"},
        {"id": "2", "subtime": 1, "res": 1, "walltime": 100, "profile": "d", "queue": "q", "user": "bob"},
        {"id": "3", "subtime": 2, "res": 1, "walltime": 100, "profile": "d", "dependency": "afterok:1"},
        {"id": "4", "subtime": 3, "res": 1, "walltime": 20, "profile": "d", "user": "cid"},
        {"id": "5", "subtime": 4, "res": 1, "walltime": 100, "profile": "d", "dependency": "afterok:4"},
    ],
    "profiles": {"d": {"type": "delay", "delay": 50}},
}


#: runs many command lines in one process; separate processes would be slow
DRIVER = """
import contextlib, io, json, sys
from pipistrelle.cli.main import main
told = []
for words in json.loads(sys.argv[1]):
    out, err, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(["explain", *([] if words[0] == "queue" else ["job"]), *words])
        except SystemExit as end:
            code = end.code or 0
    told.append([code, out.getvalue(), err.getvalue()])
print(json.dumps(told))
"""


def explained(shell, *calls):
    """Return what `explain` writes for each call, and assert that each call succeeds."""
    told = json.loads(shell.spawn(sys.executable, "-c", DRIVER, json.dumps(calls)).finish().ok().out)
    assert [(code, err) for code, _, err in told] == [(0, "")] * len(calls), told
    return [out for _, out, _ in told]


def refused(shell, calls):
    """Assert that each call ends with exit code 2 and one message that contains the fragments."""
    words = [call for call, *_ in calls]
    told = json.loads(shell.spawn(sys.executable, "-c", DRIVER, json.dumps(words)).finish().ok().out)
    for (call, *fragments), (code, out, err) in zip(calls, told, strict=True):
        assert (code, out) == (2, ""), (call, out, err)
        assert err.startswith("pipistrelle:")
        assert err.count("\n") == 1, (call, err)
        for fragment in fragments:
            assert fragment in err, call


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Return a folder for what need not be run again for each test."""
    return tmp_path_factory.mktemp("kept")


@pytest.fixture
def ran(shell, kept):
    """Return the shell with the small workload run under EASY, into `out`."""
    shell.swf("w.swf", ROWS)
    if not (kept / "out").exists():
        shell.run("run", "-p", "tiny", "-w", "w.swf", "--in-process", "--out", "out").ok()
        shutil.copytree(shell.folder / "out", kept / "out")
    else:
        shutil.copytree(kept / "out", shell.folder / "out")
    return shell


def test_an_account_on_a_narrow_page(ran):
    """Neither a pipe nor 40 columns shorten a name or a number; no line ends with blanks."""
    ran.environment["COLUMNS"] = "40"

    out = ran.run("explain", "job", "out", "2").ok().out

    assert out == (
        "w0!2 waited 1 min 39 s: for 1 min 39 s fewer units were free than the 4 it needs; it was passed by 1 job that "
        "came later, which did not delay it.\n"
        "4 units, walltime 50 s, submitted 1 s, started 100 s, scheduler easy\n"
        "What limited it\n"
        "  from, s         for    free  place  to start by, s  limited by\n"
        "        1  1 min 39 s  0 to 1      1             100  fewer units free\n"
        "Reservation\n"
        "  at 1 s: to start by 100 s\n"
        "  started at 100 s, as reserved\n"
        "Jobs that held the units\n"
        "  job   user  units  started, s  ended, s  share\n"
        "  w0!1     1      3           0       100  83.2%\n"
        "  w0!3     1      1           2        62  16.8%\n"
        "Passed by\n"
        "  job   units    walltime  started, s  ended, s  delay  why\n"
        "  w0!3      1  1 min 30 s           2        62     no  backfilled before w0!2\n"
    )
    assert max(map(len, out.splitlines()[2:])) <= 80


def test_an_account_on_a_narrow_terminal(ran):
    """On a terminal only the text at a line's end is cut to fit."""
    master, slave = pty.openpty()
    words = [*ran.command, "explain", "job", "out", "2"]
    environment = ran.environment | {"COLUMNS": "70", "TERM": "xterm"}
    with os.fdopen(slave, "wb") as terminal:
        done = subprocess.run(words, cwd=ran.folder, env=environment, stdout=terminal, check=False)
    assert done.returncode == 0
    out = os.read(master, 65536).decode()
    os.close(master)

    last = re.sub(r"\x1b\[[0-9;]*m", "", out).splitlines()[-1]
    assert last.startswith("  w0!3      1  1 min 30 s           2        62     no  backfilled")
    assert last.endswith("\N{HORIZONTAL ELLIPSIS}")
    assert len(last) == 70


def test_dates_are_shown_with_seconds(ran):
    """Only if the log says when time 0 is, in its zone; the summary of a run has them, too."""
    rows = (ran.folder / "w.swf").read_text()
    ran.write("dated.swf", f"; UnixStartTime: 1485648000\n; TimeZoneString: Europe/Stockholm\n{rows}")
    summary = ran.run("run", "-p", "tiny", "-w", "dated.swf", "--in-process", "--out", "dated").ok().out
    out, moment, shares = explained(ran, ["dated", "2"], ["dated", "4", "--at", "70"], ["dated", "--user", "1"])

    assert "time 0 is 2017-01-29 01:00, the end 2017-01-29 01:04\n" in summary
    assert "submitted 1 s (2017-01-29 01:00), started 100 s (2017-01-29 01:01)" in out
    assert "  from, s              date         for    free  place  to start by, s  limited by\n" in out
    assert "        1  2017-01-29 01:00  1 min 39 s  0 to 1      1             100  fewer units free\n" in out
    assert "  w0!1     1      3           0  2017-01-29 01:00       100  83.2%\n" in out
    assert "           2  2017-01-29 01:00        62     no  backfilled before w0!2\n" in out
    assert "  at 1 s (2017-01-29 01:00): to start by 100 s (2017-01-29 01:01)\n" in out
    assert "At 70 s (2017-01-29 01:01), as the scheduler left it at 62 s (2017-01-29 01:01):\n" in moment
    assert "  w0!4      1             3  2017-01-29 01:00  2 min 27 s  fewer units free\n" in shares


def test_the_account_names_the_jobs_that_were_passed(ran):
    """The job's own account says so, too, and why its scheduler allowed it."""
    (out,) = explained(ran, ["out", "3"])

    assert out.splitlines()[-1] == (
        "It was itself started before 1 job that came earlier: w0!2; the scheduler says: backfilled before w0!2"
    )


@pytest.mark.slow
def test_the_index(ran):
    """The run is repeated once; later answers need no inputs, until the outputs change."""
    calls = (["out", "2"], ["out", "4", "--json"], ["out", "4", "--at", "70"], ["out", "--user", "1"])
    first = explained(ran, *calls)
    (ran.folder / "w.swf").rename(ran.folder / "away.swf")
    index = ran.folder / "out" / "out_explain.index"

    assert explained(ran, *calls) == first
    index.write_bytes(index.read_bytes()[:-100])
    refused(ran, [(["out", "2"], "w.swf")])
    (ran.folder / "away.swf").rename(ran.folder / "w.swf")
    assert explained(ran, *calls) == first
    decisions = ran.folder / "out" / "out_decisions.csv"
    decisions.write_text(decisions.read_text().replace("EXECUTE_JOB,w0!3", "EXECUTE_JOB,w0!4"))
    refused(ran, [(["out", "2"], "out_decisions.csv changed after out_summary.json was written")])
    (ran.folder / "out" / "out_summary.json").unlink()
    refused(ran, [(["out", "2"], "decides differently now")])


def test_an_index_that_cannot_be_kept(ran):
    """Each call then repeats the run, and nothing is left behind."""
    (ran.folder / "out" / "out_explain.index").mkdir()
    before = sorted(path.name for path in (ran.folder / "out").iterdir())

    assert len(set(explained(ran, ["out", "2"], ["out", "2"]))) == 1
    assert sorted(path.name for path in (ran.folder / "out").iterdir()) == before


def test_the_jobs_of_a_user(ran):
    """Shares of their waits by reason, and the jobs that waited longest, also as JSON."""
    out, text = explained(ran, ["out", "--user", "1"], ["out", "--user", "1", "--json"])

    assert out == (
        "4 jobs of user 1, 2 of which waited\n"
        "4 min 6 s in all, 1 min 2 s on average, median 49.5 s\n"
        "What limited them\n"
        "  limited by                  share         for  jobs\n"
        "  fewer units free            84.6%  3 min 28 s     2\n"
        "  free units kept for others  15.4%        38 s     1\n"
        "Longest waits\n"
        "  job   units  submitted, s      waited  mostly\n"
        "  w0!4      1             3  2 min 27 s  fewer units free\n"
        "  w0!2      4             1  1 min 39 s  fewer units free\n"
    )
    found = json.loads(text)
    assert (found["of"], found["waited"], found["total"]) == ({"user": "1"}, 2, 246.0)
    assert found["limits"][1] == {"limit": "order", "seconds": 38.0, "share": 38 / 246, "jobs": 1}
    refused(
        ran,
        [
            (["out", "--user", "7"], "no job of this run has the user '7'", "Known: 1."),
            (["out", "--queue", "x"], "no job of this run has the queue 'x'"),
            (["out", "--user", "1", "--no-replay"], "do not name the jobs' users"),
            (["out", "1", "--user", "1"], "either a JOB, or all jobs of a --user"),
            (["out"], "either a JOB, or all jobs of a --user"),
            (["out", "--user", "1", "--at", "5"], "--at needs a JOB"),
        ],
    )


def test_one_moment(ran):
    """`--at` shows the state at that time, as the scheduler had last left it."""
    out = ran.run("explain", "job", "out", "w0!4", "--at", "70").ok().out

    assert "At 70 s, as the scheduler left it at 62 s:\n" in out
    assert "  enough units were free, but they were kept for jobs before it in the queue\n" in out
    assert "  free: 1 unit, it needs 1\n" in out
    assert "  place in the queue: 2 of 2, first is w0!2\n" in out


def test_the_json(ran):
    """It holds the same as the text."""
    found = json.loads(ran.run("explain", "job", "out", "4", "--json", "--at", "70").ok().out)

    assert found["limits"] == {"units": 109.0, "order": 38.0}
    assert [(one["begin"], one["end"], one["limit"]) for one in found["timeline"]] == [
        (3.0, 62.0, "units"),
        (62.0, 100.0, "order"),
        (100.0, 150.0, "units"),
    ]
    assert found["moment"]["limit"] == "order"


def test_an_unknown_job_or_folder_is_rejected(ran):
    """One message that says what is wrong, and exit code 2."""
    (ran.folder / "empty").mkdir()
    refused(
        ran,
        [
            (["out", "17"], "no job '17'", "out: ", "Did you mean '1'"),
            (["out", "5"], "no job '5'", "left out jobs before it began (larger than the machine: 1)"),
            (["nowhere", "1"], "nowhere", "there is no such folder"),
            (["w.swf", "1"], "w.swf", "this is a file, not a folder"),
            (["empty", "1"], "empty", "out_config.json"),
            (["out", "2", "--at", "100"], "--at", "did not wait then", "1 s to before 100 s"),
            (["out", "1", "--at", "0"], "w0!1 did not wait: it started at submission (0 s)."),
            (["out", "2", "--at", "soon"], "--at", "soon"),
        ],
    )


def test_an_input_that_has_changed(ran):
    """A workload that has changed or is missing is named; the outputs alone still explain something."""
    ran.swf("w.swf", ROWS[:3])
    refused(ran, [(["out", "2"], "w.swf", "an input has changed since", "--no-replay")])
    (ran.folder / "w.swf").unlink()
    refused(ran, [(["out", "2"], "w.swf")])

    (out,) = explained(ran, ["out", "2", "--no-replay"])
    assert "for 1 min 39 s fewer units were free than the 4 it needs" in out
    assert "Not known, because --no-replay was given" in out
    assert "w0!3" in out


def test_a_call_that_was_edited(ran):
    """The recorded command line of a run is not trusted: each mistake in it is one message."""
    called = json.loads((ran.folder / "out" / "out_command.json").read_bytes())
    cases = []
    for number, (changed, text) in enumerate(
        (
            ({"scheduler": "fcfs"}, "decides differently now"),
            ({"scheduler": "no-such"}, "no-such"),
            ({"scheduler": 7}, "does not say how a run was called"),
            ({"parts": {"colour": "red"}}, "does not say how a run was called"),
            ({"surprise": 1}, "does not say how a run was called"),
            (None, "the file is not JSON"),
        )
    ):
        folder = ran.folder / f"edited-{number}"
        shutil.copytree(ran.folder / "out", folder)
        (folder / "out_command.json").write_text("{" if changed is None else json.dumps(called | changed))
        cases.append(([folder.name, "2"], text))
    refused(ran, cases)
    (ran.folder / "edited-0" / "out_command.json").unlink()

    outs = explained(ran, ["edited-5", "2", "--no-replay"], ["edited-0", "2"])

    assert "Not known, because --no-replay was given" in outs[0]
    assert "Not known, because its folder has no out_command.json" in outs[1]


def test_the_keys_of_how_a_run_was_called_are_documented(ran):
    """docs/reference/outputs.md names those that are written."""
    page = Path(__file__).resolve().parents[2] / "docs" / "reference" / "outputs.md"
    section = page.read_text(encoding="utf-8").partition("## out_command.json\n")[2].partition("\n## ")[0]
    rows = [row.split("|")[1] for row in section.splitlines() if row.startswith("| `")]

    assert [name for row in rows for name in re.findall(r"`([\w-]+)`", row)] == list(
        json.loads((ran.folder / "out" / "out_command.json").read_bytes())
    )


def test_limits_dependencies_and_rejections(shell):
    """A class, another job, and one that can never be satisfied keep jobs back under every scheduler."""
    shell.write("classy.toml", CLASSES)
    shell.write("jobs.json", json.dumps(JOBS))
    shell.run(
        "run", "-p", "classy.toml", "-w", "jobs.json", "--scheduler", "conservative", "--in-process", "--out", "out"
    ).ok()

    told = explained(shell, *(["out", str(number)] for number in range(1, 6)), ["out", "5", "--no-replay"])

    assert told[0].startswith("w0!1 did not wait: it started when it was submitted, at 0 s.\n")
    assert "for 49 s its class or its user had reached a limit" in told[1]
    assert "for 48 s a job that it depends on had not reached the required state" in told[2]
    assert "did not wait" in told[3]
    assert "waited 19 s, then was rejected (dependency never satisfied: afterok:w0!4)" in told[4]
    assert told[5].startswith("w0!5 was rejected: dependency never satisfied: afterok:w0!4.\n")


def test_priorities_under_a_maui_cfg(shell):
    """A table shows the terms; a maui.cfg that was edited since is named."""
    shell.write("jobs.json", json.dumps(JOBS))
    shell.write("maui.cfg", "USERWEIGHT 10\nCREDWEIGHT 1\nQUEUETIMEWEIGHT 1\nUSERCFG[bob] PRIORITY=3 MAXPROC=1\n")
    command = ("run", "-p", "tiny", "-w", "jobs.json", "--scheduler", "maui", "--config", "maui.cfg", "--poll", "30s")
    shell.run(*command, "--in-process", "--out", "out").ok()

    (out,) = explained(shell, ["out", "2"])
    assert "for 29 s nothing held it back, but the scheduler decides only at fixed steps" in out

    shell.write("maui.cfg", "USERWEIGHT 20\n")
    assert explained(shell, ["out", "2"]) == [out]
    (shell.folder / "out" / "out_explain.index").unlink()
    refused(shell, [(["out", "2"], "maui.cfg", "an input has changed since")])


def test_failures(shell):
    """A job that lost its nodes is explained by attempt, with what failed while it waited."""
    shell.swf("w.swf", ((1, 0, 100, 4, 200), (2, 1, 10, 1, 20)))
    shell.write("outages.csv", "node,down,up\n0,50,70\n")
    shell.run("run", "-p", "tiny", "-w", "w.swf", "--outages", "outages.csv", "--in-process", "--out", "out").ok()

    first, second = explained(shell, ["out", "1"], ["out", "1#1"])
    assert "It lost its nodes and had 1 more attempt after this one: w0!1#1." in first
    assert "It is attempt 1 of w0!1, which lost its nodes and was submitted again." in second
    assert "for 10 s enough units would have been free, but some were out of service" in second
    assert "50 s: node 0 failed, 1 unit\n" in second


@pytest.mark.parametrize("kind", ["program", "serve", "batsim"])
def test_a_run_with_a_foreign_scheduler_is_explained_from_its_outputs(shell, kind):
    """For a run with a foreign scheduler the outputs explain what they can, and a message says why not more."""
    shell.swf("w.swf", ROWS)
    run = ("-p", "tiny", "-w", "w.swf", "--out", "out")
    if kind == "program":
        shell.run("run", *run, "--scheduler", *shell.peer("good")).ok()
    elif kind == "batsim":
        shell.run("run", *run, "--dialect", "batsim").ok()
    else:
        server = shell.start("serve", *run)
        shell.run("schedule", "easy", "--connect", "out").ok()
        server.finish().ok()

    out = shell.run("explain", "job", "out", "2").ok().out

    why = {
        "program": "its scheduler was a program",
        "serve": "its scheduler was started elsewhere",
        "batsim": "it spoke the batsim dialect",
    }
    assert f"Not known, because {why[kind]}" in out
    assert "fewer units were free than the 4 it needs" in out


def test_a_run_in_another_folder(ran):
    """The outputs can be moved; names of inputs are relative to the user's folder."""
    shutil.move(ran.folder / "out", ran.folder / "moved")
    assert "as reserved" in ran.run("explain", "job", "moved", "2").ok().out


def test_the_queue_at_a_time(ran):
    """A table with expected and actual starts, all of it as JSON, and a line for each job as CSV."""
    told, as_json, _ = explained(
        ran,
        ["queue", "out", "--at", "5"],
        ["queue", "out", "--at", "5", "--json"],
        ["queue", "out", "--at", "5", "--csv", "q.csv"],
    )

    assert told == (
        "2 jobs waited at 5 s\n"
        "scheduler easy, as it had decided at 3 s; 0 units free\n"
        "Waiting jobs\n"
        "  job   user  units    walltime  waited  place  expected, s  started, s  error  limited by\n"
        "  w0!2     1      4        50 s     4 s      1          100         100    0 s  fewer units free\n"
        "  w0!4     1      1  3 min 20 s     2 s      2          150         150    0 s  fewer units free\n"
        "Error (actual start minus expected start) of 2 jobs: mean 0 s, median 0 s, mean absolute error 0 s; "
        "0 started later by more than a minute, 0 earlier\n"
    )
    found = json.loads(as_json)
    assert [(one["job"], one["expected"], one["happened"], one["outcome"]) for one in found["jobs"]] == [
        ("w0!2", 100, 100, "started"),
        ("w0!4", 150, 150, "started"),
    ]
    head, *lines = (ran.folder / "q.csv").read_text().splitlines()
    assert [dict(zip(head.split(","), line.split(","), strict=True))["error"] for line in lines] == ["0.0", "0.0"]


def test_the_queue_at_a_date(ran):
    """A date is read by the log's clock; without such a clock the message says so."""
    rows = (ran.folder / "w.swf").read_text()
    ran.write("dated.swf", f"; UnixStartTime: 1485648000\n; TimeZoneString: Europe/Stockholm\n{rows}")
    ran.run("run", "-p", "tiny", "-w", "dated.swf", "--in-process", "--out", "dated").ok()

    told, at_job = explained(
        ran, ["queue", "dated", "--at", "2017-01-29T01:00:05"], ["dated", "2", "--at", "2017-01-29 01:00:05"]
    )

    assert told.startswith("2 jobs waited at 5 s (2017-01-29 01:00)\n")
    assert "At 5 s (2017-01-29 01:00)" in at_job
    refused(ran, [(["queue", "out", "--at", "2017-01-29"], "--at", "the date of time 0 is unknown")])


def test_wrong_times_and_empty_queues(ran):
    """Each mistake of a time or a queue is one message that says what is possible."""
    refused(
        ran,
        [
            (["queue", "out"], "Missing option '--at'"),
            (["queue", "out", "--at", "soon"], "'soon' is neither a time", "nor a date"),
            (["queue", "out", "--at", "1e6"], "was not under way then", "to 250 s"),
            (["queue", "out", "--at", "200"], "no job waited then"),
            (["queue", "out", "--queue", "nowhere", "--at", "5"], "none of the 2 jobs", "queue nowhere"),
            (["queue", "gone", "--at", "5"], "gone", "no such folder"),
            (["queue", "out", "--at", "5", "--no-replay"], "No such option"),
            (["queue", "out", "--at", "5", "--csv", "out/out_jobs.csv"], "out_jobs.csv"),
            (["out", "2", "--csv", "q.csv"], "No such option"),
        ],
    )


def test_explain_does_not_wait_for_a_pipe_in_the_place_of_its_index(shell, tmp_path) -> None:
    """A pipe without a reader would never accept the index."""
    shell.run("run", "--workload", "seven-jobs", "-p", "seven-jobs", "--in-process", "--out", str(tmp_path)).ok()
    os.mkfifo(tmp_path / "out_explain.index")

    assert "w0!1" in shell.run("explain", "job", str(tmp_path), "w0!1").ok().out
