"""Compile the C programs of virtual time at first use, into the user's cache."""

import os
import shlex
import shutil
import subprocess
import tempfile
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Final, NamedTuple

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.protocol.base.whole import read_whole

_PRELOAD: Final = ("threads.c", "processes.c", "files.c", "time.c", "users.c")
_SOURCES: Final = ("clock.h", "preload.h", "conductor.c", *_PRELOAD)
_FLAGS: Final = ("-O2", "-w")
_LONGEST_S: Final = 120.0


class BuildError(PipistrelleError):
    """The C programs cannot be compiled."""


class Tools(NamedTuple):
    """The paths of the compiled C programs of virtual time.

    Attributes:
        preload: library for ``LD_PRELOAD`` that puts a program into virtual time.
        conductor: program that moves the clock.
    """

    preload: Path
    conductor: Path


def build_tools() -> Tools:
    """Return the compiled tools; compile them unless the cache has them.

    The environment variable ``CC`` names the compiler (default: cc), and ``XDG_CACHE_HOME`` the folder of caches.

    Raises:
        BuildError: there is no C compiler, or it fails.
    """
    native = Path(str(files(__package__))) / "native"
    compiler = shlex.split(os.environ.get("CC") or "cc")
    key = sha256(
        b"\0".join([*(read_whole(native / name) for name in _SOURCES), *map(str.encode, compiler)])
    ).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "pipistrelle"
    folder = cache / f"virtual-time-{key}"
    tools = Tools(folder / "preload.so", folder / "conductor")
    if all(map(Path.is_file, tools)):
        return tools
    if shutil.which(compiler[0]) is None:
        raise BuildError(
            "virtual time needs a C compiler, and there is none",
            expected=f"the command '{compiler[0]}'",
            hint="Install one (Debian: apt install gcc libc6-dev), or name it with CC=COMMAND.",
        )
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as made:
            sources = [str(native / name) for name in _PRELOAD]
            for tool, words in (
                (tools.preload, ["-shared", "-fPIC", *sources, "-ldl", "-lpthread"]),
                (tools.conductor, [str(native / "conductor.c")]),
            ):
                _compile([*compiler, *_FLAGS, "-o", tool.name, *words], made)
            folder.mkdir(exist_ok=True)
            for tool in tools:  # whole files only: another process may compile at the same time
                os.replace(Path(made) / tool.name, tool)
    except OSError as error:
        raise BuildError(
            f"the compiled programs of virtual time cannot be written ({error.strerror or error})",
            where=str(cache),
            hint="Set XDG_CACHE_HOME to a folder that you may write to.",
        ) from None
    return tools


def _compile(words: list[str], folder: str) -> None:
    try:
        done = subprocess.run(words, cwd=folder, capture_output=True, timeout=_LONGEST_S, check=False)  # noqa: S603
    except subprocess.TimeoutExpired:
        raise BuildError("the C compiler did not end in time", where=shlex.join(words)) from None
    if done.returncode:
        text = done.stderr.decode("utf-8", "replace").strip()
        raise BuildError("the C compiler failed", where=shlex.join(words), found=text[-400:])
