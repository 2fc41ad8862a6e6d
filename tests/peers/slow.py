"""A scheduler without a fault that takes its time for each notice."""

import time

from talk import Message, serve


def decide(notice: Message, events: list[Message]) -> None:
    """Think."""
    time.sleep(0.02)


serve(decide)
