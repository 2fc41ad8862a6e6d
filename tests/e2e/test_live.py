"""``--live`` on real pseudo-terminals and ``--page`` on real sockets: what they show, and that runs do not change."""

import fcntl
import json
import os
import pty
import re
import shlex
import signal
import socket
import struct
import subprocess
import termios
import threading
from pathlib import Path

import pytest

ENTER, LEAVE, HOME = b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[H"
HIDE, SHOW = b"\x1b[?25l", b"\x1b[?25h"
STYLE = re.compile(r"\x1b\[[0-9;]*m")
CONTROL = re.compile(r"\x1b\[\??[0-9;]*[a-zA-Z]")


class Terminal:
    """A terminal of some columns and rows in which a command runs, and all that it was sent."""

    def __init__(self, shell, rows, columns, *words, term="xterm-256color", stdout=None, job=False, **more) -> None:
        self.columns, self.rows = columns, rows
        self._reader, end = pty.openpty()
        self.resize(rows, columns)
        environment = {key: value for key, value in shell.environment.items() if key not in ("COLUMNS", "NO_COLOR")}
        environment |= {"TERM": term, **more}
        words = [*shell.command, *map(str, words)]
        with open(end, "wb", buffering=0) as stream:
            out = stream if stdout is None else stdout
            if not job and shell.forks is not None and shell.forks.can(words, environment):
                self.process = shell.forks.start(words, shell.folder, environment, out, stream)
            else:
                self.process = subprocess.Popen(
                    words, stdin=subprocess.DEVNULL, stdout=out, stderr=stream, cwd=shell.folder, env=environment,
                    **({"process_group": 0} if job else {"start_new_session": True}),  # as a shell starts a job
                )  # fmt: skip
        self.sent = b""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while True:
            try:
                self.sent += os.read(self._reader, 65536)
            except OSError:  # nobody writes there any more
                return

    def resize(self, rows, columns):
        """Let it have another size."""
        fcntl.ioctl(self._reader, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def hang_up(self):
        """Go away: whoever writes there from now on gets an error."""
        os.close(self._reader)

    def finish(self):
        """Wait for the end of the command and return its exit code."""
        code = self.process.wait()
        self._thread.join()
        os.close(self._reader)
        return code

    @property
    def frames(self):
        """What was drawn, each time as lines without colours."""
        whole = self.sent.split(ENTER, 1)[-1].split(LEAVE, 1)[0].decode()
        return [CONTROL.sub("", frame).replace("\r", "").split("\n") for frame in whole.split(HOME.decode())[1:]]

    @property
    def after(self):
        """What came when the screen was left."""
        return self.sent.split(LEAVE, 1)[1].decode()

    def check_clean(self):
        """Assert that the screen was entered once, and left as it was found."""
        assert self.sent.count(ENTER) == self.sent.count(LEAVE) == 1
        assert self.sent.index(ENTER) < self.sent.index(LEAVE)
        assert self.sent.rindex(SHOW) > self.sent.rindex(HIDE)
        assert HOME not in self.sent.split(LEAVE, 1)[1]


def test_the_view_shows_the_run_and_the_summary_follows(shell):
    """All parts are shown, the screen is restored, and the outputs equal those without --live."""
    shell.run("run", "-w", "demo", "--scheduler", "fcfs", "-o", "plain", "-q").ok()
    terminal = Terminal(shell, 40, 100, "run", "-w", "demo", "--scheduler", "fcfs", "-o", "live", "--live")

    assert terminal.finish() == 0
    terminal.check_clean()
    text = "\n".join("\n".join(frame) for frame in terminal.frames)
    for part in (
        "demo on demo, fcfs", "simulated s/s", "notices/s", "of 5,000 jobs ended", "of 256 units held", "queue:",
        "machine: 256 nodes", "waiting longest", "last decisions",
    ):  # fmt: skip
        assert part in text
    assert "outputs in live" in terminal.after
    assert shell.files("live") == shell.files("plain")


@pytest.mark.parametrize(("rows", "columns"), [(24, 80), (1, 1)])
def test_sizes_of_terminals(shell, rows, columns):
    """No frame has more lines or columns than the terminal."""
    terminal = Terminal(shell, rows, columns, "run", "--in-process", "-o", "live", "-q", "--live")

    assert terminal.finish() == 0
    terminal.check_clean()
    assert terminal.frames
    for frame in terminal.frames:
        assert len(frame) <= rows
        assert max(map(len, frame)) <= columns


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_an_interrupt_leaves_the_terminal_clean(shell, wait_until, number):
    """Outputs are complete, the message follows the restored screen, and the exit code is 130."""
    terminal = Terminal(shell, 24, 80, "run", "-p", "tiny", "-w", shell.many(20_000), "-o", "live", "--live")
    wait_until(lambda: terminal.sent.count(HOME) > 3)
    terminal.process.send_signal(number)

    assert terminal.finish() == 130
    terminal.check_clean()
    assert re.search(r"^pipistrelle: simulated time [0-9.]+: interrupted\.", terminal.after, re.MULTILINE)
    assert "Traceback" not in terminal.after
    assert shell.end_reason("live") == "interrupted"
    assert shell.ended_jobs("live")


@pytest.mark.slow
def test_it_follows_the_size_of_the_terminal(shell, wait_until):
    """After the terminal shrinks, the view is smaller."""
    terminal = Terminal(shell, 40, 120, "run", "-p", "tiny", "-w", shell.many(20_000), "-o", "live", "--live")
    wait_until(lambda: terminal.sent.count(HOME) > 1)
    terminal.resize(12, 50)
    before = terminal.sent.count(HOME)
    wait_until(lambda: terminal.sent.count(HOME) > before + 3)
    terminal.process.send_signal(signal.SIGINT)

    assert terminal.finish() == 130
    assert max(map(len, terminal.frames[-1])) <= 50
    assert len(terminal.frames[-1]) <= 12


def test_what_the_scheduler_prints_comes_afterwards(shell):
    """The scheduler's output does not disturb the view, and is not lost."""
    program, script, endpoint = shell.peer("good", endpoint='"$1"')
    command = f"{shlex.join([program, script])} {endpoint}"
    shell.write("noisy.sh", f"#!/bin/sh\necho hello from there >&2\necho and here\nexec {command}\n")
    terminal = Terminal(
        shell, 24, 80, "run", "-p", "tiny", "-w", shell.small(), "-o", "live", "--live",
        "--scheduler", "sh", "noisy.sh", "{endpoint}",
    )  # fmt: skip
    assert terminal.finish() == 0
    assert "hello from there" not in terminal.sent.decode().split(LEAVE.decode())[0]
    assert "hello from there" in terminal.after
    assert "and here" in terminal.after


def test_a_terminal_that_goes_away_does_not_end_the_run(shell, wait_until):
    """The run completes with all outputs."""
    with (shell.folder / "figures.json").open("wb") as out:
        words = ("run", "-p", "tiny", "-w", shell.many(5000), "-o", "live", "--json", "--live")
        terminal = Terminal(shell, 24, 80, *words, stdout=out)
        wait_until(lambda: terminal.sent.count(HOME) > 1)
        terminal.hang_up()
        code = terminal.process.wait()

    assert code == 0
    assert json.loads((shell.folder / "figures.json").read_text())["jobs"] == 5000
    assert len(shell.ended_jobs("live")) == 5000


@pytest.mark.slow
def test_a_run_that_is_stopped_gives_the_terminal_back(shell, wait_until):
    """Ctrl-Z restores the screen; when the run continues, the view returns."""
    terminal = Terminal(shell, 24, 80, "run", "-p", "tiny", "-w", shell.many(20_000), "-o", "live", "--live", job=True)
    status = Path(f"/proc/{terminal.process.pid}/status")
    wait_until(lambda: terminal.sent.count(HOME) > 1)
    terminal.process.send_signal(signal.SIGTSTP)
    wait_until(lambda: "State:\tT" in status.read_text())
    wait_until(lambda: terminal.sent.count(LEAVE) == 1)
    terminal.process.send_signal(signal.SIGCONT)
    wait_until(lambda: terminal.sent.count(ENTER) == 2)
    terminal.process.send_signal(signal.SIGINT)

    assert terminal.finish() == 130
    assert terminal.sent.count(LEAVE) == 2
    assert terminal.sent.rindex(SHOW) > terminal.sent.rindex(HIDE)


def test_figures_go_where_they_are_sent(shell):
    """The view is on standard error, so a summary as JSON in a file is not disturbed."""
    with (shell.folder / "figures.json").open("wb") as out:
        terminal = Terminal(shell, 24, 80, "run", "--in-process", "-o", "live", "--json", "--live", stdout=out)
        assert terminal.finish() == 0
    terminal.check_clean()
    assert json.loads((shell.folder / "figures.json").read_text())["jobs"] == 5000


@pytest.mark.slow
@pytest.mark.parametrize("more", [{"LC_ALL": "C.UTF-8", "NO_COLOR": "1"}, {}], ids=["no colour", "colour"])
def test_colours_are_the_terminals(shell, more):
    """With NO_COLOR there are no colours, and letters show the jobs."""
    shell.forks = None
    terminal = Terminal(shell, 24, 80, "run", "--in-process", "-o", "live", "-q", "--live", **more)

    assert terminal.finish() == 0
    coloured = re.findall(rb"\x1b\[(?:[0-9;]*;)?(?:3[0-7]|9[0-7])m", terminal.sent)
    assert bool(coloured) != bool(more)


def test_where_nothing_can_be_drawn(shell):
    """Without a terminal, or with a dumb one, a message says so, and progress lines follow."""
    outcome = shell.run("run", "--in-process", "-o", "live", "-q", "--live")
    assert outcome.code == 0
    assert outcome.err.startswith("--live: standard error is not a terminal; showing progress lines instead\n")
    assert "5,000/5,000 jobs" in outcome.err
    assert "\x1b" not in outcome.err
    terminal = Terminal(shell, 24, 80, "run", "--in-process", "-o", "dumb", "-q", "--live", term="dumb")
    assert terminal.finish() == 0
    assert b"\x1b" not in terminal.sent
    assert b"showing progress lines instead" in terminal.sent


@pytest.mark.slow
def test_serve_shows_the_run_it_serves(shell, wait_until):
    """The view begins when the scheduler has connected."""
    terminal = Terminal(shell, 24, 80, "serve", "-p", "tiny", "-w", shell.many(5000), "--out", "out", "--live")
    wait_until(lambda: b"waiting for a scheduler" in terminal.sent)
    assert ENTER not in terminal.sent
    shell.run("schedule", "easy", "--connect", "out").ok()

    assert terminal.finish() == 0
    terminal.check_clean()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--live", "--no-progress"], "--live and --no-progress exclude each other"),
        (["--page", "65536"], "65536 is not in the range"),
        (["--page", "-1"], "-1 is not in the range"),
        (["--page", "http"], "'http' is not a valid integer"),
    ],
)
def test_what_can_be_wrong(shell, words, says):
    """Each error is one message before the run."""
    shell.run("run", "-o", "out", *words).failed(2, says)
    assert not (shell.folder / "out").exists()


