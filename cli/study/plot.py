"""``pipistrelle study plot``: draw the results of a study."""

from pathlib import Path

import click

from pipistrelle.cli.options.fields import Choice
from pipistrelle.cli.options.sections import Command
from pipistrelle.cli.study.tell import by_option, target_option, two_values, x_option
from pipistrelle.cli.study.trials import (
    chosen_axes,
    is_timed,
    level_option,
    metric_option,
    picture_option,
    read_trials,
    trials_argument,
    where_option,
)

KINDS = ("curves", "normalised", "sizes")


@click.command("plot", cls=Command)
@trials_argument
@click.option(
    "--kind",
    type=Choice(KINDS),
    default="curves",
    help="What to draw: curves over --x, curves divided by their first value, or differences by job size.",
)
@x_option
@by_option
@metric_option
@target_option
@click.option("--axis", metavar="AXIS", help="With --kind sizes: varied parameter to which the two values belong.")
@click.option("--values", metavar="A,B", show_default="the only two", help="With --kind sizes: the two values.")
@where_option
@level_option
@picture_option
def plot_command(
    place: Path,
    kind: str,
    x: str | None,
    by: str | None,
    metric: str,
    targets: list[float],
    axis: str | None,
    values: str | None,
    conditions: list[tuple[str, str]],
    level: float,
    output: Path,
) -> None:
    """Draw the results of a study with confidence intervals.

    DIR is the folder of a study, or its Parquet file.
    """
    given = {"--axis": axis, "--values": values} if kind != "sizes" else {"--x": x, "--by": by, "--target": targets}
    if idle := [name for name, value in given.items() if value]:
        raise click.UsageError(f"{idle[0]} does not go with --kind {kind}.")
    if kind == "normalised" and targets:
        raise click.UsageError("--target goes with --kind curves: normalised ones have other values.")
    if kind == "sizes" and axis is None:
        raise click.UsageError("--kind sizes needs --axis: two values of it are compared.")
    from pipistrelle.traces.files import write_trace

    trials = read_trials(place, conditions)
    if axis is not None:
        from pipistrelle.studies.inference.pictures import sizes_picture
        from pipistrelle.studies.inference.reports import by_size

        name = trials.axis(axis)
        first, second = two_values(trials.values(name), values, name, lambda text: trials.value(name, text))
        rows = by_size(trials, name, first, second, metric, level=level)
        raw = sizes_picture(rows, output.suffix, axis=name, first=first, second=second, metric=metric)
    else:
        from pipistrelle.studies.inference.crossing import Curves
        from pipistrelle.studies.inference.pictures import curves_picture

        over, curves_by = chosen_axes(trials, x, by)
        raw = curves_picture(
            Curves(trials, over, curves_by, metric, level=level),
            output.suffix,
            x=over,
            by=curves_by,
            metric=metric,
            timed=is_timed(trials, over),
            normalised=kind == "normalised",
            targets=targets,
        )
    write_trace(output, [raw])
    click.echo(f"picture in {output}")
