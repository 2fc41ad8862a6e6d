"""A scheduler without a fault; with a TIME it waits from then on until there is a file `go` in the folder."""

import sys

from talk import Message, say, serve, wait_for_go


def decide(notice: Message, events: list[Message]) -> None:
    """Do nothing but say where we are."""
    say("at", notice["now"])
    if len(sys.argv) > 2:
        wait_for_go(notice["now"], sys.argv[2])


serve(decide)
