"""``pipistrelle forecast``: forecast the starts of a live cluster's pending jobs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from pipistrelle.cli.options.files import csv_option, json_option
from pipistrelle.cli.options.sections import INPUTS, OUTPUTS, Command, in_section
from pipistrelle.cli.terminal.console import import_numpy, print_json, show
from pipistrelle.cli.terminal.guard import FILE, refuse_overwriting
from pipistrelle.protocol.base.log import logger

_MOST_REPLICAS: Final = 100_000


def _files(name: str, text: str) -> Callable[[Any], Any]:
    return click.option(name, multiple=True, metavar="FILE", help=text)


@click.command(cls=Command)
@in_section(
    INPUTS,
    _files("--squeue", "Jobs: output of squeue, 'scontrol show job' or sacct; repeatable."),
    _files(
        "--scontrol", "Jobs, nodes or reservations: output of 'scontrol show job', 'node' or 'reservation'; repeatable."
    ),
    _files("--sinfo", "Nodes: output of sinfo; repeatable."),
    _files("--sshare", "Past usage, for fair share: output of 'sshare -a -l'; repeatable."),
    click.option("--config", required=True, metavar="FILE", help="slurm.conf of the cluster."),
    _files("--accounting", "Accounts and QOS: output of 'sacctmgr dump' or 'sacctmgr -P show'; repeatable."),
    _files("--history", "Past jobs, to draw run times from: output of 'sacct -P'; repeatable."),
    click.option(
        "--what-if",
        multiple=True,
        metavar="'sbatch ...'",
        help="Also forecast a job submitted by this sbatch command; repeatable.",
    ),
    click.option(
        "--at", metavar="DATE", show_default="as in the files", help="Date and time at which Slurm printed the files."
    ),
    click.option(
        "--timezone", metavar="ZONE", show_default="UTC", help="Time zone of the cluster, such as Europe/Prague."
    ),
    click.option("--lenient-config", is_flag=True, help="Only warn about slurm.conf keys that Slurm does not have."),
)
@click.option(
    "--replicas",
    type=click.IntRange(1, _MOST_REPLICAS),
    default=100,
    show_default=True,
    metavar="N",
    help="With --history: number of simulations, each with different random run times.",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    metavar="S",
    help="With --history: random seed of the run times.",
)
@click.option(
    "--horizon",
    default="14d",
    show_default=True,
    metavar="TIME",
    help="Simulate this long; jobs that start later get no forecast.",
)
@click.option(
    "-j", "--jobs", type=click.IntRange(min=1), show_default="one per processor", help="Number of worker processes."
)
@in_section(
    OUTPUTS,
    json_option,
    csv_option("Also write a CSV file, one line per job."),
    click.option("-o", "--out", "page", type=FILE, metavar="FILE.html", help="Also write an HTML page."),
)
def command(
    squeue: tuple[str, ...],
    scontrol: tuple[str, ...],
    sinfo: tuple[str, ...],
    sshare: tuple[str, ...],
    config: str,
    accounting: tuple[str, ...],
    history: tuple[str, ...],
    what_if: tuple[str, ...],
    at: str | None,
    timezone: str | None,
    lenient_config: bool,
    replicas: int,
    seed: int,
    horizon: str,
    jobs: int | None,
    as_json: bool,
    as_csv: Path | None,
    page: Path | None,
) -> None:
    """Forecast when and where the pending jobs of a live Slurm cluster start.

    The files are outputs of Slurm's commands, as text or with --json. The command recognises each file by its content.
    Running jobs stay on their nodes. With --history, each job runs for a random share of its time limit, drawn from the
    shares that past jobs of the same user used. Without --history, all jobs run to their time limits.

    \b
    pipistrelle forecast --squeue jobs.txt --scontrol nodes.txt --sshare shares.txt \\
      --config slurm.conf --accounting dump.cfg --history sacct.txt \\
      --what-if 'sbatch -N 4 -t 2:00:00 -p batch -A physics --uid=ada'
    """
    live = [*squeue, *scontrol, *sinfo, *sshare]
    if not (squeue or scontrol):
        raise click.UsageError("the queued jobs are missing: give --squeue FILE or --scontrol FILE.")
    refuse_overwriting([*live, config, *accounting, *history], [as_csv, page])
    import_numpy()
    from pipistrelle.cli.results.explain_text import print_columns
    from pipistrelle.protocol.base.errors import said_of
    from pipistrelle.protocol.base.lengths import parse_seconds
    from pipistrelle.reports.estimates.forecast_texts import ForecastTexts
    from pipistrelle.reports.page.forecast import forecast_page
    from pipistrelle.runs.forecast.files import forecast_files
    from pipistrelle.server.outputs.once import write_output
    from pipistrelle.traces.logs.job_table import LogOptions

    with said_of("--horizon"):
        seconds = parse_seconds(horizon)
    zone = LogOptions(timezone=timezone).zone()
    found = forecast_files(
        live,
        config,
        accounting,
        history=history,
        what_if=what_if,
        at=at,
        timezone=timezone,
        replicas=replicas,
        seed=seed,
        horizon=seconds,
        jobs=jobs,
        lenient=lenient_config,
    )
    texts = ForecastTexts(found, zone)
    for remark in found.remarks:
        logger().warning("{}", remark)
    if found.faults:
        logger().warning("{:,} rows cannot be read and are left out; the first: {}", len(found.faults), found.faults[0])
    if as_csv is not None:
        write_output(as_csv, texts.csv(), "--csv")
    if page is not None:
        write_output(page, forecast_page(texts, "Expected starts"))
    if as_json:
        print_json(texts.json())
        return
    for line in texts.summary():
        show(line)
    if found.jobs:
        spare = ("account", "limit", "priority", "user", "nodes", "reason", "10 %", "90 %", "by limits")
        print_columns("Expected starts", texts.columns(), found.jobs, spare)
