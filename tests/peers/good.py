"""A correct scheduler; with a TIME it waits from then on until a file `go` exists in the folder."""

import sys

from talk import Message, say, serve, wait_for_go


def decide(notice: Message, events: list[Message]) -> None:
    """Only print the current time."""
    say("at", notice["now"])
    if len(sys.argv) > 2:
        wait_for_go(notice["now"], sys.argv[2])


serve(decide)
