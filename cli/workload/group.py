"""``pipistrelle workload``: making workloads, looking at them, changing them."""

import click

from pipistrelle.cli.workload.compare import compare_command
from pipistrelle.cli.workload.describe import describe_command
from pipistrelle.cli.workload.edit import copy_step, filter_step, merge_step, redraw_step, scale_step, shuffle_step
from pipistrelle.cli.workload.generate import generate_command, model_command
from pipistrelle.cli.workload.steps import StepGroup


@click.group(cls=StepGroup)
def command() -> None:
    """Make workloads, describe them, change them.

    filter, scale, merge, shuffle, copy and redraw can follow each other in one command, with the word 'then' between
    them.
    """


for _command in (
    generate_command,
    model_command,
    describe_command,
    compare_command,
    filter_step,
    scale_step,
    merge_step,
    shuffle_step,
    copy_step,
    redraw_step,
):
    command.add_command(_command)
