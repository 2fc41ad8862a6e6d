"""Observers that ``--live`` and ``--page`` add to a run."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple

import click

from pipistrelle.cli.terminal.console import progress_observers
from pipistrelle.cli.terminal.heartbeat import Heartbeat, heartbeat_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipistrelle.cli.terminal.summary import Form
    from pipistrelle.reports.live.watch import LiveView
    from pipistrelle.server.engine.observers import Observer
    from pipistrelle.server.setup.setup import Setup
    from pipistrelle.server.simulation.simulate import Simulation


class Shown(NamedTuple):
    """The views of a run.

    They are progress observers, a writer of progress lines, and a function that updates views. The writer and the
    function are None if they are not needed.
    """

    observers: "Sequence[Observer]"
    beat: Heartbeat | None
    look: "Callable[[Simulation], float] | None"


@contextmanager
def shown(
    setup: "Setup", *, progress: bool | None, live: bool, page: int | None, form: "Form", launches: bool
) -> Iterator[Shown]:
    """Open the views of a run, yield them while the run is simulated, and close them.

    Args:
        progress: whether to show progress; None: a bar on a terminal, elsewhere a line about once a minute.
        live: whether to draw on the terminal; without a terminal, progress lines are written instead.
        page: port of the browser view; None: no view.
        form: how the results are printed: as a table, as JSON, or not at all ("quiet").
        launches: whether the run starts a scheduler process, which inherits the standard streams.

    Raises:
        PageError: if the port is not available.
    """
    wanted = False if form == "quiet" and progress is None else progress
    views: list[LiveView] = []
    with ExitStack() as stack:
        if page is not None:
            from pipistrelle.reports.live.page_view import PageView  # most runs have no page

            view = stack.enter_context(PageView(setup, page))
            views.append(view)
            if form != "quiet":
                click.echo(f"the run is shown at {view.address}", err=form == "json")
        if live:
            from pipistrelle.cli.live.screen import TerminalView, can_draw, held_streams

            if can_draw():
                wanted = False
                terminal = stack.enter_context(held_streams(*((1, 2) if launches else (2,))))
                on_terminal = TerminalView(setup, terminal)
                stack.callback(on_terminal.close)
                stack.enter_context(on_terminal.stopped_on_request())
                views.append(on_terminal)
            else:
                wanted = True
                click.echo("--live: standard error is not a terminal; showing progress lines instead", err=True)
        beat = Heartbeat(setup, asked=True) if live and wanted else heartbeat_of(setup, wanted)
        observers = [] if live else progress_observers(setup, wanted)
        if not views:
            yield Shown(observers, beat, None)
            return
        from pipistrelle.reports.live.watch import LiveWatch

        watch = LiveWatch(setup, views)
        yield Shown([*observers, watch], beat, watch)
