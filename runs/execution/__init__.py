"""One run from one description of it: `pipistrelle.runs.description.spec.RunSpec` and what carries it out."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

#: how long a server waits for its scheduler, and for each of its replies, in seconds of the wall clock
HELLO_TIMEOUT: Final = 60.0
DECISION_TIMEOUT: Final = 300.0


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Let the collector of cyclic garbage look less often: a run's loop makes none, and looking costs some percent."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
