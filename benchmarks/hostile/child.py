"""Run a ``pipistrelle`` command in a fork of this process, with a time limit.

A fork starts faster than a new interpreter, because the modules are already imported.
"""

import os
import pkgutil
import select
import signal
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path

#: default time limit of a command (s); long enough for the first study, which compiles the kernel
LIMIT_S = 400.0
#: first word of a command that is a Python script, given as the second word
PYTHON = "python"
_LAYERS = ("protocol", "platforms", "traces", "server", "schedulers", "models", "runs", "reports", "studies", "cli")
_COLD = (".compiled", ".__main__")


def command(
    home: Path, words: list[str], before: Callable[[], None] = lambda: None, limit: float = LIMIT_S
) -> tuple[int | None, str]:
    """Run a command in a folder and return its exit code and its output.

    Args:
        home: the working directory of the command.
        words: the command-line arguments of ``pipistrelle``; or ``pipistrelle-batsim`` and its arguments; or `PYTHON`
            and a script that uses the Python API.
        before: called in the child process before the command begins.
        limit: longest duration (s); the command is then killed.

    Returns:
        The exit code, or None if the command was killed at the limit; and stdout and stderr together.
    """
    said = os.memfd_create("said")  # no file in the folder, whose disk may be full
    pid = os.fork()
    if pid == 0:
        _be(home, said, words, before)
    pidfd = os.pidfd_open(pid)
    over = bool(select.select([pidfd], [], [], limit)[0])
    if not over:
        os.kill(pid, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(pidfd)
    with open(said, "rb") as file:
        file.seek(0)
        return code if over else None, file.read().decode(errors="replace")


@cache
def import_all() -> None:
    """Import the modules of all commands, except those that import numba and scipy.

    Commands that are forked afterwards start faster.
    """
    from pipistrelle.cli.terminal.console import import_numpy

    import_numpy()
    for layer in _LAYERS:
        package = import_module(f"pipistrelle.{layer}")
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith(_COLD):
                import_module(found.name)


def _be(home: Path, said: int, words: list[str], before: Callable[[], None]) -> None:
    os.setsid()
    os.chdir(home)
    os.dup2(said, 1)
    os.dup2(said, 2)
    os.close(said)
    code = 99
    try:
        from pipistrelle.cli.main import main
        from pipistrelle.cli.run.batsim import command as batsim

        before()
        if words[0] == PYTHON:
            code = _script(words[1])
        elif words[0] == batsim.name:
            main(words[1:], batsim)
        else:
            main(words)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    finally:
        os._exit(code)


def _script(text: str) -> int:
    """Execute a script and return its exit code.

    After an error, this is the exit code that the command line has for this error.
    """
    from pipistrelle.cli.terminal.exits import NO_MEMORY, exhausted
    from pipistrelle.protocol.base.errors import PipistrelleError

    try:
        exec(text, {"__name__": "__main__"})  # noqa: S102 - a script of ours
    except Exception as error:
        lack = exhausted(error)
        os.write(2, f"pipistrelle: {lack or error}\n".encode())
        if lack is not None:
            return NO_MEMORY
        return error.exit_code if isinstance(error, PipistrelleError) else 99
    return 0
