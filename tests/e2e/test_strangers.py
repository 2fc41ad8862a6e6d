"""Strangers at a server's endpoint neither block nor change the run."""

import socket
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from pipistrelle.runs.inputs.keys import make_keys

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00NULL" + bytes(48)
CURVE = b"\xff" + bytes(8) + b"\x7f\x03\x00CURVE" + bytes(47)
READY = b"\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03REQ"
#: what strangers say, of whom some stay and some go
WORDS = (
    b"",
    b"\xff",
    b"GET / HTTP/1.0\r\n\r\n",
    b"\x01\x00\x00\x05hello",
    b"\xff" + bytes(8) + b"\x7f\x01\x05\x00\x00",
    GREETING,
    GREETING[:50],
    GREETING + READY + b"\x01\x00\x00\x05hello",
    GREETING + READY + b"\x02" + b"\xff" * 8,
    GREETING + READY + b"\x02" + (500_000).to_bytes(8, "big") + b"x" * 1000,
)
#: those who say something to an encrypted socket: no key, one that is none, garbage, what is no greeting or too long
TO_CURVE = (
    *WORDS,
    CURVE,
    CURVE + GREETING,
    CURVE + b"\x04\xc8\x05HELLO" + bytes(194),
    CURVE + b"\x04\xc8\x05HELLO\x01\x00" + bytes(range(192)),
    CURVE + b"\x04\x05\x04WHAT",
    CURVE + b"\x04\x0f\x08INITIATExxxxxx",
    CURVE + b"\x00\x05hello",
    CURVE + b"\x02" + b"\xff" * 8,
    CURVE + b"\x06" + (1 << 40).to_bytes(8, "big") + b"x" * 100_000,
    CURVE[:40],
)


def connected(endpoint: str) -> socket.socket:
    """Return a plain socket that is connected, and waits for nothing."""
    if endpoint.startswith("ipc://"):
        visitor = socket.socket(socket.AF_UNIX)
        try:
            visitor.connect(endpoint.removeprefix("ipc://"))
        except OSError:
            visitor.close()
            raise
    else:
        visitor = socket.create_connection(("127.0.0.1", int(endpoint.rpartition(":")[2])))
    visitor.setblocking(False)
    return visitor


class Strangers:
    """Who connects to an endpoint, says something, and goes or stays; of those who stay the last hundred do."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._staying: list[socket.socket] = []
        self.visits = 0

    def visit(self, words: tuple[bytes, ...] = WORDS) -> bool:
        """Let the next one come; return whether there was anybody to connect to."""
        try:
            visitor = connected(self._endpoint)
        except OSError:  # whoever listened has gone
            return False
        with suppress(OSError):
            visitor.sendall(words[self.visits % len(words)])
        self.visits += 1
        if self.visits % 3:
            visitor.close()
        else:
            self._staying.append(visitor)
        if len(self._staying) > 100:
            self._staying.pop(0).close()
        return True

    def leave(self) -> None:
        """Let those go who are still there."""
        for visitor in self._staying:
            visitor.close()


def listening_at(server) -> str:
    """Return where a server listens."""
    return server.until("waiting for a scheduler").out.split()[2].rstrip(";")


@pytest.mark.parametrize("scheme", ["tcp", "ipc"])
def test_connections_that_come_and_go_by_the_thousand(shell, scheme):
    """A port scanner changes nothing before, during and at the end of the run."""
    many = shell.many(1000)
    shell.run("run", "-p", "tiny", "-w", many, "--out", "alone").ok()
    address = "tcp://127.0.0.1:*" if scheme == "tcp" else f"ipc://{shell.temporary}/s"
    server = shell.start("serve", "-p", "tiny", "-w", many, "--out", "out", "--endpoint", address)
    endpoint = listening_at(server)
    strangers = Strangers(endpoint)
    while strangers.visits < 400:
        assert strangers.visit()
    scheduler = shell.start("schedule", "easy", "--connect", endpoint)
    while strangers.visit():
        pass
    strangers.leave()

    outcome = server.finish()
    assert outcome.code == 0, outcome
    assert "Traceback" not in outcome.err
    assert scheduler.finish().code == 0
    assert shell.files("alone") == shell.files("out")


def most_held(pid: int) -> int:
    """Return how much memory a process has held at the most, in MiB."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM"))


