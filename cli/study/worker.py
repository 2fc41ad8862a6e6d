"""Worker process of a study.

It reads simulations from its input, runs them, and writes their results, one per line.
"""

import os
import signal
import sys
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, BinaryIO

from pipistrelle.protocol.base.log import logger, prepare_log
from pipistrelle.studies.workers.crew import respond

if TYPE_CHECKING:
    from loguru import Logger


def work(lines: BinaryIO, answers: BinaryIO) -> None:
    """Run the simulation in each input line and write its result.

    Exit when the input ends, even during a simulation.
    """
    waiting: SimpleQueue[bytes] = SimpleQueue()

    def read() -> None:
        for line in lines:
            waiting.put(line)
        os._exit(0)  # the parent is gone

    Thread(target=read, daemon=True).start()
    while True:
        answer = respond(waiting.get())
        answers.write(answer + b"\n")
        answers.flush()


def main() -> None:
    """Run as a worker: read from standard input and write to standard output."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    prepare_log(_errors_only)
    logger()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of a user's policy is not an answer
    try:
        work(sys.stdin.buffer, answers)
    except BrokenPipeError:
        os._exit(0)


def _errors_only(log: "Logger") -> None:
    log.remove()  # the parent has logged the warnings about inputs
    log.add(sys.stderr, level="ERROR", diagnose=False)


if __name__ == "__main__":
    main()
