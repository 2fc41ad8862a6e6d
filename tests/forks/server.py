"""Start Python processes fast: fork them from a process that has already imported what they need.

They are real processes, each with its own streams, folder, environment, session, signals and exit code. They share
what an interpreter reads from its environment when it starts, such as the hash seed. Tests that need another
interpreter do not use this server (`Forks` in tests/conftest.py).

A request comes over the Unix socket that is the only argument: its length, the words with the streams as descriptors.
The answer is a line with the process's number and, at its end, one with its return code. A client that disconnects
ends its process.
"""

import atexit
import ctypes
import gc
import importlib
import io
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from pipistrelle.cli.terminal.console import import_numpy

LAYERS: Final = (
    *("protocol", "platforms", "traces", "server", "schedulers", "models"),
    *("runs", "reports", "studies", "papers", "cli"),
)
#: what commands and the schedulers in tests/peers import besides
WARM: Final = (
    "difflib",
    "email.parser",
    "encodings.utf_8_sig",
    "importlib.metadata",
    "importlib.readers",
    "json",
    "numpy.ma",
    "rich._emoji_codes",
    "tomllib",
    "zmq",
)
#: what few commands import, and what would make each fork slower
COLD: Final = frozenset(("matplotlib", "numba", "pyarrow", "scipy"))
#: programs that import these at once
_LEFT_OUT: Final = ("pipistrelle.kernel.", "pipistrelle.schedulers.plan.compiled")
#: the variable in /proc that tells which test a process belongs to (tests/e2e/conftest.py)
MARK: Final = "PIPISTRELLE_TEST_MARK"
_HEAD: Final = 9


