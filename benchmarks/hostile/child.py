"""Run a command as a fork of this process, which has already imported what the command needs."""

import os
import select
import signal
from collections.abc import Callable
from pathlib import Path

#: no command takes longer, in seconds; the first study compiles the kernel
LIMIT_S = 400.0


def command(
    home: Path, words: list[str], before: Callable[[], None] = lambda: None, limit: float = LIMIT_S
) -> tuple[int | None, str]:
    """Run a command in a folder; return its exit code and output. The code is None if it was killed at the time limit.

    Args:
        before: called in the command's process before it begins.
        limit: time limit (s).
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

        before()
        main(words)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    finally:
        os._exit(code)
