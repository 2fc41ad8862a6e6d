"""A worker process: trials by lines on its standard input, answers on its standard output; it ends with its input."""

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
    """Answer line after line, until there are no more, even in the middle of a trial."""
    waiting: SimpleQueue[bytes] = SimpleQueue()

    def read() -> None:
        for line in lines:
            waiting.put(line)
        os._exit(0)  # whoever asked is gone: nobody would take the answer

    Thread(target=read, daemon=True).start()
    while True:
        answer = respond(waiting.get())
        answers.write(answer + b"\n")
        answers.flush()


def main() -> None:
    """Work for the process that has started this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is that process's
    prepare_log(_errors_only)
    logger()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a user's policy prints is no answer
    try:
        work(sys.stdin.buffer, answers)
    except BrokenPipeError:
        os._exit(0)


def _errors_only(log: "Logger") -> None:
    log.remove()  # what is to be said of a study's inputs is said once, before it
    log.add(sys.stderr, level="ERROR", diagnose=False)


if __name__ == "__main__":
    main()