class Start:
    """A program to run: the words after the interpreter's name, a folder, an environment."""

    def __init__(self, words: Sequence[str], folder: str, environment: dict[str, str]) -> None:
        self.words = list(words)
        self.folder = folder
        self.environment = environment

    def encode(self) -> bytes:
        """Return it as bytes that begin with their length."""
        pairs = (f"{name}={value}" for name, value in self.environment.items())
        data = b"\0".join(map(os.fsencode, (self.folder, str(len(self.words)), *self.words, *pairs)))
        return b"%*d" % (_HEAD, len(data)) + data

    @staticmethod
    def receive(connection: socket.socket, head: bytes = b"") -> "Start | None":
        """Return what a connection sends, of which the first bytes may have arrived; None when it sends nothing."""
        with connection.makefile("rb") as file:
            head = head or file.read(_HEAD)
            if not head:
                return None
            folder, count, *rest = map(os.fsdecode, file.read(int(head)).split(b"\0"))
        words, pairs = rest[: int(count)], rest[int(count) :]
        return Start(words, folder, dict(pair.split("=", 1) for pair in pairs))

    @property
    def may_be_parent(self) -> bool:
        """Whether a scheduler may be started as its child."""
        return "run" in self.words and "--in-process" not in self.words

    def enter(self) -> None:
        """Make this process look like one that has just been started."""
        os.chdir(self.folder)
        os.environ.clear()
        os.environ.update(self.environment)
        if MARK in self.environment:
            _write_mark(self.environment[MARK].encode())
        for number, name in enumerate(("stdin", "stdout", "stderr")):
            _open_stream(number, name)
        module = self.words[0] == "-m"
        sys.path[0] = self.folder if module else os.path.dirname(self.words[0])
        sys.argv = self.words[1:] if module else self.words

    def run(self) -> None:
        """Run it to its end like an interpreter, without tearing down what is not used again."""
        try:
            if self.words[0] == "-m":
                runpy.run_module(self.words[1], run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(self.words[0], run_name="__main__")
        except SystemExit as end:
            if not isinstance(end.code, int | None):
                raise
            code = end.code or 0
        else:
            code = 0
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _open_stream(number: int, name: str) -> None:
    """Reopen a standard stream, because buffering differs between pipes, files and terminals."""
    old = getattr(sys, name)
    whole = old.write_through  # the setting of -u
    binary: Any = os.fdopen(number, "wb" if number else "rb", 0 if whole else -1, closefd=False)
    getattr(binary, "raw", binary).name = f"<{name}>"
    lines = name == "stderr" or binary.isatty()
    stream = io.TextIOWrapper(binary, old.encoding, old.errors, line_buffering=lines, write_through=whole)
    stream.mode = old.mode  # type: ignore[misc]
    setattr(sys, name, stream)
    setattr(sys, f"__{name}__", stream)


def _write_mark(mark: bytes) -> None:
    """Write the mark where /proc reads the environment: the one with which this process's ancestor was started."""
    name = f"{MARK}=".encode()
    _, found, rest = Path("/proc/self/environ").read_bytes().partition(name)
    room, *_ = rest.split(b"\0", 1)
    assert found, "there is no room for a mark"
    assert len(mark) == len(room), "there is other room for a mark"
    fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()  # from the third field on
    ctypes.memmove(
        int(fields[50 - 3]) + Path("/proc/self/environ").read_bytes().index(name) + len(name), mark, len(mark)
    )


class Twin:
    """A fork of a process at its very beginning, which waits to become its child."""

    def __init__(self) -> None:
        ours, its = socket.socketpair()
        self.pid = os.fork()
        self._socket, other = (ours, its) if self.pid else (its, ours)
        other.close()
        if self.pid:
            self._socket.recv(1)
            atexit.register(self._leave)
        else:
            os.setsid()
            self._socket.sendall(b".")  # from here on it has its own session

    def wait(self) -> Start | None:
        """In the twin: wait for the program to run; return None when the twin is not needed."""
        with self._socket:
            return Start.receive(self._socket)

    def become(self, start: Start) -> bool:
        """Let the twin run a program, if it is still alive."""
        try:
            with self._socket:
                self._socket.sendall(start.encode())
        except OSError:
            return False
        return True

    def _leave(self) -> None:
        """End a twin that was not needed."""
        if self._socket.fileno() >= 0:
            self._socket.close()
            os.waitpid(self.pid, 0)


def popen_with(twin: Twin) -> type[subprocess.Popen[Any]]:
    """Return a class of processes whose first process of our interpreter is the twin."""

    class Popen(subprocess.Popen[Any]):
        """Like the standard library's class."""

        def _execute_child(self, args: Any, *rest: Any) -> None:
            environment = rest[5]
            ours = isinstance(args, list) and args[0] == sys.executable and environment is not None
            ours = ours and (args[1] == "-m" or args[1].endswith(".py"))
            if ours and twin.become(Start(args[1:], os.getcwd(), environment)):
                self._close_pipe_fds(*rest[9:15])
                self.pid, self._child_created = twin.pid, True
            else:
                super()._execute_child(args, *rest)

    return Popen


class Server:
    """Takes requests, forks, and reports how forks end."""

    def __init__(self, path: str) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen(64)
        self._poll = select.poll()
        #: {descriptor: what to do when it can be read}
        self._actions: dict[int, Callable[[], Start | None]] = {}
        self._watch(self._listener.fileno(), self._fork)

    def serve(self) -> Start | None:
        """Serve while the process that started this one lives; in a fork, return the program to run."""
        parent = os.getppid()
        while os.getppid() == parent:
            for number, _ in self._poll.poll(1000):
                if number in self._actions and (start := self._actions[number]()) is not None:
                    return start
        return None

    def _watch(self, number: int, action: Callable[[], Start | None]) -> None:
        self._poll.register(number, select.POLLIN)
        self._actions[number] = action

    def _forget(self, number: int) -> None:
        if self._actions.pop(number, None) is not None:
            self._poll.unregister(number)

    def _fork(self) -> Start | None:
        connection, _ = self._listener.accept()
        head, streams, *_ = socket.recv_fds(connection, _HEAD, 3)
        if not head:  # a client that only tested whether the server is there
            connection.close()
            return None
        start = Start.receive(connection, head)
        asker = connection.detach()
        pid = os.fork()
        if pid == 0:
            os.setsid()
            os.write(asker, b"%d\n" % os.getpid())
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
            self._listener.detach()
            os.closerange(3, max(*streams, asker, *self._actions) + 1)
            return start
        for stream in streams:
            os.close(stream)
        pidfd = os.pidfd_open(pid)

        def ended() -> None:
            _, status = os.waitpid(pid, 0)
            with suppress(OSError):
                os.write(asker, b"%d\n" % os.waitstatus_to_exitcode(status))
            for number in (pidfd, asker):
                self._forget(number)
                os.close(number)

        def left() -> None:
            self._forget(asker)
            os.kill(pid, signal.SIGKILL)

        self._watch(pidfd, ended)
        self._watch(asker, left)
        return None


def forked() -> Start | None:
    """Import, serve, and return in a fork the program to run; None when there is nothing left to do."""
    import_numpy()
    for name in WARM:
        importlib.import_module(name)
    for layer in LAYERS:
        package = importlib.import_module(f"pipistrelle.{layer}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__") and not module.name.startswith(_LEFT_OUT):
                importlib.import_module(module.name)
    assert not COLD.intersection(sys.modules)
    gc.collect()
    gc.freeze()  # the garbage collector need not touch, and so copy, memory that all forks share
    start = Server(sys.argv[1]).serve()
    if start is None:
        return None
    if start.may_be_parent:
        twin = Twin()
        if twin.pid == 0:
            start = twin.wait()
        else:
            subprocess.Popen = popen_with(twin)  # type: ignore[misc]
    if start is not None:
        start.enter()
    return start


if __name__ == "__main__" and (program := forked()) is not None:
    program.run()
