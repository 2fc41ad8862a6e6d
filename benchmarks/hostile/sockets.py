"""Send hostile frames over sockets to `serve` and `schedule` processes.

Both dialects are tested. Hostile frames are malformed or unexpected. Each command runs in a fork of this process, with
its own output and exit code. Its peer runs here: it sends valid frames, with some hostile ones in between, for as long
as the command answers.
"""

import json
import os
import select
import signal
import socket
import tempfile
from collections.abc import Callable
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Any

from hostile import runs
from hostile.mutator import Mutator, Words
from hostile.scheduler_side import Talk, heard
from hostile.server_side import BatsimPeer, NativePeer
from hostile.tables import BATSIM_EVENTS, EVENTS, STRANGE_KINDS
from hostile.tally import Tally

from pipistrelle.protocol import codec
from pipistrelle.protocol.messages import Welcome
from pipistrelle.protocol.zmtp import GREETING, ZmtpError, ZmtpStream, framed, parts_before
from pipistrelle.schedulers.wire.zmtp import ConnectionLost, ZmtpConnection

#: allowed exit codes: 0 complete, 3 illegal decision with --strict, 4 the peer's fault, 5 stalled
CODES = (0, 3, 4, 5)
#: longest wait for an answer, or for the end of a command (s)
_LIMIT_S = 30.0
#: number of exchanges after which the peer disconnects
_LONGEST = 60
_SCHEDULERS = ("easy", "conservative", "fcfs", "pbs")
_DELIMITER = parts_before([b""])
_SWF = "; MaxProcs: 4\n" + "".join(
    f"{one + 1} {one * 5} -1 {8 + one % 7} {one % 4 + 1} -1 -1 {one % 4 + 1} 30 -1 1 1 1 -1 -1 -1 -1 -1\n"
    for one in range(12)
)