def test_a_port_in_use_is_said_before_the_run(shell):
    """One message names the port; no outputs are begun."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        shell.run("run", "-o", "out", "--page", port).failed(
            2, f"--page {port}: cannot serve the page on this port", "--page 0"
        )
    assert not (shell.folder / "out" / "out_jobs.csv").exists()


def follow(port):
    """Yield the states of a run as its page is told them, up to the end of the connection."""
    with socket.create_connection(("127.0.0.1", port)) as connection, connection.makefile("rb") as file:
        connection.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        for line in file:
            if line.startswith(b"data: "):
                yield json.loads(line.removeprefix(b"data: "))


def test_a_page_is_told_of_the_run(shell, wait_until):
    """The page follows the run from waiting to its end, despite bad clients, with the same outputs."""
    log = shell.many(5000)
    shell.run("run", "-p", "tiny", "-w", log, "--out", "plain", "-q").ok()
    server = shell.start("serve", "-p", "tiny", "-w", log, "--out", "out", "--page", 0).until("listening")
    port = int(re.search(r"shown at http://127\.0\.0\.1:(\d+)/", server.out)[1])
    states = follow(port)
    assert next(states) == {"phase": "waiting"}
    deaf = [socket.create_connection(("127.0.0.1", port)) for _ in range(5)]
    for one in deaf:
        one.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    scheduler = shell.start("schedule", "easy", "--connect", "out")
    seen = list(states)
    for one in deaf:
        one.close()

    scheduler.finish().ok()
    assert server.finish().code == 0
    assert [one["phase"] for one in seen[:-1]] == ["running"] * (len(seen) - 1)
    assert (seen[-1]["phase"], seen[-1]["reason"], seen[-1]["ended"]) == ("over", "completed", 5000)
    times = [one["now"] for one in seen]
    assert times == sorted(times)
    assert shell.files("out") == shell.files("plain")


def test_a_run_that_is_kept_has_a_page(shell):
    """A run with snapshots, recorded or not, has a page and the same outputs."""
    log = shell.many(300)
    shell.run("run", "-p", "tiny", "-w", log, "--in-process", "-o", "plain", "-q").ok()
    for name, more in (("kept", ("--snapshot-every", "sim:1h")), ("recorded", ("--record", "session.jsonl"))):
        words = ("run", "-p", "tiny", "-w", log, "--in-process", "-o", name, "-q", "--page", "0", *more)
        shell.run(*words).ok()
        assert shell.files(name) == shell.files("plain")


def test_a_page_is_told_of_an_interrupt(shell):
    """The page says that the run was interrupted, and keeps its last state."""
    server = shell.start("run", "-p", "tiny", "-w", shell.many(300_000), "-o", "out", "--page", 0).until("shown at")
    # far more jobs than are done before somebody looks
    states = follow(int(re.search(r":(\d+)/", server.out)[1]))
    next(one for one in states if one["phase"] == "running" and one["notices"] > 10)
    server.signal(signal.SIGINT)

    last = list(states)[-1]
    server.finish().failed(130, "interrupted")
    assert (last["phase"], last["reason"]) == ("over", "interrupted")


@pytest.mark.slow
def test_a_page_is_told_that_nothing_has_begun(shell):
    """If no scheduler connects, the page says so."""
    server = shell.start(
        "run", "-o", "out", "--page", 0, "--hello-timeout", "600", "--scheduler", "sh", "-c", "sleep 2", "{endpoint}"
    ).until("shown at")
    states = list(follow(int(re.search(r":(\d+)/", server.out)[1])))

    server.finish().failed(4, "before the simulation was over")
    assert states[0] == {"phase": "waiting"}
    assert (states[-1]["phase"], states[-1]["reason"]) == ("over", "never begun")
