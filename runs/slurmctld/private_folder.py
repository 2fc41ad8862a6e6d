"""Make the private folder of a run in virtual time, and remove those that killed runs have left."""

import fcntl
import os
import shutil
import signal
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from pipistrelle.protocol.base.errors import printable
from pipistrelle.protocol.base.log import logger
from pipistrelle.protocol.base.whole import is_still, read_whole

#: file system in memory, for the clock
_MEMORY: Final = "/dev/shm"  # noqa: S108 - the folders made in it are private
_PREFIX: Final = "pipistrelle-time-"
_CLOCK: Final = "clock"
#: most rounds through all processes: some are forked, and some take time to end
_ROUNDS: Final = 50


class PrivateFolder:
    """A folder that only this run uses, in memory where possible; it is locked as long as this process lives.

    If an earlier run was killed together with its conductor (the process that moves the clock), its folder is left
    over. Making a new folder removes such folders of this user, and ends the processes that still use them.

    Attributes:
        path: the folder.
        clock: the file that holds the clock.
    """

    def __init__(self) -> None:
        base = _MEMORY if os.path.isdir(_MEMORY) and os.access(_MEMORY, os.W_OK) else tempfile.gettempdir()
        _remove_left(base)
        self.path, self._lock = _locked_folder(base)
        self.clock = self.path / _CLOCK

    def remove(self) -> None:
        """End all processes that use the virtual clock, and remove the folder if the conductor has not."""
        _end_processes(self.clock)
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _locked_folder(base: str) -> tuple[Path, int | None]:
    """Return a new folder and the descriptor of its lock; None if the file system has no locks."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
        number = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # another run has just taken it for one that was left, and removes it
            os.close(number)
            continue
        except OSError:
            os.close(number)
            return path, None
        if is_still(path, number):
            return path, number
        os.close(number)


def _remove_left(base: str) -> None:
    for path in sorted(Path(base).glob(f"{_PREFIX}*")):
        with suppress(OSError):  # of another user, gone meanwhile, in use, or on a file system without locks
            number = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if os.fstat(number).st_uid != os.geteuid():
                    continue
                fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _end_processes(path / _CLOCK)
                shutil.rmtree(path)
                logger().warning("removed {}, which a killed run had left", printable(str(path)))
            finally:
                os.close(number)


def _end_processes(clock: Path) -> None:
    """Kill all processes that use a virtual clock, and wait until they are gone."""
    mark = f"PIPISTRELLE_CLOCK={clock}\0".encode()
    for _ in range(_ROUNDS):
        found = False
        for entry in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):
                if mark in read_whole(entry):  # an ended process has no environment
                    found = True
                    os.kill(int(entry.parent.name), signal.SIGKILL)
        if not found:
            return
