"""Run server and scheduler on one core.

They take turns, and waking a process on the same core is faster.
"""

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

#: prefix of the addresses that say which cores are taken; the leading zero byte makes no file
_ADDRESS: Final = "\0pipistrelle core "


@contextmanager
def one_core() -> Iterator[int | None]:
    """Run this thread on one core within the ``with`` block.

    Processes that it starts there also run on this core.

    Yields:
        The number of the core; None if the thread was not restricted. It is not restricted if the operating system
        cannot do so, if this process may use only one core, or if other runs have taken all cores in this way.
    """
    allowed: Callable[[int], set[int]] | None = getattr(os, "sched_getaffinity", None)
    cores = set() if allowed is None else allowed(0)
    taken = _free_core(cores) if len(cores) > 1 else None
    if taken is None:
        yield None
        return
    core, claim = taken
    restrict: Any = os.sched_setaffinity
    with claim:  # another run may take the core when this one closes the socket, or ends
        try:
            restrict(0, {core})
        except OSError:
            yield None
            return
        try:
            yield core
        finally:
            restrict(0, cores)


def _free_core(cores: set[int]) -> tuple[int, socket.socket] | None:
    """Return a core that no other run has, and the socket that claims it.

    Return None if there is none.
    """
    for core in sorted(cores):
        try:
            claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        except OSError:  # no file descriptor is left; the run itself reports it
            return None
        try:
            claim.bind(f"{_ADDRESS}{core}")
        except OSError:
            claim.close()
        else:
            return core, claim
    return None