class Command:
    """A ``pipistrelle`` command in a child process.

    The process is killed if it does not end in time.
    """

    def __init__(self, home: Path, words: list[str]) -> None:
        self._said = home / "said"
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            said = os.open(self._said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            os.dup2(said, 1)
            os.dup2(said, 2)
            signal.alarm(0)
            from pipistrelle.cli.main import main

            try:
                main(words)
            except SystemExit as end:
                os._exit(end.code if isinstance(end.code, int) else 0)
        self._pidfd = os.pidfd_open(self.pid)

    def ended(self) -> tuple[int | None, str]:
        """Wait for the end; return the exit code and the output.

        The exit code is None if the command was killed.
        """
        over = bool(select.select([self._pidfd], [], [], _LIMIT_S)[0])
        if not over:
            os.kill(self.pid, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self._pidfd)
        return code if over else None, self._said.read_text(errors="replace")


class Listening:
    """A listening peer: a ZeroMQ ROUTER for one REQ client, on a plain Unix socket."""

    def __init__(self, path: str) -> None:
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(path)
        self._server.listen(4)
        self._server.settimeout(_LIMIT_S)
        self._connection: socket.socket | None = None
        self._stream = ZmtpStream(b"ROUTER", (b"REQ", b"DEALER"), longest=1 << 26, farthest=1 << 26)

    def receive(self) -> bytes:
        """Return the next message.

        Raise ConnectionLost if the command closed the connection or sends nothing in time.
        """
        try:
            if self._connection is None:
                self._connection, _ = self._server.accept()
                self._connection.settimeout(_LIMIT_S)
                self._connection.sendall(GREETING)
            while (message := self._stream.message()) is None:
                self._answer()
                data = self._connection.recv(1 << 16)
                if not data:
                    raise ConnectionLost
                self._stream.feed(data)
            self._answer()
        except (OSError, ZmtpError) as error:
            raise ConnectionLost from error
        return message.parts[-1]

    def _answer(self) -> None:
        if (answers := self._stream.answers()) and self._connection is not None:
            self._connection.sendall(answers)

    def send(self, frame: bytes) -> None:
        """Send a message; ignore a closed connection."""
        with suppress(OSError):
            assert self._connection is not None
            self._connection.sendall(_DELIMITER + framed(frame))

    def close(self) -> None:
        """Close the connection and the listening socket."""
        self._server.close()
        if self._connection is not None:
            self._connection.close()


def connecting(path: str, command: Command) -> ZmtpConnection:
    """Connect to the command's socket as soon as the command listens.

    Return the connection.
    """
    connection = ZmtpConnection(f"ipc://{path}")
    while True:
        try:
            connection.connect(inf)
        except ConnectionLost:
            os.kill(command.pid, 0)
            select.select([], [], [], 0.005)
        else:
            return connection


class Fcfs:
    """A first-come, first-served scheduler on four units.

    It does not check the server's messages.
    """

    def __init__(self) -> None:
        self._free = set(range(4))
        self._waiting: list[tuple[str, int]] = []
        self._held: dict[str, list[int]] = {}

    def decide(self, message: dict[str, Any]) -> list[dict[str, Any]]:
        """Update the queue from a notice's events and return the decisions.

        Notice and decisions are JSON objects.
        """
        for event in message["events"]:
            data = event["data"]
            if event["type"] == "JOB_SUBMITTED":
                self._waiting.append((data["job_id"], data["job"]["res"]))
            elif event["type"] == "JOB_COMPLETED":
                self._free.update(self._held.pop(data["job_id"], ()))
        decisions = []
        while self._waiting and self._waiting[0][1] <= len(self._free):
            name, size = self._waiting.pop(0)
            taken = self._held[name] = sorted(self._free)[:size]
            self._free.difference_update(taken)
            data = {"job_id": name, "alloc": " ".join(map(str, taken))}
            decisions.append({"timestamp": message["now"], "type": "EXECUTE_JOB", "data": data})
        return decisions


def over_sockets(side: str, seed: int) -> Callable[[Tally, int], None]:
    """Return a function that carries out the run of a given number over a socket.

    ``side`` names the process under test and begins with ``server`` or ``scheduler``. It ends with ``batsim`` for
    Batsim's dialect.
    """
    _warm()
    batsim = side.endswith("batsim")
    if side.startswith("scheduler"):
        setup = runs.batsim(rich=True) if batsim else runs.native(rich=True, until=500.0)
        talks = {name: heard(name, setup) for name in _SCHEDULERS}

    def once(tally: Tally, number: int) -> None:
        tally.where = f"seed {seed}, run {number}"
        tally.runs += 1
        mutator = Mutator(f"{seed}:sockets:{side}:{number}")
        with tempfile.TemporaryDirectory(prefix="hostile-") as name:
            home, path = Path(name), f"{name}/socket"
            signal.alarm(0)
            if side.startswith("server"):
                (home / "w.swf").write_text(_SWF, encoding="ascii")
                words = ["serve", "-w", str(home / "w.swf"), "--out", str(home / "out"), "--quiet"]
                words += ["--dialect", "batsim", "--connect"] if batsim else ["--endpoint"]
                _server(tally, mutator, home, [*words, f"ipc://{path}"], path, batsim=batsim)
            else:
                talk = talks[_SCHEDULERS[number % len(_SCHEDULERS)]]
                way = ["--dialect", "batsim", "--bind"] if batsim else ["--connect"]
                words = ["schedule", talk.scheduler, "--quiet", *way, f"ipc://{path}"]
                _scheduler(tally, mutator, home, words, path, talk, batsim=batsim)

    return once


def _ends(tally: Tally, command: Command) -> None:
    code, said = command.ended()
    tally.ends[f"exit code {code}"] += 1
    if code not in CODES:
        tally.find(f"ends with exit code {code}: {said[-1000:]}")
    messages = [line for line in said.splitlines() if line.startswith("pipistrelle:")]
    if "Traceback" in said or "bug in" in said or len(messages) != (code != 0):
        tally.find(f"exit code {code}, says {said[-1000:]}")


def _hostile(tally: Tally, mutator: Mutator, good: bytes, share: float) -> bytes:
    if mutator.random.random() >= share:
        return good
    frame = mutator.mutate(good)
    with tally.trial(frame):
        signal.alarm(0)
    return frame


def _server(tally: Tally, mutator: Mutator, home: Path, words: list[str], path: str, *, batsim: bool) -> None:
    """Run `serve`, and act as its scheduler.

    About a third of the replies are malformed or unexpected.
    """
    listening = Listening(path) if batsim else None
    command = Command(home, words)
    peer: Any = listening if listening is not None else connecting(path, command)
    fcfs = Fcfs()
    mutator.words = Words(
        ["w0!1", "w0!2", "w0!5", "w0!12"], ["0-3", "0-1", "2"], kinds=BatsimPeer.KINDS if batsim else NativePeer.KINDS
    )
    try:
        if not batsim:
            hello = b'{"type": "HELLO", "data": {"name": "h", "features": ["wake_filter", "dynamic_jobs"]}}'
            for _ in range(mutator.random.choice((0, 2, 5))):  # hostile HELLOs
                peer.send(_hostile(tally, mutator, hello, 1.0))
                if json.loads(peer.receive()).get("type") == "WELCOME":
                    break
                tally.refused += 1
            else:
                peer.send(hello)
                peer.receive()
            peer.send(b'{"reply_to": 0, "now": 0, "events": []}')
        for _ in range(_LONGEST):
            message = json.loads(peer.receive())
            if "now" not in message or any(event["type"] == "SIMULATION_ENDS" for event in message["events"]):
                tally.refused += "now" not in message
                break
            reply = {"now": message["now"], "events": fcfs.decide(message)}
            good = json.dumps(reply if batsim else {"reply_to": message["seq"], **reply}).encode()
            peer.send(_hostile(tally, mutator, good, 0.35))
    except (ConnectionLost, TimeoutError):
        pass
    peer.close()
    _ends(tally, command)


def _scheduler(
    tally: Tally, mutator: Mutator, home: Path, words: list[str], path: str, talk: Talk, *, batsim: bool
) -> None:
    """Run `schedule`, and act as its server.

    A random share of the notices is malformed or unexpected.
    """
    listening = None if batsim else Listening(path)
    command = Command(home, words)
    peer: Any = connecting(path, command) if listening is None else listening
    mutator.words = Words(
        ["w0!1", "w0!2", "w0!99"],
        ["0-3", "0-1", "2"],
        (0.0, 5.0),
        talk.frames[:6],
        (*EVENTS, *BATSIM_EVENTS, *STRANGE_KINDS),
    )
    share = mutator.random.choice((1.0, 0.3, 0.05))
    try:
        if not batsim:
            peer.receive()
            peer.send(_hostile(tally, mutator, codec.encode(Welcome(talk.welcome)), 0.1))
            peer.receive()
        for frame in talk.frames:
            peer.send(_hostile(tally, mutator, frame, share))
            tally.taken += bool(json.loads(peer.receive()))
    except (ConnectionLost, TimeoutError):
        tally.refused += 1
    peer.close()
    _ends(tally, command)


def _warm() -> None:
    """Import the modules that the commands need, so that their forks start fast."""
    from pipistrelle.cli.terminal.console import import_numpy

    import_numpy()
    import pipistrelle.cli.run.schedule
    import pipistrelle.cli.run.serve
    import pipistrelle.cli.terminal.heartbeat
    import pipistrelle.cli.terminal.summary
    import pipistrelle.runs.execution.run  # noqa: F401
