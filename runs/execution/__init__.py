"""Carry out a run that a `RunSpec` describes."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

#: how long a server waits for its scheduler to connect, and for each reply (wall-clock seconds)
HELLO_TIMEOUT: Final = 60.0
DECISION_TIMEOUT: Final = 300.0


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Run Python's cyclic garbage collector rarely within the ``with`` block.

    A run creates no reference cycles, and other work of a command creates few.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
