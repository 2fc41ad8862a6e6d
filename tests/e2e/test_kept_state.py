"""Kept runs whose scheduler is another process: its state is saved and restored."""

import gzip
import hashlib
import json
import signal

import pytest

#: rows of a workload for 4 units: some wait at each notice
ROWS = [(n, 7 * n, 20 + n % 5, 1 + n % 3, 30) for n in range(1, 60)]
OWN = ("--failures", "exponential,mtbf=40d", "--repair", "6h", "--max-attempts", "3", "--until", "36h", "--quiet")


def snapshots(shell, out="out"):
    """Return the snapshots that there are, by their numbers of notices."""
    return {int(path.name[13:23]): path for path in sorted((shell.folder / out).glob("out_snapshot-*.gz"))}


def saved(path):
    """Return what a snapshot has of a scheduler in another process."""
    return json.loads(gzip.decompress(path.read_bytes()).partition(b"\n")[2])["saved"]


def same(shell, out, expected):
    """Assert that the outputs in a folder are these, snapshots and how it was called apart."""
    found = shell.files(out)
    for name, data in expected.items():
        if not name.startswith(("out_snapshot", "out_session", "out_command", ".")):
            assert found[name] == data, name


@pytest.mark.parametrize(
    "scheduler",
    [
        ("easy",),
        pytest.param(("pbs", "--fairshare-entity", "user"), marks=pytest.mark.slow),
        pytest.param(("maui",), marks=pytest.mark.slow),
    ],
    ids=lambda words: words[0],
)
def test_a_scheduler_of_ours_is_given_its_state(shell, scheduler):
    """A resumed run has the same bytes from each snapshot, also if all notices are replayed."""
    words = ("run", "--scheduler", *scheduler, *OWN, "--snapshot-every", "sim:12h", "--keep-snapshots", "9")
    shell.run(*words, "--leave-snapshots", "--out", "out").ok()
    whole = shell.files("out")
    shell.run("run", "--scheduler", *scheduler, *OWN, "--in-process", "--out", "plain").ok()
    same(shell, "plain", whole)
    kept = snapshots(shell)
    assert len(kept) == 3
    assert all(json.loads(saved(path))["seq"] == notices for notices, path in kept.items())
    for number, path in enumerate(kept.values()):
        shell.run("resume", path, "--out", f"again-{number}", "--quiet").ok()
        same(shell, f"again-{number}", whole)


def play(shell, way, *more, name="resume"):
    """Start the run of the peer that keeps its state, or let it go on."""
    peer = shell.peer("keeps", way, *more)
    if name == "resume":
        return shell.start("resume", "out", "--quiet", "--trust")
    return shell.start(
        "run", "-p", "tiny", "-w", shell.swf("rows.swf", ROWS), "--out", "out", "--overwrite",
        "--snapshot-every", "sim:100s",
        "--quiet", "--scheduler", *peer,
    )  # fmt: skip


@pytest.mark.parametrize("way", ["gives", "forgets"])
def test_a_program_gives_its_state_or_is_told_all_again(shell, wait_until, way):
    """After SIGTERM and resume, only a scheduler without saved state gets all notices again."""
    outcome = play(shell, way, name="run").finish()
    assert outcome.code == 0, outcome
    whole = shell.files("out")
    assert "peer will be asked []" in outcome.out
    if way == "forgets":
        assert outcome.err.count("gives no state: it has?[2J a bad memory") == 1

    run = play(shell, way, "200", name="run")
    wait_until(lambda: len(snapshots(shell)) == 2 and max(snapshots(shell)) > 10)
    run.signal(signal.SIGTERM)
    shell.write("go", "")
    run.finish()
    last = max(snapshots(shell))
    outcome = play(shell, way).finish()
    assert outcome.code == 0, outcome
    first = next(line for line in outcome.out.splitlines() if line.startswith("peer told"))
    assert first == (f"peer told {last + 1}" if way == "gives" else "peer told 1")
    assert (f"peer restored {last}" in outcome.out) == (way == "gives")
    same(shell, "out", whole)


