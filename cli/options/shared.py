"""Options that several commands share, so that they are called and explained alike."""

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
from pipistrelle.schedulers.catalogue.names import PLACEHOLDER

if TYPE_CHECKING:
    from pipistrelle.runs.execution.connection import Connection

_C = TypeVar("_C", bound=Callable[..., Any])


def timeout_option(what: str, whom: str) -> Callable[[_C], _C]:
    """Return the option that says how long to wait: for a peer (``hello``), or for each reply (``decision``)."""
    return click.option(
        f"--{what}-timeout",
        type=PositiveNumber(),
        default=HELLO_TIMEOUT if what == "hello" else DECISION_TIMEOUT,
        metavar="SECONDS",
        help=f"How long to wait for {whom}.",
    )


_DIALECT: Final = {
    "dialect": "Which protocol to speak: ours, or that of Batsim 3 and 4, where it is the scheduler that listens."
}
dialect_option: Final = added(options_of(RunSpec, _DIALECT))


#: how the figures of a run are told, and how far it is
form_options: Final = together(
    click.option(
        "--timings", type=FILE, help="Write the wall-clock figures to this JSON file; they are in no other output."
    ),
    click.option(
        "--progress/--no-progress",
        default=None,
        help="Tell how far the run is: a bar on a terminal, elsewhere a line every 10 s; default: there one a minute.",
    ),
    click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON instead of a table."),
    click.option("-q", "--quiet", is_flag=True, help="Print nothing unless something is wrong."),
)


#: how a run shows itself while it goes on
live_options: Final = together(
    click.option("--live", is_flag=True, help="Show the run on the terminal: clock, speed, queue, machine, decisions."),
    click.option(
        "--page",
        type=click.IntRange(0, 65535),
        metavar="PORT",
        help="Show the same to a browser on this machine, at http://127.0.0.1:PORT/; 0: any port that is free.",
    ),
)


def scheduler_option(text: str, **settings: Any) -> Callable[[_C], _C]:
    """Return ``--scheduler``, which names a scheduler or, where the command takes one, a program."""
    kind = completed("scheduler", or_file=True)
    return in_section(SCHEDULER, click.option("--scheduler", shell_complete=kind, help=text, **settings))


def other_scheduler(what: str, default: str) -> Callable[[_C], _C]:
    """Return ``--scheduler`` of a command that goes on with what another scheduler has begun."""
    return scheduler_option(
        f"{what}: as for 'run'; a program with {PLACEHOLDER} among its arguments takes the rest of the line. "
        f"Default: {default}.",
        metavar="NAME|CMD...",
    )


#: where the server listens
endpoint_options: Final = together(
    click.option(
        "--endpoint",
        metavar="ADDRESS",
        help="Where to listen: tcp://127.0.0.1:28000, tcp://127.0.0.1:* (any free port) or ipc://PATH; "
        "default: a private Unix socket.",
    ),
    click.option(
        "--insecure", is_flag=True, help="Allow an endpoint that other machines can reach, without encryption and keys."
    ),
)


def folder_option(text: str, **settings: Any) -> Callable[[_C], _C]:
    """Return the option that names the folder for a run's outputs."""
    return in_section(OUTPUTS, click.option("-o", "--output", "--out", "out", type=FOLDER, help=text, **settings))


record_option: Final = in_section(
    OUTPUTS,
    click.option(
        "--record",
        metavar="FILE",
        type=FILE,
        help="Record every message of both sides, for 'replay': FILE.jsonl, packed with .zst, .gz or .xz.",
    ),
)


snapshot_options: Final = together(
    click.option(
        "--snapshot-every",
        metavar="TIME",
        help="Keep the run's state for 'resume': so often on the wall clock ('10m') or in simulated time ('sim:7d'), "
        "on SIGUSR1, and when it is interrupted.",
    ),
    click.option(
        "--keep-snapshots", type=click.IntRange(min=1), default=2, metavar="NUMBER", help="How many of them stay."
    ),
    click.option(
        "--leave-snapshots",
        is_flag=True,
        help="Leave them when the run has come to its own end, for 'resume' under another policy.",
    ),
)


def recorded(connection: "Connection", file: Path | None) -> "Connection":
    """Return a connection whose messages are recorded, if a file is given for them."""
    if file is None:
        return connection
    from pipistrelle.runs.sessions.recording import Recorded  # most runs are not recorded

    return Recorded(connection, file)
