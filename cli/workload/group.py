"""``pipistrelle workload``: making workloads, looking at them, changing them."""

from pathlib import Path

import click

from pipistrelle.cli.options.fields import PositiveNumber
from pipistrelle.cli.options.files import output_option
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
@click.option("--jobs", type=click.IntRange(min=1), default=5000, show_default=True, help="Number of jobs.")
@click.option(
    "--machine-size",
    type=click.IntRange(min=1),
    default=256,
    show_default=True,
    help="Size of the machine in schedulable units.",
)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Equal seeds give equal bytes.")
@click.option(
    "--load",
    type=PositiveNumber(),
    default=0.85,
    show_default=True,
    help="Offered load: unit-seconds of the jobs over those of the machine.",
)
@output_option("File to write: .swf or .json, also with .gz or .xz.")
def generate_command(jobs: int, machine_size: int, seed: int, load: float, output: Path) -> None:
    """Generate a workload with daily and weekly cycles, and write it."""
    from pipistrelle.traces.errors import counted
    from pipistrelle.traces.generator import generate
    from pipistrelle.traces.load import save

    save(generate(jobs=jobs, units=machine_size, seed=seed, load=load), output)
    click.echo(f"{counted(jobs, 'job')} written to {output}")
