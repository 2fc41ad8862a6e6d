"""Options that several commands share."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from pipistrelle.cli.options.fields import PositiveNumber, added, options_of, together
from pipistrelle.cli.options.names import completed
from pipistrelle.cli.options.sections import OUTPUTS, SCHEDULER, in_section
from pipistrelle.cli.terminal.guard import FILE, FOLDER
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution import DECISION_TIMEOUT, HELLO_TIMEOUT

if TYPE_CHECKING:
    from pipistrelle.runs.execution.connection import Connection

_C = TypeVar("_C", bound=Callable[..., Any])


def timeout_option(what: str, whom: str) -> Callable[[_C], _C]:
    """Return the option ``--hello-timeout`` or ``--decision-timeout``.

    The first is for connecting, the second for replies. ``what`` is "hello" or "decision"; ``whom`` completes the help
    "Seconds to wait for ...".
    """
    return click.option(
        f"--{what}-timeout",
        type=PositiveNumber(),
        default=HELLO_TIMEOUT if what == "hello" else DECISION_TIMEOUT,
        metavar="SECONDS",
        help=f"Seconds to wait for {whom}.",
    )


_DIALECT: Final = {
    "dialect": "Protocol of the scheduler: Pipistrelle's own, or that of Batsim 3 and 4 (the scheduler then listens)."
}
dialect_option: Final = added(options_of(RunSpec, _DIALECT))


progress_option: Final = click.option(
    "--progress/--no-progress",
    default=None,
    show_default="a bar on a terminal, otherwise a line per minute",
    help="Show progress on standard error.",
)
#: how results and progress are shown
form_options: Final = together(
    click.option("--timings", type=FILE, help="Write how long the simulation took to this JSON file."),
    progress_option,
    click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON."),
    click.option("-q", "--quiet", is_flag=True, help="Print errors only."),
)


#: views of a running simulation
live_options: Final = together(
    click.option("--live", is_flag=True, help="During the run, show queue, machine and decisions on the terminal."),
    click.option(
        "--page",
        type=click.IntRange(0, 65535),
        metavar="PORT",
        help="Show the running simulation in a browser, at http://127.0.0.1:PORT/; 0: any free port.",
    ),
)


def scheduler_option(text: str, **settings: Any) -> Callable[[_C], _C]:
    """Return the option ``--scheduler`` (a name or a program); ``text`` is its help."""
    kind = completed("scheduler", or_file=True)
    return in_section(SCHEDULER, click.option("--scheduler", shell_complete=kind, help=text, **settings))


def other_scheduler(what: str, default: str) -> Callable[[_C], _C]:
    """Return the option ``--scheduler`` of a command that can replace a scheduler.

    Such a command, for example ``resume``, repeats or continues a run.

    Args:
        what: words for the new scheduler in the help.
        default: words in the help for the scheduler that is used without the option.
    """
    return scheduler_option(f"{what}, as for 'pipistrelle run'.", metavar="NAME|CMD...", show_default=default)


#: address of the server
endpoint_options: Final = together(
    click.option(
        "--endpoint",
        metavar="ADDRESS",
        show_default="a private Unix socket",
        help="Address to which the scheduler connects: ipc://PATH or tcp://127.0.0.1:PORT (PORT '*': any free one).",
    ),
    click.option("--insecure", is_flag=True, help="Allow unencrypted connections from other machines."),
)


def folder_option(text: str, **settings: Any) -> Callable[[_C], _C]:
    """Return the option ``--output`` for a run's output folder; ``text`` is its help."""
    return in_section(OUTPUTS, click.option("-o", "--output", "--out", "out", type=FOLDER, help=text, **settings))


def overwrite_option(what: str) -> Callable[[_C], _C]:
    """Return the option ``--overwrite``.

    Its help says that the results of ``what`` are replaced.
    """
    return in_section(
        OUTPUTS, click.option("--overwrite", is_flag=True, help=f"Replace the results of {what} in the output folder.")
    )


record_option: Final = in_section(
    OUTPUTS,
    click.option(
        "--record",
        metavar="FILE",
        type=FILE,
        help=(
            "Record the messages between simulator and scheduler in FILE (.jsonl, .jsonl.gz; "
            "'pipistrelle check replay' reads it)."
        ),
    ),
)


snapshot_options: Final = together(
    click.option(
        "--snapshot-every",
        metavar="TIME",
        help="Save the run's state for 'pipistrelle resume' every TIME: wall-clock ('10m') or simulated ('sim:7d').",
    ),
    click.option(
        "--keep-snapshots",
        type=click.IntRange(min=1),
        default=2,
        metavar="NUMBER",
        help="With --snapshot-every: number of saved states to keep.",
    ),
    click.option(
        "--leave-snapshots", is_flag=True, help="With --snapshot-every: keep the saved states after the run completes."
    ),
)


def recorded(connection: "Connection", file: Path | None) -> "Connection":
    """Return the connection to a scheduler, recorded if a file is given.

    All its messages are then written to the file.
    """
    if file is None:
        return connection
    from pipistrelle.runs.sessions.recording import Recorded  # most runs are not recorded

    return Recorded(connection, file)