def test_strangers_at_an_encrypted_socket(shell, wait_until):
    """Clients without a key block nothing and cost little; each reason is logged once."""
    many = shell.many(300)
    shell.run("run", "-p", "tiny", "-w", many, "--out", "alone").ok()
    make_keys(shell.folder / "k", ["server", "scheduler"])
    server = shell.start(
        "serve", "-p", "tiny", "-w", many, "--out", "out", "--endpoint", "tcp://127.0.0.1:*", "--hello-timeout", "600",
        "--curve", "k/server.key", "--clients", "k",
    )  # fmt: skip
    endpoint = listening_at(server)
    before = most_held(server.pid)
    strangers = Strangers(endpoint)
    while strangers.visits < 600:
        assert strangers.visit(TO_CURVE)
    wait_until(lambda: "uses no CURVE" in server.err)
    assert most_held(server.pid) < before + 32
    keys = ("--curve", "k/scheduler.key", "--server-key", "k/server.pub")
    scheduler = shell.start("schedule", "easy", "--connect", endpoint, *keys)
    while strangers.visit(TO_CURVE):
        pass
    strangers.leave()

    outcome = server.finish()
    assert outcome.code == 0, outcome
    assert scheduler.finish().code == 0
    assert shell.files("alone") == shell.files("out")
    said = [line for line in outcome.err.splitlines() if "turned away" in line]
    assert len(said) == len({*said}) <= 4


def test_connections_by_the_thousand_to_a_scheduler_that_listens(shell, free_endpoint):
    """In Batsim's dialect strangers reach the scheduler; nothing changes."""
    many = shell.many(1000)
    shell.run("run", "-p", "tiny", "-w", many, "--out", "alone", "--dialect", "batsim").ok()
    scheduler = shell.start("schedule", "easy", "--dialect", "batsim", "--bind", free_endpoint).until("listening at ")
    strangers = Strangers(free_endpoint)
    while strangers.visits < 1200:
        assert strangers.visit(tuple(words for words in WORDS if not words.endswith(b"hello")))
    server = shell.start(
        "serve", "-p", "tiny", "-w", many, "--dialect", "batsim", "--connect", free_endpoint, "--out", "out"
    )
    scheduler.until("a server has connected")
    while strangers.visit():
        pass
    strangers.leave()

    outcome = server.finish()
    assert outcome.code == 0, outcome
    ended = scheduler.finish()
    assert ended.code == 0, ended
    assert "Traceback" not in outcome.err + ended.err
    ours, alone = shell.files("out"), shell.files("alone")
    del ours["out_config.json"], alone["out_config.json"]  # which say how the scheduler is called
    assert ours == alone


@pytest.mark.slow
def test_few_descriptors(shell):
    """With too few file descriptors for all clients, the scheduler still connects and the run completes."""
    limited = "import os, resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40)); "
    limited += "os.execv(sys.argv[1], sys.argv[1:])"
    small = shell.small()
    server = shell.spawn(
        sys.executable, "-c", limited, *shell.command,
        "serve", "-p", "tiny", "-w", small, "--out", "out", "--endpoint", "tcp://127.0.0.1:*", "--hello-timeout", "600",
    )  # fmt: skip
    endpoint = listening_at(server)
    with ExitStack() as opened:
        for _ in range(50):
            opened.enter_context(connected(endpoint)).sendall(GREETING)
        scheduler = shell.start("schedule", "easy", "--connect", endpoint)
        assert server.finish().code == 0
    assert scheduler.finish().code == 0
    assert len(shell.ended_jobs()) == 4


OLD = """
import socket, sys
old = socket.create_connection(("127.0.0.1", int(sys.argv[1].rpartition(":")[2])))
old.sendall(bytes.fromhex(sys.argv[2]))
while old.recv(1000):
    pass
"""


@pytest.mark.parametrize("said", [b"\x01\x00\x01\x00", WORDS[4]], ids=["zmtp 1", "zmtp 2"])
def test_a_scheduler_of_old_zeromq_is_named(shell, said):
    """It is refused at once, and the error says that it does not speak ZMTP 3."""
    outcome = shell.run(
        "run", "-p", "tiny", "-w", shell.small(), "--out", "out", "--endpoint", "tcp://127.0.0.1:*",
        "--hello-timeout", "600", "--scheduler", sys.executable, "-c", OLD, "{endpoint}", said.hex(),
    )  # fmt: skip
    outcome.failed(4, "ended with exit code 0", "found a peer that does not speak ZeroMQ's protocol (ZMTP 3")
