"""Dies WHEN (before-hello, after-welcome, mid-run) and HOW (exit-0, exit-7, SIGKILL, SIGTERM, raises)."""

import os
import signal
import sys

from talk import Message, Server, serve

WHEN, HOW = sys.argv[2:4]


def die() -> None:
    """Exit without a message."""
    if HOW == "raises":
        sys.excepthook = lambda *_: None  # without its traceback
        raise ZeroDivisionError("of the peer's own")
    if HOW.startswith("SIG"):
        os.kill(os.getpid(), signal.Signals[HOW])
    os._exit(int(HOW.removeprefix("exit-")))


def decide(notice: Message, events: list[Message]) -> None:
    """Die once two jobs have ended."""
    if notice["now"] >= 100:
        die()


if WHEN == "before-hello":
    die()
if WHEN == "after-welcome":
    Server().hello()
    die()
serve(decide)
