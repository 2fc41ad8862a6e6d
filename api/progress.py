"""Show progress bars in notebooks and on terminals."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from pipistrelle.protocol.base.lengths import length_text
from pipistrelle.protocol.fields import EndReason
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipistrelle.server.setup.setup import Setup
    from pipistrelle.studies.workers.campaign import Headway

#: instants between readings of the clock, which are slow
_INSTANTS: Final = 64
#: wall-clock seconds before a bar appears, and between its updates
_SOON_S: Final = 0.5
_REFRESH_S: Final = 0.1
_WIDTH: Final = 30
_FORMS: Final = {"d": "{:.1f} days", "h": "{:.1f} h", "min": "{:.0f} min", "s": "{:.0f} s"}
#: shows a line in place of the previous one; the empty text removes it
Show = Callable[[str], None]


def in_notebook() -> bool:
    """Return whether the code runs in a notebook, which can show HTML."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and getattr(shell, "kernel", None) is not None


def _show_in_notebook() -> Show:
    screen: Any = import_module("IPython.display")  # has no types
    handle: list[Any] = []

    def show(text: str) -> None:
        page = screen.HTML(f"<pre>{text}</pre>" if text else "")
        if handle:
            handle[0].update(page)
        elif text:
            handle.append(screen.display(page, display_id=True))

    return show


def _show_on_terminal() -> Show:
    last = [0]

    def show(text: str) -> None:
        sys.stderr.write(f"\r{text.ljust(last[0])}" + ("" if text else "\r"))  # the empty text clears the line
        sys.stderr.flush()
        last[0] = len(text)

    return show


def _shown(wanted: bool | None) -> Show | None:
    """Return a function that shows a line of progress, or None to show nothing.

    ``wanted`` is whether to show progress; None means only in notebooks and on terminals.
    """
    if wanted is False:
        return None
    if in_notebook():
        return _show_in_notebook()
    return _show_on_terminal() if wanted or sys.stderr.isatty() else None


class Bar:
    """A progress line, shown while jobs or trials are processed.

    It has a bar, the number of finished items, and the estimated time left. The line appears after half a second, so
    short runs show nothing.

    Args:
        show: shows a line in place of the previous one.
        what: what is counted, such as ``jobs``.
    """

    def __init__(self, show: Show, what: str) -> None:
        self._show = show
        self._what = what
        self._began = time.monotonic()
        self._due = self._began + _SOON_S
        self._seen = False

    def update(self, done: int, total: int) -> None:
        """Show that ``done`` of ``total`` items are finished.

        The line changes at most ten times per second.
        """
        now = time.monotonic()
        if now < self._due:
            return
        self._due, self._seen = now + _REFRESH_S, True
        full = round(_WIDTH * done / max(total, 1))
        left = (total - done) * (now - self._began) / done if done else 0.0
        rest = f", {length_text(left, _FORMS)} left" if done else ""
        self._show(f"[{'#' * full}{'.' * (_WIDTH - full)}] {done:,}/{total:,} {self._what}{rest}")

    def close(self) -> None:
        """Remove the bar."""
        if self._seen:
            self._seen = False
            self._show("")


class JobsDone(Observer):
    """An observer that shows how many jobs of a run have ended."""

    def __init__(self, bar: Bar, jobs: int) -> None:
        self._bar = bar
        self._jobs = jobs
        self._done = 0
        self._instants = 0

    def ended(self, now: float, job: Job) -> None:
        """Count a job that ended."""
        self._done += 1

    def settled(self, now: float, idle: int, down: int) -> None:
        """Update the bar, at most every 64 instants."""
        self._instants += 1
        if self._instants % _INSTANTS == 0:
            self._bar.update(min(self._done, self._jobs), self._jobs)

    def ends(self, now: float, reason: EndReason, message: str) -> None:
        """Remove the bar."""
        self._bar.close()


@contextmanager
def run_progress(setup: "Setup", wanted: bool | None) -> "Iterator[Sequence[Observer]]":
    """Yield the observers that show a run's progress.

    Args:
        wanted: whether to show progress; None: only in notebooks and on terminals.
    """
    show = _shown(wanted)
    if show is None:
        yield ()
        return
    bar = Bar(show, "jobs")
    try:
        yield (JobsDone(bar, setup.jobs),)
    finally:
        bar.close()


@contextmanager
def study_progress(wanted: bool | None) -> "Iterator[Callable[[Headway], None]]":
    """Yield a function that shows a study's progress.

    ``wanted`` is as for `run_progress`.
    """
    show = _shown(wanted)
    if show is None:
        yield lambda progress: None
        return
    bar = Bar(show, "trials")
    try:
        yield lambda progress: bar.update(progress.done, progress.known)
    finally:
        bar.close()
