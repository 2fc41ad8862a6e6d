"""Show a run on the whole terminal, and restore the terminal's content at the end."""

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from types import FrameType
from typing import IO, TYPE_CHECKING, Final, TextIO

from rich.console import Console, Group
from rich.live import Live

from pipistrelle.cli.live.drawing import Abilities, Drawing
from pipistrelle.reports.live.state import LiveState
from pipistrelle.server.setup.setup import Setup

if TYPE_CHECKING:
    from rich.text import Text

_EVERY_S: Final = 0.25
_USUAL: Final = os.terminal_size((80, 24))
#: terminals without cursor control
_DUMB: Final = ("", "dumb", "unknown")


def can_draw() -> bool:
    """Return whether a view can be drawn on standard error."""
    return sys.stderr.isatty() and os.environ.get("TERM", "") not in _DUMB


class TerminalView:
    """A view of a run on the alternate screen of a terminal."""

    every: Final = _EVERY_S

    def __init__(self, setup: Setup, terminal: TextIO) -> None:
        self._terminal = terminal
        # NO_COLOR, COLORTERM and TERM determine the colours, not the stream.
        self._console = Console(file=terminal, force_terminal=True, highlight=False, emoji=False, markup=False)
        self._drawing = Drawing(setup, _abilities(self._console))
        self._live: Live | None = None
        self._state: LiveState | None = None

    def show(self, state: LiveState) -> None:
        """Draw a state; do nothing if the terminal no longer exists."""
        self._state = state
        with self._gone_if_broken():
            if self._live is None:
                self._live = Live(
                    console=self._console,
                    screen=True,
                    auto_refresh=False,
                    redirect_stdout=False,
                    redirect_stderr=False,
                    vertical_overflow="crop",
                )
                self._console.size = self._size()
                self._live.start()
            self._draw(self._live, state)

    def over(self, state: LiveState) -> None:
        """Draw the last state, and restore what the terminal showed before."""
        if self._live is not None:
            self.show(state)
        self.close()

    def close(self) -> None:
        """Restore what the terminal showed before, if something was drawn."""
        live, self._live = self._live, None
        if live is not None:
            with self._gone_if_broken():
                live.stop()

    @contextmanager
    def stopped_on_request(self) -> Iterator[None]:
        """Leave the alternate screen while the process is stopped with Ctrl-Z."""

        def stop(number: int, frame: FrameType | None) -> None:
            shown = self._live is not None
            self.close()
            signal.signal(signal.SIGTSTP, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTSTP)
            # The process continues here.
            signal.signal(signal.SIGTSTP, stop)
            if shown and self._state is not None:
                self.show(self._state)

        if signal.getsignal(signal.SIGTSTP) is not signal.SIG_DFL:
            yield
            return
        signal.signal(signal.SIGTSTP, stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGTSTP, signal.SIG_DFL)

    def _draw(self, live: Live, state: LiveState) -> None:
        size = self._size()
        if (size.columns, size.lines) != tuple(self._console.size):
            self._console.size = size
        lines: list[Text] = self._drawing.lines(state, size.columns, size.lines)
        live.update(Group(*lines), refresh=True)

    def _size(self) -> os.terminal_size:
        """Return the size of the terminal.

        If it is unknown, the variables COLUMNS and LINES give the size.
        """
        with suppress(OSError, ValueError):
            found = os.get_terminal_size(self._terminal.fileno())
            if found.columns > 0 and found.lines > 0:
                return found
        return shutil.get_terminal_size(_USUAL)

    @contextmanager
    def _gone_if_broken(self) -> Iterator[None]:
        """Stop drawing, without an error, if writing to the terminal fails."""
        try:
            yield
        except (OSError, ValueError):
            self.show = _nowhere  # type: ignore[method-assign]
            self._live = None


def _nowhere(state: LiveState) -> None:
    """Do nothing with a state; used if there is no view."""


def _abilities(console: Console) -> Abilities:
    """Return which characters and colours a terminal can show."""
    if not console.encoding.lower().startswith("utf"):
        return "ascii"
    return "letters" if console.no_color or console.color_system is None else "colours"


@contextmanager
def held_streams(*numbers: int) -> Iterator[TextIO]:
    """Keep output off the terminal while a view is shown, and write it at the end.

    Output of this process and its children to the given file descriptors goes to a temporary file, because it would
    damage the view. Descriptors that are not terminals stay as they are.

    Args:
        numbers: the file descriptors, such as 1 and 2.

    Yields:
        The original standard error, on which the view is drawn.
    """
    with ExitStack() as stack:
        terminal = os.fdopen(os.dup(2), "w", encoding=sys.stderr.encoding, errors="replace", buffering=1 << 16)
        stack.callback(_close, terminal)
        for number in numbers:
            if os.isatty(number):
                with suppress(OSError):  # no temporary file: output appears in the view
                    file = stack.enter_context(tempfile.TemporaryFile())
                    stack.callback(_let_out, file, number, os.dup(number))
                    _flush()
                    os.dup2(file.fileno(), number)
        stack.callback(_flush)
        yield terminal


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()


def _close(terminal: TextIO) -> None:
    with suppress(OSError, ValueError):  # the terminal may be gone
        terminal.close()


def _let_out(file: IO[bytes], number: int, before: int) -> None:
    """Restore a file descriptor, then write held-back output to it.

    ``number`` is the descriptor, ``before`` its copy, and ``file`` has the output.
    """
    os.dup2(before, number)
    os.close(before)
    with suppress(OSError), open(number, "wb", closefd=False) as stream:
        file.seek(0)
        shutil.copyfileobj(file, stream)
