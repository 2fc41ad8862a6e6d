"""Interrupts that are deferred until a message or a simulation step is complete."""

import signal
import threading
from types import FrameType
from typing import Self


class Interrupts:
    """A context that defers the first Ctrl-C or termination request.

    A signal is deferred while `held` is true. It then only sets `struck`, which the program checks. A second signal, or
    one that arrives while signals are not held, raises KeyboardInterrupt at once. Signals that have no Python handler
    keep their effect. Outside the main thread nothing changes, because Python accepts no handlers there.
    """

    def __init__(self) -> None:
        self.held = True
        self.struck = False
        self._before: dict[int, object] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                handler = signal.getsignal(number)
                if callable(handler):
                    self._before[number] = handler
                    signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.struck or not self.held:
            raise KeyboardInterrupt
        self.struck = True

    def let_strike(self) -> None:
        """Stop deferring interrupts; raise KeyboardInterrupt if one was deferred."""
        self.held = False
        if self.struck:
            raise KeyboardInterrupt
