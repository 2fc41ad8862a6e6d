"""`serve --await-reconnect`: a scheduler disconnects, another replaces it, and the run continues."""

import signal

import pytest

#: rows of a workload for 4 units: some wait at each notice
ROWS = [(n, 7 * n, 20 + n % 5, 1 + n % 3, 30) for n in range(1, 60)]

#: EASY that waits for a file from time 250 on
SLOW = """
import time
from pathlib import Path

from pipistrelle.schedulers.catalogue.registry import make_policy


class Slow:
    name = "slow"

    def __init__(self):
        self.easy = make_policy("easy")
        self.order = self.easy.order

    def decide(self, view):
        if view.now >= 250:
            print("waits", flush=True)
        while view.now >= 250 and not Path("go").exists():
            time.sleep(0.02)
        self.easy.decide(view)

    def state(self):
        return self.easy.state()

    def restore(self, state, view):
        print("restored", flush=True)
        self.easy.restore(state, view)
"""


@pytest.fixture
def words(shell):
    """Write a workload, and return what names it and the machine."""
    return ("-p", "tiny", "-w", shell.swf("rows.swf", ROWS), "--quiet")


def serve(shell, words, *more, patience="60s"):
    """Start the server, and return it with the command of a scheduler that keeps its state."""
    server = shell.start("serve", *words, "--endpoint", "ipc://s", "--out", "out", "--await-reconnect", patience, *more)
    return server, lambda *way: shell.spawn(*shell.peer("keeps", *way, endpoint="ipc://s"))


@pytest.mark.parametrize("way", ["gives", "forgets"])
@pytest.mark.parametrize("kept", [(), ("--snapshot-every", "sim:100s")], ids=["not kept", "kept"])
def test_a_scheduler_comes_again(shell, words, kept, way):
    """The scheduler is killed twice within a notice; the outputs equal those of an undisturbed run."""
    shell.run("run", *words, "--out", "whole", "--scheduler", *shell.peer("keeps", "gives"))
    server, comes = serve(shell, words, *kept)
    for begin in ("150", "300"):
        scheduler = comes(way, begin)
        scheduler.until("peer waits")
        scheduler.signal(signal.SIGKILL)
        scheduler.finish()
    last = comes(way).finish()
    assert last.out.splitlines()[1].startswith("peer restored") == (bool(kept) and way == "gives"), last
    outcome = server.finish()
    assert outcome.code == 0, outcome
    assert outcome.err.count("Waiting for another scheduler for 60 s.") == 2
    assert outcome.err.count("has connected, and the run continues") == 2
    whole, found = shell.files("whole"), shell.files("out")
    assert found.keys() == whole.keys()
    assert [name for name in found if found[name] != whole[name]] == []


def test_a_policy_comes_again(shell, words):
    """After an interrupt, the new process gets the saved state and all later notices."""
    shell.run("run", *words, "--in-process", "--out", "whole").ok()
    shell.write("slow.py", SLOW)
    server = shell.start("serve", *words, "--out", "out", "--await-reconnect", "60s", "--snapshot-every", "sim:100s")
    first = shell.start("schedule", "slow.py:Slow", "--connect", "out/connection.json", "--quiet")
    first.until("waits")
    first.signal(signal.SIGTERM)
    first.finish()
    shell.write("go", "")
    second = shell.run("schedule", "slow.py:Slow", "--connect", "out/connection.json", "--quiet").ok()
    assert "waits" in second.out
    assert "restored" in second.out
    outcome = server.finish()
    assert outcome.code == 0, outcome
    assert "was interrupted" in outcome.err
    assert shell.files("out")["out_jobs.csv"] == shell.files("whole")["out_jobs.csv"]


def test_who_does_not_come_or_is_another_ends_the_run(shell, words):
    """One message says that no scheduler, or a different one, connected."""
    for others, says in (((), "no scheduler connected within 0.2 s"), (("easy",), "another scheduler has connected")):
        server, comes = serve(shell, words, patience="60s" if others else "0.2s")
        scheduler = comes("gives", "150")
        scheduler.until("peer waits")
        scheduler.signal(signal.SIGKILL)
        scheduler.finish()
        for other in others:
            shell.run("schedule", other, "--connect", "ipc://s", "--quiet")
        server.finish().failed(4, says)
    shell.run("serve", *words, "--await-reconnect", "soon").failed(2, "time to wait for a scheduler", "soon")
    shell.run("serve", *words, "--await-reconnect", "9s", "--record", "s.jsonl").failed(2, "--record")
    shell.run("serve", "--dialect", "batsim", "--connect", "ipc://x", "--await-reconnect", "9s").failed(2, "native")
