"""``pipistrelle study run``: run every simulation of a study."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipistrelle.cli.options.sections import Command
from pipistrelle.cli.options.shared import progress_option
from pipistrelle.cli.study.trials import jobs_option
from pipistrelle.cli.terminal.console import configure_log, import_numpy, print_facts
from pipistrelle.cli.terminal.guard import FILE, FOLDER
from pipistrelle.protocol.base.log import logger

if TYPE_CHECKING:
    from pipistrelle.studies.workers.campaign import StudyEstimate


@click.command("run", cls=Command)
@click.argument("study", metavar="STUDY", type=FILE)
@click.option(
    "-o",
    "--output",
    "--out",
    "out",
    metavar="DIR",
    type=FOLDER,
    required=True,
    help="Folder of the results; an interrupted study continues there.",
)
@click.option("--overwrite", is_flag=True, help="Replace the results of another study in DIR.")
@jobs_option
@click.option(
    "--dask",
    metavar="ADDRESS",
    help="Run the simulations on the workers of this Dask scheduler, such as tcp://host:8786.",
)
@click.option(
    "--slurm",
    metavar="NUMBER",
    type=click.IntRange(min=1),
    help="Run the simulations in this many Slurm jobs, which this command submits.",
)
@click.option(
    "--slurm-option",
    "slurm_options",
    metavar="KEY=VALUE",
    multiple=True,
    help="Option of the jobs that --slurm submits: queue=..., account=..., memory=..., walltime=...; repeatable.",
)
@click.option("--dry-run", is_flag=True, help="Check the study and estimate its duration, without running it.")
@progress_option
def command(
    study: Path,
    out: Path,
    overwrite: bool,
    jobs: int | None,
    dask: str | None,
    slurm: int | None,
    slurm_options: tuple[str, ...],
    dry_run: bool,
    progress: bool | None,
) -> None:
    """Run a study, or continue an interrupted one.

    STUDY is a TOML file ('pipistrelle help studies') that lists values for options of 'pipistrelle run'. The study
    simulates every combination of them. DIR/trials.parquet gets one row per simulation.
    """
    import_numpy()
    verbose = click.get_current_context().find_root().params.get("verbose", 0)
    configure_log(verbose, once=True)  # points of a study repeat the same warnings
    from pipistrelle.cli.study.progress import StudyProgress
    from pipistrelle.studies.trials.study import Study
    from pipistrelle.studies.workers.campaign import estimate, run

    told = Study.read(study)
    workers = jobs or slurm or len(os.sched_getaffinity(0))
    if dry_run:
        if overwrite:
            raise click.UsageError("--dry-run writes nothing: omit --overwrite.")
        _print_estimate(estimate(told, out), None if dask else workers)
        return
    with StudyProgress(progress) as watch:
        results = run(
            told,
            out,
            jobs=jobs,
            dask=dask,
            slurm=slurm,
            slurm_options=slurm_options,
            overwrite=overwrite,
            watch=watch,
        )
    stalled = results.stalled
    if stalled:
        logger().warning("{:,} trials stalled and have no metrics: the column 'message' says why", stalled)
    click.echo(f"{len(results):,} trials in {out / 'trials.parquet'}")


def _print_estimate(found: "StudyEstimate", workers: int | None) -> None:
    from pipistrelle.cli.study.progress import time_text

    left = found.trials - found.done
    replicas = found.trials // found.points
    most = "at most " if found.uncompiled else ""
    facts = [
        ("points", f"{found.points:,}"),
        ("trials", f"{found.trials:,}, {replicas:,} of each point"),
        ("done", f"{found.done:,}"),
        ("start", f"{time_text(found.start)} in each worker"),
        ("a trial", f"{most}{time_text(found.seconds)}, the mean of {found.measured}"),
    ]
    if workers is None:
        facts.append(("in all", f"{most}{time_text(found.seconds * left)} of workers' time"))
    else:
        whole = bool(left) * found.start + found.seconds * left / workers
        facts.append(("in all", f"{most}{time_text(whole)} on {workers} workers"))
    if found.uncompiled:
        facts.append(("kernel", "not compiled yet: the first trial takes about a minute longer"))
    print_facts(facts)
