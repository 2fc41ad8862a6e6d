"""``pipistrelle slurm record``: record the real slurmctld in virtual time."""

import sys
from pathlib import Path
from typing import Any

import click

from pipistrelle.cli.options.files import reading_options
from pipistrelle.cli.options.sections import INPUTS, OUTPUTS, Command, in_section
from pipistrelle.cli.terminal.console import import_numpy, show
from pipistrelle.cli.terminal.guard import FILE, FOLDER
from pipistrelle.protocol.base.log import logger


@click.command(cls=Command)
@in_section(
    INPUTS,
    click.option(
        "--config",
        type=FOLDER,
        required=True,
        metavar="DIR",
        help="Folder with the cluster's slurm.conf, and gres.conf and topology.conf if used.",
    ),
    click.option(
        "--slurm-prefix",
        type=FOLDER,
        metavar="DIR",
        show_default="the programs in the PATH",
        help="Folder in which Slurm is installed.",
    ),
    click.option(
        "-w",
        "--workload",
        required=True,
        metavar="NAME|FILE",
        help="Jobs to submit: bundled name, file of recorded events, SWF or accounting log.",
    ),
    reading_options,
    click.option(
        "--accounting",
        type=FILE,
        multiple=True,
        metavar="FILE",
        help="Accounts and QOS, as sacctmgr output or commands; repeatable.",
    ),
    click.option(
        "--reservations",
        type=FILE,
        metavar="FILE",
        help="Reservations to create: CSV with columns t (seconds) and command (scontrol ...).",
    ),
    click.option(
        "--until",
        default="30d",
        show_default=True,
        metavar="TIME",
        help="Stop this long after the last submission.",
    ),
)
@in_section(
    OUTPUTS,
    click.option("-o", "--out", type=FOLDER, required=True, metavar="FOLDER", help="New folder for the recording."),
)
def command(
    config: Path,
    slurm_prefix: Path | None,
    workload: str,
    accounting: tuple[Path, ...],
    reservations: Path | None,
    until: str,
    out: Path,
    **reading: Any,
) -> None:
    """Record what the installed slurmctld decides, in virtual time.

    The command starts the installed slurmctld, and one slurmd per node, in private folders and without the network.
    Their clock jumps from event to event, so days take minutes. Each job is submitted at its time and sleeps for its
    runtime. Only the keys of DIR/slurm.conf that concern scheduling are used. The recording has no secrets: all other
    keys are left out or replaced, and the command lists them.

    \b
    pipistrelle slurm record --config /etc/slurm -w jobs.events -o recording
    pipistrelle slurm check recording
    """
    import_numpy()
    from pipistrelle.protocol.base.errors import said_of
    from pipistrelle.protocol.base.lengths import parse_seconds
    from pipistrelle.runs.inputs.named import load_workload
    from pipistrelle.runs.recorder.jobs import timed_commands
    from pipistrelle.runs.recorder.record import record

    with said_of("--until"):
        seconds = parse_seconds(until)
    trace = load_workload(workload, **reading)
    commands = [] if reservations is None else timed_commands(reservations)
    prefix = None if slurm_prefix is None else str(slurm_prefix)
    found = record(
        config,
        trace,
        out,
        until=seconds,
        prefix=prefix,
        accounting=[str(path) for path in accounting],
        commands=commands,
        progress=_progress,
    )
    for remark in found.remarks:
        logger().warning("{}", remark)
    if found.left:
        logger().warning("the recording ended before all jobs did; raise --until to record all")
    if found.changes:
        show(f"keys replaced or left out: {', '.join(found.changes)}")
    show(
        f"{found.version}: {found.jobs:,} jobs, {found.starts:,} starts, {found.passes:,} passes"
        f" in {found.seconds:,.0f} s of virtual time, in {out}"
    )


def _progress(jobs: int, now: float) -> None:
    if sys.stderr.isatty():
        click.echo(f"\r{jobs:,} jobs submitted, {now:,.0f} s of virtual time ", nl=False, err=True)
