"""``pipistrelle explain job``, ``explain queue`` and ``explain slurm``."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from pipistrelle.cli.options.fields import MomentOfRun, together
from pipistrelle.cli.options.files import all_json_option, csv_option
from pipistrelle.cli.options.sections import Command
from pipistrelle.cli.terminal.console import print_json
from pipistrelle.cli.terminal.guard import FILE_OR_FOLDER, refuse_overwriting

if TYPE_CHECKING:
    from datetime import datetime

    from pipistrelle.cli.terminal.dates import Dates

#: Slurm's tables, in the order in which they are printed
TABLES: Final = ("squeue", "sprio", "sshare", "sdiag")
_labels: Final = together(
    *(
        click.option(f"--{label.lower()}", metavar="NAME", help=f"Only jobs of this {label}.")
        for label in ("user", "group", "account", "queue", "QOS")
    )
)
_trust_option: Final = click.option(
    "--trust", is_flag=True, help="If RUN used a custom Python scheduler, allow its code to run."
)


@click.command("job", cls=Command)
@click.argument("run", type=FILE_OR_FOLDER)
@click.argument("job", required=False)
@_labels
@click.option(
    "--at",
    type=MomentOfRun(),
    metavar="TIME",
    help="Show only the job's situation at this simulated time: seconds, 36h, 12:30:00 or a date.",
)
@all_json_option
@click.option("--no-replay", is_flag=True, help="Use only the output files; do not simulate the run again.")
@_trust_option
def job_command(
    run: Path,
    job: str | None,
    at: "float | datetime | None",
    as_json: bool,
    no_replay: bool,
    trust: bool,
    **labels: str | None,
) -> None:
    """Explain why a job waited, or why the jobs of a user, group or queue waited.

    RUN is the output folder of a run. JOB is a job id as in out_decisions.csv; its prefix, such as 'w0!', may be left
    out. The first call simulates the run again and saves what it needs in out_explain.index; later calls read that
    file.

    \b
    pipistrelle explain job pipistrelle-out/demo-easy-1 17
    pipistrelle explain job pipistrelle-out/demo-easy-1 --user 3
    """
    of = {name: value for name, value in labels.items() if value is not None}
    if (job is None) != bool(of):
        raise click.UsageError("give either a JOB, or all jobs of a --user, --group, --account, --queue or --qos.")
    if of and at is not None:
        raise click.UsageError(
            "--at needs a JOB. 'pipistrelle explain queue' shows all jobs that were queued at a time."
        )
    # Imported late, so that help starts fast.
    from pipistrelle.reports.explain.index import open_index

    if job is None:
        _print_shares(run, of, as_json, no_replay, trust)
        return
    from pipistrelle.reports.explain.explanation import account
    from pipistrelle.reports.explain.explanation import as_json as plain

    def wanted(one: str, _: object) -> bool:
        return job in (one, one.partition("!")[2])

    index = open_index(run, repeat=not no_replay, wanted=wanted, trust=trust)
    then = None if at is None else _dates(run).time(at, "--at")
    explanation, look = account(index, job, then)
    if as_json:
        print_json(plain(explanation, look))
    else:
        from pipistrelle.cli.results.explain_text import print_explanation

        print_explanation(explanation, then, look)


@click.command("queue", cls=Command)
@click.argument("run", type=FILE_OR_FOLDER)
@click.option(
    "--at",
    type=MomentOfRun(),
    metavar="TIME",
    required=True,
    help="Simulated time to show: seconds, 36h, 12:30:00 or a date.",
)
@_labels
@all_json_option
@csv_option("Also write a CSV file with one line per queued job.")
@_trust_option
def queue_command(
    run: Path, at: "float | datetime", as_json: bool, as_csv: Path | None, trust: bool, **labels: str | None
) -> None:
    """Show the jobs that were queued at TIME, with their expected and actual starts.

    RUN is the output folder of a run. The run is simulated again up to TIME. The expected start assumes that every job
    runs for its full walltime.

    \b
    pipistrelle explain queue pipistrelle-out/demo-easy-1 --at 36h
    """
    _print_queue(run, at, {name: value for name, value in labels.items() if value is not None}, as_json, as_csv, trust)


@click.command("slurm", cls=Command)
@click.argument("run", type=FILE_OR_FOLDER)
@click.option(
    "--at", type=MomentOfRun(), metavar="TIME", required=True, help="Simulated time: seconds, 36h, 12:30:00 or a date."
)
@click.option(
    "--table",
    "tables",
    type=click.Choice(TABLES),
    multiple=True,
    help="Show only this table; repeatable.",
)
@all_json_option
def slurm_command(run: Path, at: "float | datetime", tables: tuple[str, ...], as_json: bool) -> None:
    """Show squeue, sprio -l, sshare -l and sdiag as Slurm would print them at TIME.

    RUN is the output folder of a run of the scheduler slurm. The run is simulated again up to TIME.

    \b
    pipistrelle explain slurm out --at 36h --table sprio
    """
    from pipistrelle.reports.estimates.slurm_then import slurm_then

    found = slurm_then(run, _dates(run).time(at, "--at"))
    if as_json:
        import msgspec

        told = msgspec.to_builtins(found)
        print_json({name: value for name, value in told.items() if name not in TABLES or name in (tables or TABLES)})
    else:
        from pipistrelle.cli.results.slurm_text import print_tables

        print_tables(found, tables or TABLES)


def _dates(run: Path) -> "Dates":
    """Return the dates of simulated times, as the run's outputs give them."""
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
