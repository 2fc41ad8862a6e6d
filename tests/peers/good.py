"""A scheduler without a fault; with `slow` it takes its time over each decision."""

import sys
import time

from talk import Message, say, serve


def decide(notice: Message, events: list[Message]) -> None:
    """Do nothing but say where we are."""
    say("at", notice["now"])
    if "slow" in sys.argv:
        time.sleep(0.3)


serve(decide)
