"""Write progress lines if standard error is not a terminal."""

import sys
import time
from typing import TYPE_CHECKING, Final

import click

from pipistrelle.cli.terminal.dates import clock_text

if TYPE_CHECKING:
    from pipistrelle.server.setup.setup import Setup
    from pipistrelle.server.simulation.simulate import Simulation

#: wall-clock seconds between lines: with --progress, and by default
_SHORT_S: Final = 10.0
_LONG_S: Final = 60.0


class Heartbeat:
    """A writer of a run's progress lines to standard error, about one per minute.

    Args:
        asked: whether the user asked for progress; then there are more lines, and one at the end.
    """

    def __init__(self, setup: "Setup", *, asked: bool) -> None:
        self._setup = setup
        self._asked = asked
        self._every = _SHORT_S if asked else _LONG_S
        self._began = time.monotonic()
        self._due = self._began + self._every
        self._simulation: Simulation | None = None

    def __call__(self, simulation: "Simulation") -> None:
        """Write a progress line, unless the last one is too recent."""
        self._simulation = simulation
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + self._every
            self._say()

    def ends(self) -> None:
        """Write the last line, if the user asked for progress."""
        if self._asked:
            self._say()

    def _say(self) -> None:
        if self._simulation is None:
            return
        engine = self._simulation.engine
        waiting, running = len(engine.cluster.waiting), len(engine.cluster.running)
        done = self._simulation.metrics.submitted_jobs - waiting - running
        click.echo(
            f"{clock_text(engine.now, self._setup.epoch)}: {done:,}/{self._setup.jobs:,} jobs, {running:,} running, "
            f"queue {waiting:,}, {time.monotonic() - self._began:,.0f} s so far",
            err=True,
        )


def heartbeat_of(setup: "Setup", wanted: bool | None) -> Heartbeat | None:
    """Return an object that writes progress lines.

    Return None on a terminal, or if progress is not wanted.
    """
    return None if wanted is False or sys.stderr.isatty() else Heartbeat(setup, asked=wanted is True)
