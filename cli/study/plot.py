"""``pipistrelle study plot``: draw the results of a study."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import click

from pipistrelle.cli.options.fields import Choice
from pipistrelle.cli.options.sections import Command
from pipistrelle.cli.study.compare import chosen_values
from pipistrelle.cli.study.tell import target_option
from pipistrelle.cli.study.trials import (
    level_option,
    picture_option,
    read_trials,
    remark,
    trials_argument,
    where_option,
)

if TYPE_CHECKING:
    from pipistrelle.models.workloads.pictures import Font
    from pipistrelle.studies.pictures.choices import Kind

KINDS: Final = ("curves", "normalised", "bars", "boxes", "ecdf", "sizes")
_SIZE: Final = re.compile(r"\s*([0-9.]+)\s*[x×]\s*([0-9.]+)\s*(in|cm)?\s*")
_CM: Final = 2.54


def _size(ctx: click.Context, param: click.Parameter, text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    from pipistrelle.models.workloads.pictures import INCHES

    match = _SIZE.fullmatch(text)
    try:
        sides = () if match is None else (float(match[1]), float(match[2]))
    except ValueError:
        sides = ()
    scale = _CM if match is not None and match[3] == "cm" else 1.0
    if not sides or not all(INCHES[0] <= side / scale <= INCHES[1] for side in sides):
        raise click.BadParameter(f"'{text}' is not a size such as 3.5x2.5 (inches) or 9x6cm.")
    return sides[0] / scale, sides[1] / scale


@click.command("plot", cls=Command)
@trials_argument
@click.option(
    "--kind",
    type=Choice(KINDS),
    show_default="curves over a numeric axis, else bars",
    help="Kind of picture: 'pipistrelle help study-results' shows each.",
)
@click.option(
    "--x",
    metavar="AXIS",
    show_default="repair, or the last axis except policy",
    help="Axis (parameter that the study varies) for the horizontal axis of the picture.",
)
@click.option(
    "--by",
    metavar="AXIS",
    show_default="reliability_factor, policy, or the first axis",
    help="Axis (parameter that the study varies); each value gets a curve or colour.",
)
@click.option(
    "--panels",
    metavar="AXIS",
    show_default="the third axis, if any",
    help="Axis (parameter that the study varies); each value gets a panel.",
)
@click.option(
    "--metric",
    "metrics",
    metavar="COLUMN",
    multiple=True,
    show_default="mean_wait",
    help="Column of the study's results to draw (repeatable with --kind bars or boxes).",
)
@target_option
@click.option(
    "--axis",
    metavar="AXIS",
    help="With --kind sizes: axis (parameter that the study varies) whose two --values are compared.",
)
@click.option(
    "--values",
    metavar="A,B",
    show_default="the only two",
    help="With --kind sizes: the two values of --axis to compare.",
)
@where_option
@level_option
@click.option(
    "--log-scale", is_flag=True, help="Draw the metric on a logarithmic scale (not with --kind ecdf or sizes)."
)
@click.option(
    "--font",
    type=Choice(["sans", "stix", "cm"]),
    default="sans",
    help="Font; stix (like Times) and cm (Computer Modern) match LaTeX documents.",
)
@click.option("--size", metavar="WxH", callback=_size, help="Size of the picture: '3.5x2.5' (inches) or '9x6cm'.")
@click.option(
    "--title",
    metavar="TEXT",
    show_default="the varied parameters and --where",
    help="Title of the picture; '' draws none.",
)
@picture_option
def plot_command(
    place: Path,
    kind: str | None,
    x: str | None,
    by: str | None,
    panels: str | None,
    metrics: tuple[str, ...],
    targets: list[float],
    axis: str | None,
    values: str | None,
    conditions: list[tuple[str, str]],
    level: float,
    log_scale: bool,
    font: "Font",
    size: tuple[float, float] | None,
    title: str | None,
    output: Path,
) -> None:
    """Draw the results of a study with confidence intervals.

    DIR is the folder of a study, or its Parquet file. A simulation stalls if some jobs can never start, and then has no
    metrics. The picture marks where such simulations are missing, and the command prints why they stalled.
    """
    from pipistrelle.studies.inference.gaps import gap_remarks, gaps
    from pipistrelle.studies.pictures.choices import PictureChoice, check_kind, draw_study
    from pipistrelle.studies.pictures.style import PictureLook
    from pipistrelle.traces.files import write_trace

    options = {
        "x": x, "by": by, "panels": panels, "target": targets, "axis": axis, "values": values, "log-scale": log_scale,
    }  # fmt: skip
    try:
        check_kind(cast("Kind | None", kind), metrics, options)
        trials = read_trials(place, conditions)
        chosen = None if axis is None or values is None else chosen_values(trials, trials.axis(axis), values)
        look = PictureLook(suffix=output.suffix, font=font, size=size, title=title, log_scale=log_scale)
        raw, names = draw_study(
            trials, look, cast("Kind | None", kind), metrics=metrics, x=x, by=by, panels=panels, targets=targets,
            axis=axis, values=chosen, level=level,
        )  # fmt: skip
    except PictureChoice as error:
        raise click.UsageError(error.what) from None
    write_trace(output, [raw])
    click.echo(f"picture in {output}")
    for metric in names:
        if metric in trials.columns:
            for text in gap_remarks(metric, gaps(trials, metric), len(trials)):
                remark(None, text)
