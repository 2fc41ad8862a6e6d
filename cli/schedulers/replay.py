"""``pipistrelle check replay``: replay a recorded session."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from pipistrelle.cli.options.parts import part_options
from pipistrelle.cli.options.sections import CONNECTION, in_section
from pipistrelle.cli.options.shared import other_scheduler, timeout_option
from pipistrelle.cli.run.run import RunCommand
from pipistrelle.cli.terminal.console import import_numpy, show
from pipistrelle.cli.terminal.exits import DIFFERENT
from pipistrelle.cli.terminal.guard import FilledPath

if TYPE_CHECKING:
    from pipistrelle.protocol.decisions import Decision
    from pipistrelle.protocol.messages import Reply
    from pipistrelle.runs.sessions.replay import Parting

#: most queued jobs shown
_MOST_JOBS: Final = 20


@click.command(cls=RunCommand, common=("scheduler", "server", "in_process"))
@click.argument("session", type=FilledPath(path_type=Path, exists=True, dir_okay=False))
@other_scheduler("Scheduler", default="the recorded scheduler")
@part_options
@in_section(
    CONNECTION,
    click.option(
        "--server", is_flag=True, help="Test Pipistrelle's server instead of a scheduler, with the recorded replies."
    ),
    click.option(
        "--in-process", is_flag=True, help="Run the scheduler in the process of this command, which is faster."
    ),
    timeout_option("hello", "the scheduler to connect"),
    timeout_option("decision", "each reply of the scheduler"),
)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    session: Path,
    scheduler: str | None,
    server: bool,
    in_process: bool,
    hello_timeout: float,
    decision_timeout: float,
    **parts: Any,
) -> None:
    """Send a scheduler the messages of a recorded run, and report the first reply that differs.

    SESSION is a file written by 'pipistrelle run --record FILE'. Nothing is simulated: the command sends the recorded
    messages of the server (the simulator) to the scheduler, and compares its replies with the recorded replies.

    With --server, the command tests the server instead: it repeats the run with the recorded replies, and compares the
    server's messages with the recorded ones. This needs the run's input files. The exit code is 0 if all messages are
    equal, and 1 if one differs.

    \b
    pipistrelle run --record easy.jsonl.gz
    pipistrelle check replay easy.jsonl.gz --scheduler ./my_scheduler {endpoint}
    """
    import_numpy()

    from pipistrelle.runs.sessions.replay import replay, replay_server
    from pipistrelle.runs.sessions.session_file import SessionReader

    words: list[str] | None = ctx.obj
    reader = SessionReader(session)
    if server:
        if scheduler is not None or words is not None or in_process:
            raise click.UsageError("--server tests the server, not a scheduler: omit --scheduler and --in-process.")
        show(f"the server sends the recorded notices: {replay_server(reader):,} notices")
        return
    from pipistrelle.runs.description.spec import RunSpec
    from pipistrelle.runs.description.spec_file import convert_spec
    from pipistrelle.runs.execution.connection import Connection, InProcess, WithChild, check_scheduler

    if scheduler is None and words is None:
        spec = convert_spec(reader.header.spec, f"{session}")
        if spec.code is not None:
            raise click.UsageError(f"the recorded run used the scheduler code {spec.code}: give it with --scheduler.")
        if spec.program:
            raise click.UsageError(
                "the recorded run used a scheduler program: give it with --scheduler CMD... {endpoint}."
            )
    else:
        spec = RunSpec(scheduler=tuple(words) if words is not None else str(scheduler), **parts)
    check_scheduler(spec)
    connection: Connection
    if in_process:
        connection = InProcess()
    else:
        connection = WithChild(
            hello_timeout=hello_timeout,
            decision_timeout=decision_timeout,
            verbose=ctx.find_root().params["verbose"],
            name=spec.program_name,
        )
    found = replay(reader, connection, spec)
    if found.parting is None:
        show(f"{found.scheduler} decides as recorded: {found.notices:,} notices, {found.decisions:,} decisions")
        return
    _print_parting(found.parting, found.scheduler, reader.header.hello.name, reader.header.epoch)
    ctx.exit(DIFFERENT)


def _print_parting(parting: "Parting", found: str, recorded: str, epoch: float | None) -> None:
    """Print the first decision that differs from the recording.

    The queue at that time is printed, too.

    Args:
        found, recorded: names of the tested and of the recorded scheduler.
        epoch: Unix time (s) of time 0; None: no dates.
    """
    from pipistrelle.cli.terminal.console import print_table
    from pipistrelle.cli.terminal.dates import Dates

    now, place = parting.notice.now, parting.place
    date = Dates(epoch).at(now)
    dated = f" ({date})" if date else ""
    show(f"first difference at notice {parting.notice.seq}, simulated time {now!r} s{dated}, decision {place}", "bold")
    width = max(len(recorded), len(found))
    for name, reply in ((recorded, parting.recorded), (found, parting.found)):
        side = "recorded" if reply is parting.recorded else "now"
        show(f"  {side:<8}  {name:<{width}}  {_said(reply, place)}")
    rows: list[tuple[str, ...]] = [
        (job.id, f"{job.units:,}", "-" if job.walltime is None else f"{job.walltime:g}", f"{now - job.submitted:g}")
        for job in parting.queue[:_MOST_JOBS]
    ]
    if len(parting.queue) > _MOST_JOBS:
        rows.append((f"... {len(parting.queue) - _MOST_JOBS:,} more",))
    print_table("Queue at that time", ("job", "units", "walltime, s", "waited, s"), rows, ("job",))


def _said(reply: "Reply", place: int) -> str:
    if place >= len(reply.events):
        filtered = "" if reply.wake is None else f", and wakes for {', '.join(reply.wake) or 'calls alone'}"
        if reply.wake_when is not None:
            filtered += " under conditions"
        return f"no more decisions, ready at {reply.now!r}{filtered}"
    return _in_words(reply.events[place])


def _in_words(decision: "Decision") -> str:
    from msgspec import to_builtins

    plain = to_builtins(decision)
    data = plain.get("data", plain)
    why = data.pop("why", None)
    words = [str(decision.__struct_config__.tag), *(f"{key}={value}" for key, value in data.items())]
    return " ".join(words) + (f" (why: {why})" if why else "")
