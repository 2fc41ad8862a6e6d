"""Run a ``pipistrelle`` command in a fork of this process, with a time limit.

A fork starts faster than a new interpreter, because the modules are already imported.
"""

import os
import select
import signal
from collections.abc import Callable
from pathlib import Path

#: default time limit of a command (s); long enough for the first study, which compiles the kernel
LIMIT_S = 400.0


def command(
    home: Path, words: list[str], before: Callable[[], None] = lambda: None, limit: float = LIMIT_S
) -> tuple[int | None, str]:
    """Run a command in a folder and return its exit code and its output.

    Args:
        home: the working directory of the command.
        words: the command-line arguments of ``pipistrelle``; or ``pipistrelle-batsim`` and its arguments.
        before: called in the child process before the command begins.
        limit: longest duration (s); the command is then killed.

    Returns:
        The exit code, or None if the command was killed at the limit; and stdout and stderr together.
    """
    said = home / "said"
    pid = os.fork()
    if pid == 0:
        _be(home, said, words, before)
    pidfd = os.pidfd_open(pid)
    over = bool(select.select([pidfd], [], [], limit)[0])
    if not over:
        os.kill(pid, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(pidfd)
    return code if over else None, said.read_text(errors="replace")


def _be(home: Path, said: Path, words: list[str], before: Callable[[], None]) -> None:
    os.setsid()
    os.chdir(home)
    output = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    code = 99
    try:
        from pipistrelle.cli.main import main
        from pipistrelle.cli.run.batsim import command as batsim

        before()
        if words[0] == batsim.name:
            main(words[1:], batsim)
        main(words)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    finally:
        os._exit(code)
