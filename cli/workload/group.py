"""``pipistrelle workload``: making workloads, looking at them, changing them."""

from pathlib import Path

import click

from pipistrelle.cli.guard import refuse_overwriting
from pipistrelle.cli.options.fields import PositiveNumber
from pipistrelle.cli.options.files import output_option
from pipistrelle.cli.options.names import completed
from pipistrelle.cli.workload.describe import describe_command
from pipistrelle.cli.workload.edit import copy_step, filter_step, merge_step, scale_step, shuffle_step
from pipistrelle.cli.workload.steps import StepGroup


@click.group(cls=StepGroup)
def command() -> None:
    """Make workloads, describe them, change them.

    filter, scale, merge, shuffle and copy can follow each other in one command, with the word 'then' between them.
    """


for _command in (describe_command, filter_step, scale_step, merge_step, shuffle_step, copy_step):
    command.add_command(_command)


@command.command("generate")
@click.option("--jobs", type=click.IntRange(min=1), show_default="5000", help="Number of jobs.")
@click.option(
    "--machine-size",
    type=click.IntRange(min=1),
    show_default="256",
    help="Size of the machine in schedulable units.",
)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Equal seeds give equal bytes.")
@click.option(
    "--load",
    type=PositiveNumber(),
    show_default="0.85, or that of the classes",
    help="Offered load: unit-seconds of the jobs over those of the machine.",
)
@click.option(
    "--classes",
    metavar="NAME|FILE",
    shell_complete=completed("classes", or_file=True),
    help="Draw jobs by classes: sizes, rates, service times, accounts; 'intrepid-classes', or a TOML file.",
)
@click.option("--duration", metavar="TIME", help="With --classes: how long jobs are submitted, as '7d'.")
@output_option("File to write: .swf, .json, .sacct or .maui, also with .gz or .xz.")
def generate_command(
    jobs: int | None,
    machine_size: int | None,
    seed: int,
    load: float | None,
    classes: str | None,
    duration: str | None,
    output: Path,
) -> None:
    """Generate a workload with daily and weekly cycles, or by classes of jobs, and write it."""
    from pipistrelle.traces.errors import counted
    from pipistrelle.traces.generator import generate
    from pipistrelle.traces.load import not_kept, save

    if classes is None:
        if duration is not None:
            raise click.UsageError("--duration goes with --classes: without, it follows from jobs and load.")
        workload = generate(
            jobs=5000 if jobs is None else jobs,
            units=256 if machine_size is None else machine_size,
            seed=seed,
            load=0.85 if load is None else load,
        )
    else:
        if jobs is not None or machine_size is not None:
            raise click.UsageError("--jobs and --machine-size follow from the --classes; --duration makes more jobs.")
        from pipistrelle.studies.workloads.class_jobs import generate_jobs
        from pipistrelle.studies.workloads.classes import load_classes

        refuse_overwriting([classes], [output])
        found = load_classes(classes)
        workload = generate_jobs(found, seed, load=load, duration=duration)
        if (asked := load or found.offered_load) >= 1:
            click.echo(f"offered load {asked:.4f}: more than the machine can do: queues grow as long as jobs come")
        if without := [one.name for one in found.accounts if not one.gpu]:
            click.echo(f"accounts without GPU: {','.join(without)}")
    save(workload, output)
    if lost := [label for label in not_kept(workload, output) if label in workload.labels]:
        click.echo(f"not kept, as the format has no place for it: {', '.join(lost)}")
    click.echo(f"{counted(len(workload), 'job')} written to {output}")