def test_a_run_that_is_not_kept_asks_nobody(shell):
    """WELCOME offers no saving of states."""
    assert "peer is not asked []" in shell.simulate("keeps", "gives").out


@pytest.mark.parametrize(
    ("way", "says"),
    [
        ("babbles", "broke the protocol after SAVE after notice 1: this is not the expected message"),
        ("dies", "ended with exit code 3 before the simulation was over"),
    ],
)
def test_a_scheduler_that_fails_when_it_is_asked(shell, way, says):
    """The run ends as after a missing or malformed reply."""
    play(shell, way, name="run").finish().failed(4, says)


def test_a_scheduler_that_sleeps_over_it_holds_up_no_interrupt(shell, wait_until):
    """The last snapshot has no scheduler state then, and the resumed run replays all notices."""
    run = play(shell, "sleeps", name="run")
    run.until("peer sleeps")
    run.signal(signal.SIGTERM)
    run.finish().failed(130, "interrupted")
    assert saved(snapshots(shell)[max(snapshots(shell))]) is None


def changed(path, **marks):
    """Change what a snapshot has of its scheduler's state."""
    head, _, body = gzip.decompress(path.read_bytes()).partition(b"\n")
    state = json.loads(body)
    state["saved"] = json.dumps({**json.loads(state["saved"]), **marks})
    body = json.dumps(state, separators=(",", ":")).encode()
    header = {**json.loads(head), "sha256": hashlib.sha256(body).hexdigest()}
    path.write_bytes(gzip.compress(json.dumps(header).encode() + b"\n" + body))


def test_a_wrong_state_ends_with_what_is_wrong(shell):
    """The scheduler reports the error, and the server says who has failed."""
    shell.run("run", "--until", "2d", "--quiet", "--snapshot-every", "sim:1d", "--leave-snapshots", "--out", "out").ok()
    last = snapshots(shell)[max(snapshots(shell))]
    text = last.read_bytes()
    for marks, says in (
        ({"policy": "other"}, "the state of another policy"),
        ({"pipistrelle": "0.0"}, "the state of another version of pipistrelle"),
        ({"state": 1}, "cannot restore the state that the server returned"),
    ):
        last.write_bytes(text)
        changed(last, **marks)
        outcome = shell.run("resume", "out", "--quiet")
        assert outcome.code == 4, outcome
        assert "Traceback" not in outcome.err
        ours, server = outcome.messages
        assert says in ours
        assert "ended with exit code 4" in server


def test_a_served_run_refuses_another_scheduler(shell):
    """The server refuses another name or other options, and continues with an equal scheduler."""
    run = ("--until", "2d", "--quiet", "--snapshot-every", "sim:1d", "--leave-snapshots", "--out", "out")
    server = shell.start("serve", *run)
    shell.run("schedule", "easy", "--connect", "out/connection.json", "--quiet").ok()
    assert server.finish().code == 0
    whole = shell.files("out")
    for scheduler in (("fcfs",), ("easy", "--order", "sjf")):
        server = shell.start("resume", "out", "--quiet", "--out", "again")
        shell.run("schedule", *scheduler, "--connect", "again/connection.json", "--quiet")
        server.finish().failed(2, "this is another scheduler than the run's")
    server = shell.start("resume", "out", "--quiet", "--out", "again")
    shell.run("schedule", "easy", "--connect", "again/connection.json", "--quiet").ok()
    assert server.finish().code == 0
    same(shell, "again", whole)


def test_a_program_that_refuses_its_state(shell):
    """The scheduler leaves, and the run ends with its error."""
    shell.run(
        "run", "-p", "tiny", "-w", shell.swf("rows.swf", ROWS), "--out", "out", "--overwrite",
        "--snapshot-every", "sim:100s",
        "--leave-snapshots", "--quiet", "--scheduler", *shell.peer("keeps", "refuses"),
    )  # fmt: skip
    shell.run("resume", "out", "--quiet", "--trust").failed(4, "failed after RESTORE of notice")
