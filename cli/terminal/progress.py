"""The progress bar of a run on a terminal."""

import time
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column

from pipistrelle.cli.terminal.dates import clock_text
from pipistrelle.protocol.fields import EndReason
from pipistrelle.server.engine.jobs import NEVER_RAN, Job
from pipistrelle.server.engine.observers import Observer

#: instants between readings of the clock, which are slow
_INSTANTS: Final = 64
_REFRESH_S: Final = 0.1


class ProgressBar(Observer):
    """The progress bar of a run.

    It shows the simulated date, the number of ended jobs, the queue length and the events per second.

    Args:
        jobs: number of jobs of the workload.
        epoch: Unix time (s) of time 0; None shows days instead of dates.
    """

    def __init__(self, jobs: int, epoch: float | None, console: Console) -> None:
        self._epoch = epoch
        self._progress = Progress(
            TextColumn("{task.fields[date]}"),
            BarColumn(bar_width=None),
            TextColumn("{task.completed:,.0f}/{task.total:,.0f} jobs"),
            TextColumn("queue {task.fields[queue]:,}"),
            # The bar shrinks on a narrow terminal.
            TextColumn("{task.fields[rate]:,.0f} events/s", table_column=Column(no_wrap=True)),
            TimeElapsedColumn(Column(no_wrap=True)),
            console=console,
            auto_refresh=False,
            transient=True,
        )
        self._task = self._progress.add_task("", total=jobs, date="", queue=0, rate=0.0)
        self._queue = 0
        self._done = 0
        self._events = 0
        self._instants = 0
        self._due = 0.0

    def begins(self, now: float, units: int) -> None:
        """Show the progress bar when the run begins."""
        self._progress.start()

    def submitted(self, now: float, job: Job) -> None:
        """Count a queued job."""
        self._queue += 1
        self._events += 1

    def started(self, now: float, job: Job) -> None:
        """Count a job that left the queue because it started."""
        self._queue -= 1

    def ended(self, now: float, job: Job) -> None:
        """Count a job that is done."""
        if job.state in NEVER_RAN:
            self._queue -= 1
        self._done += 1
        self._events += 1

    def settled(self, now: float, idle: int, down: int) -> None:
        """Redraw the bar, a few times per second at most."""
        self._instants += 1
        if self._instants % _INSTANTS == 0 and time.monotonic() >= self._due:
            self._due = time.monotonic() + _REFRESH_S
            self._draw(now)

    def ends(self, now: float, reason: EndReason, message: str) -> None:
        """Remove the bar, because the summary follows."""
        self._draw(now)
        self._progress.stop()

    def _draw(self, now: float) -> None:
        elapsed = self._progress.tasks[0].elapsed
        rate = self._events / elapsed if elapsed else 0.0
        date = clock_text(now, self._epoch)
        self._progress.update(self._task, completed=self._done, date=date, queue=self._queue, rate=rate)
        self._progress.refresh()
