"""The command group ``pipistrelle workload``.

The word ``then`` chains several changes.
"""

from typing import Final

import click

from pipistrelle.cli.doors import LazyGroup
from pipistrelle.runs.inputs.step_texts import THEN, split_steps

#: key of the later steps in the context
LATER: Final = "pipistrelle.workload.later"


class StepGroup(LazyGroup):
    """A command group whose commands can be chained by the word ``then``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the first command, and store the words of the later commands.

        They are stored in the click context ``ctx``.
        """
        first, *later = split_steps(args)
        if later:
            steps = [name for name, door in self.doors.items() if door.place.startswith("workload.edit:")]
            if first and first[0] not in steps:
                ctx.fail(f"'{THEN}' follows only {', '.join(steps)}, not '{first[0]}'.")
            ctx.meta[LATER] = later
        return super().parse_args(ctx, first)
