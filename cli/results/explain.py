"""``pipistrelle explain``: why a job of a run waited, or the jobs of a user, a group or a queue."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from pipistrelle.cli.options.fields import MomentOfRun
from pipistrelle.cli.options.sections import Command
from pipistrelle.cli.terminal.console import print_json
from pipistrelle.cli.terminal.guard import FILE, FILE_OR_FOLDER, refuse_overwriting

if TYPE_CHECKING:
    from datetime import datetime

    from pipistrelle.cli.terminal.dates import Dates

#: no queue can be called that: all of them
_ALL: Final = "\0"


@click.command(cls=Command)
@click.argument("run", type=FILE_OR_FOLDER)
@click.argument("job", required=False)
@click.option("--user", metavar="NAME", help="Shares of the waits of this user's jobs by reason.")
@click.option("--group", metavar="NAME", help="Those of this group's jobs.")
@click.option("--account", metavar="NAME", help="Those of this account's jobs.")
@click.option(
    "--queue",
    metavar="[NAME]",
    is_flag=False,
    flag_value=_ALL,
    help="Those of this queue's jobs. With --at: who waited then, in all queues without NAME, when each was expected "
    "to start, and how wrong that was.",
)
@click.option("--qos", metavar="NAME", help="Those of this QOS's jobs.")
@click.option(
    "--at",
    type=MomentOfRun(),
    metavar="TIME",
    help="Show one moment: seconds since time 0, as 36h or 12:30:00, or a date, as 1996-09-23T14:00.",
)
@click.option("--json", "as_json_", is_flag=True, help="Write JSON, all of it.")
@click.option(
    "--csv",
    "as_csv",
    type=FILE,
    metavar="FILE.csv",
    help="With --queue and --at: write a line for each job that waited.",
)
@click.option(
    "--no-replay",
    is_flag=True,
    help="Explain from the outputs alone, without repeating the run to see what its scheduler saw.",
)
@click.option(
    "--trust", is_flag=True, help="Let Python code run that the folder names as the run's scheduler, as file.py:CLASS."
)
def command(
    run: Path,
    job: str | None,
    at: "float | datetime | None",
    as_json_: bool,
    as_csv: Path | None,
    no_replay: bool,
    trust: bool,
    **labels: str | None,
) -> None:
    """Explain why a job of a run waited, why the jobs of a user, a group or a queue did, or who waited at a time.

    RUN is the folder of a run's outputs, JOB an id as in out_decisions.csv, or without its prefix. The first call
    repeats the run and keeps what it saw in out_explain.index beside the outputs; the others read that. With --queue
    and --at the run is repeated until then: every job that waited, with the start that was to be expected as every job
    takes its whole walltime, and when it really started.

    \b
    pipistrelle explain pipistrelle-out/demo-easy-1 w0!17
    pipistrelle explain pipistrelle-out/demo-easy-1 --user 3
    pipistrelle explain pipistrelle-out/demo-easy-1 --queue --at 36h
    """
    of = {name: value for name, value in labels.items() if value is not None}
    if (job is None) != bool(of):
        raise click.UsageError("name either a JOB, or whose jobs by --user, --group, --account, --queue or --qos.")
    if job is None and "queue" in of and at is not None:
        if no_replay:
            raise click.UsageError("--no-replay goes with a JOB: who was expected when is in no output.")
        _print_queue(run, at, {label: name for label, name in of.items() if name != _ALL}, as_json_, as_csv, trust)
        return
    if as_csv is not None:
        raise click.UsageError("--csv goes with --queue and --at.")
    if of and at is not None:
        raise click.UsageError("--at shows one moment of one JOB, or with --queue all that waited.")
    if of.get("queue") == _ALL:
        raise click.UsageError("--queue needs the NAME of a queue, or --at TIME for all that waited then.")
    # Here and below, not above: help needs none of these, and an explanation without a replay not all.
    from pipistrelle.reports.explain.index import open_index

    if job is None:
        _print_shares(run, of, as_json_, no_replay, trust)
        return
    from pipistrelle.reports.explain.explanation import account, as_json

    def wanted(one: str, _: object) -> bool:
        return job in (one, one.partition("!")[2])

    index = open_index(run, repeat=not no_replay, wanted=wanted, trust=trust)
    then = None if at is None else _dates(run).time(at, "--at")
    explanation, look = account(index, job, then)
    if as_json_:
        print_json(as_json(explanation, look))
    else:
        from pipistrelle.cli.results.explain_text import print_explanation

        print_explanation(explanation, then, look)


def _dates(run: Path) -> "Dates":
    """Return the dates of a run's times."""
    from pipistrelle.cli.terminal.dates import Dates
    from pipistrelle.runs.folders.files import read_config

    first = next(iter(read_config(run)["workloads"].values()), None)
    told = first if isinstance(first, dict) else {}
    return Dates(told.get("epoch"), told.get("timezone"))


def _print_queue(
    run: Path, at: "float | datetime", of: dict[str, str], as_json: bool, as_csv: Path | None, trust: bool
) -> None:
    import msgspec

    refuse_overwriting([str(path) for path in run.glob("out_*")], [as_csv])
    time = _dates(run).time(at, "--at")
    from pipistrelle.reports.estimates.queue_estimates import queue_then

    found = queue_then(run, time, of, trust=trust)
    if as_csv is not None:
        from pipistrelle.cli.results.queue_text import write_queue

        write_queue(as_csv, found)
    if as_json:
        print_json(msgspec.to_builtins(found))
    else:
        from pipistrelle.cli.results.queue_text import print_queue

        print_queue(found)


def _print_shares(run: Path, of: dict[str, str], as_json: bool, no_replay: bool, trust: bool) -> None:
    import msgspec

    from pipistrelle.reports.explain.index import open_index
    from pipistrelle.reports.explain.shares import chosen, shares

    index = open_index(run, repeat=not no_replay, wanted=lambda _, its: chosen(of, its), trust=trust)
    found = shares(index, of)
    if as_json:
        print_json(msgspec.to_builtins(found))
    else:
        from pipistrelle.cli.results.explain_text import print_shares

        print_shares(found)
