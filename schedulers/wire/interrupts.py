"""Interrupts that strike where nothing is cut in two: neither a message nor a step of a run."""

import signal
import threading
from types import FrameType
from typing import Self


class Interrupts:
    """Keeps the first Ctrl-C, or request to terminate, from striking while it is `held`.

    Then it is only noted as `struck`, for who holds it to look at; a second one raises KeyboardInterrupt at once, and
    so does the first while it is not held. Signals that are ignored or end the process stay as they are, and so does
    everything outside the main thread, where Python takes no handlers.
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
            signal.signal(number, handler)  # type: ignore[arg-type]  # it was one

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.struck or not self.held:
            raise KeyboardInterrupt
        self.struck = True

    def let_strike(self) -> None:
        """Hold it no longer; raise KeyboardInterrupt if it has been struck."""
        self.held = False
        if self.struck:
            raise KeyboardInterrupt
