"""A correct scheduler that takes some time for each notice."""

import time

from talk import Message, serve


def decide(notice: Message, events: list[Message]) -> None:
    """Sleep."""
    time.sleep(0.02)


serve(decide)
