"""Stops replying WHEN (before-hello, after-welcome, mid-run); late: replies when the server has given up."""

import sys
import time

from talk import Message, Server, say, serve

WHEN = sys.argv[2]


def decide(notice: Message, events: list[Message]) -> None:
    """Stop replying once two jobs have ended."""
    if notice["now"] >= 100:
        say("hangs")
        time.sleep(1.5 if WHEN == "late" else 3600)


if WHEN == "before-hello":
    time.sleep(3600)
if WHEN == "after-welcome":
    server = Server()
    server.hello()
    time.sleep(3600)
serve(decide)
