"""Progress of a study: a bar on a terminal, lines elsewhere."""

import sys
import time
from typing import TYPE_CHECKING, Final, Self

import click

from pipistrelle.protocol.base.lengths import length_text

if TYPE_CHECKING:
    from pipistrelle.studies.workers.campaign import Headway

_HOUR: Final = 3600
_FORMS: Final = {"d": "{:.1f} days", "h": "{:.1f} h", "min": "{:.0f} min", "s": "{:.0f} s"}
#: wall-clock seconds between lines: with --progress, and by default
_SHORT_S: Final = 10.0
_LONG_S: Final = 60.0


class StudyProgress:
    """A display of the number of finished simulations, their rate and the time left.

    Use it as a context manager, and call it with each update.

    Args:
        wanted: whether the user asked for progress; None: a bar on a terminal, lines elsewhere.
    """

    def __init__(self, wanted: bool | None) -> None:
        self._silent = wanted is False
        self._every = _SHORT_S if wanted else _LONG_S
        self._began = time.monotonic()
        self._due = self._began + self._every
        self._bar = None
        if not self._silent and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
            from rich.progress import Progress as Bar

            self._bar = Bar(
                BarColumn(bar_width=None),
                MofNCompleteColumn(),
                TextColumn("trials{task.description}"),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._bar.add_task("", total=None)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, progress: "Headway") -> None:
        """Show progress, unless the last display is too recent."""
        now = time.monotonic()
        if self._bar is not None:
            said = self._said(progress, now)
            self._bar.update(self._task, completed=progress.done, total=progress.known, description=said)
        elif not self._silent and now >= self._due:
            self._due = now + self._every
            click.echo(f"{progress.done:,}/{progress.known:,} trials{self._said(progress, now)}", err=True)

    def _said(self, progress: "Headway", now: float) -> str:
        new, took = progress.done - progress.before, now - self._began
        if not new or took <= 0:
            return ""
        left = (progress.known - progress.done) * took / new
        return f", {_HOUR * new / took:,.0f} an hour, {time_text(left)} left"


def time_text(seconds: float) -> str:
    """Return a duration (s) as short text, rounded."""
    return f"{seconds:.2g} s" if seconds < 10 else length_text(seconds, _FORMS)
