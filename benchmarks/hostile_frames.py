"""Fuzz the protocol: send hostile frames to server and schedulers.

Both dialects are tested. Hostile frames are malformed or unexpected. By default no socket is used: each frame is given
directly to the functions that handle frames from a socket. A frame must be accepted, or refused with
an error that names what is wrong. The run must then continue, or end with a documented exit code. A find is a frame
that causes a traceback, a hang, a broken invariant, a message with control characters, or excessive use of time or
memory. Each find is printed with the frame, and with the seed and run that reproduce it. The exit code is 1 if there
are finds.

    python benchmarks/hostile_frames.py [--frames 100000] [--seed 1] [--side server-native] [--side ...]

A side is the server or the scheduler, in one dialect. Sides whose names end with ``-socket`` test the real commands in
their own processes over sockets. They take about a hundred times as long.
"""

import argparse
import sys
from collections.abc import Callable
from functools import partial

from hostile import runs, scheduler_side, server_side
from hostile.sockets import over_sockets
from hostile.tally import Tally, carry_out
from loguru import logger

from pipistrelle.server.setup.setup import Setup

#: allowed growth of resident memory from the first quarter of the frames to the end (KiB)
GROWTH_KB = 24 * 1024


def main() -> int:
    """Fuzz each requested program, and return the exit code.

    The frames that a program handled badly are printed.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=100_000, help="frames per side")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--side", action="append", choices=[*SIDES, *SOCKETS], help="one of them; default: all without sockets"
    )
    options = parser.parse_args()
    logger.remove()
    found = 0
    for side in options.side or SIDES:
        tally = tried(side, options.frames, options.seed)
        print(*tally.lines(), sep="\n")
        for find in tally.finds:
            print(f"FIND {find}")
        found += len(tally.finds)
    return 1 if found else 0


def tried(side: str, frames: int, seed: int) -> Tally:
    """Send ``frames`` malformed or unexpected frames to one program.

    Return the counts, and the frames that it handled badly.
    """
    return carry_out(Tally(side, frames), (SIDES | SOCKETS)[side](seed))


def _setups() -> list[Setup]:
    """Return the runs in the native dialect; most runs with failures stop at 500 s."""
    some = [runs.native(rich=False), *[runs.native(rich=True, until=500.0)] * 8, runs.native(rich=False, until=40.0)]
    return [*some, runs.native(rich=True)]


SIDES: dict[str, Callable[[int], Callable[[Tally, int], None]]] = {
    "server-native": lambda seed: server_side.native_run(_setups(), seed),
    "server-batsim": lambda seed: server_side.batsim_run([runs.batsim(rich=False), runs.batsim(rich=True)], seed),
    "scheduler-native": lambda seed: scheduler_side.scheduler_run(seed, batsim=False),
    "scheduler-batsim": lambda seed: scheduler_side.scheduler_run(seed, batsim=True),
}
#: the same sides over sockets, in their own processes
SOCKETS = {f"{side}-socket": partial(over_sockets, side) for side in SIDES}

if __name__ == "__main__":
    sys.exit(main())
