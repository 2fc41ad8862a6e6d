"""The execution of a run that a `RunSpec` describes."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

#: how long a server waits for its scheduler, and for each reply (wall-clock seconds)
HELLO_TIMEOUT: Final = 60.0
DECISION_TIMEOUT: Final = 300.0


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Collect cyclic garbage rarely: a run's loop makes none, so searches only cost time."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
