"""``pipistrelle study plot``: draw the results of a study."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, cast

import click

from pipistrelle.cli.options.fields import Choice
from pipistrelle.cli.options.sections import Command
from pipistrelle.cli.study.compare import chosen_values
from pipistrelle.cli.study.tell import target_option
from pipistrelle.cli.study.trials import (
    chosen_axes,
    level_option,
    picture_option,
    read_trials,
    remark,
    trials_argument,
    where_option,
)

if TYPE_CHECKING:
    from pipistrelle.models.workloads.pictures import Font
    from pipistrelle.studies.inference.trials import TrialTable
    from pipistrelle.studies.pictures.style import PictureLook

KINDS = ("curves", "normalised", "bars", "boxes", "ecdf", "sizes")
#: {kind: options that it has beside the common ones}
_OWN: Final = {
    "curves": ("--x", "--by", "--panels", "--target"),
    "normalised": ("--x", "--by", "--panels"),
    "bars": ("--x", "--by", "--panels"),
    "boxes": ("--x", "--by", "--panels"),
    "ecdf": ("--by", "--panels"),
    "sizes": ("--axis", "--values"),
}
_SIZE: Final = re.compile(r"\s*([0-9.]+)\s*[x×]\s*([0-9.]+)\s*(in|cm)?\s*")
_CM: Final = 2.54
_LARGEST: Final = 50.0


def _size(ctx: click.Context, param: click.Parameter, text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    match = _SIZE.fullmatch(text)
    try:
        sides = () if match is None else (float(match[1]), float(match[2]))
    except ValueError:
        sides = ()
    scale = _CM if match is not None and match[3] == "cm" else 1.0
    if not sides or not all(0.5 <= side / scale <= _LARGEST for side in sides):
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
    show_default="repair, or the last axis that is not the policy",
    help="Varied parameter on the x axis.",
)
@click.option(
    "--by",
    metavar="AXIS",
    show_default="reliability_factor, the policy, or the first axis",
    help="Varied parameter; each of its values gets a curve or colour.",
)
@click.option(
    "--panels",
    metavar="AXIS",
    show_default="the third axis, if any",
    help="Varied parameter; each of its values gets a panel.",
)
@click.option(
    "--metric",
    "metrics",
    metavar="COLUMN",
    multiple=True,
    show_default="mean_wait",
    help="Column of the results to draw; repeatable for bars and boxes.",
)
@target_option
@click.option("--axis", metavar="AXIS", help="With --kind sizes: varied parameter to which the two values belong.")
@click.option("--values", metavar="A,B", show_default="the only two", help="With --kind sizes: the two values.")
@where_option
@level_option
@click.option("--font", type=Choice(["sans", "stix", "cm"]), default="sans", help="Font: stix or cm suit LaTeX.")
@click.option("--size", metavar="WxH", callback=_size, help="Width and height: 3.5x2.5 in inches, or 9x6cm.")
@click.option("--title", metavar="TEXT", show_default="what varies", help="Title; '' for none.")
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
    font: "Font",
    size: tuple[float, float] | None,
    title: str | None,
    output: Path,
) -> None:
    """Draw the results of a study with confidence intervals.

    DIR is the folder of a study, or its Parquet file. Trials without a figure are marked in the picture, and named with
    their cause.
    """
    options = {"--x": x, "--by": by, "--panels": panels, "--target": targets, "--axis": axis, "--values": values}
    if kind is not None:
        _check_options(kind, options)
    if kind == "sizes" and axis is None:
        raise click.UsageError("--kind sizes needs --axis: two values of it are compared.")
    from pipistrelle.studies.inference.gaps import gap_remarks, gaps
    from pipistrelle.studies.pictures.style import PictureLook
    from pipistrelle.traces.files import write_trace

    trials = read_trials(place, conditions)
    if kind is None:
        kind = "curves" if targets or _is_numeric(trials, x) else "bars"
        _check_options(kind, options)
    look = PictureLook(suffix=output.suffix, font=font, size=size, title=title)
    if len(metrics) > 1 and kind not in ("bars", "boxes"):
        raise click.UsageError(f"--kind {kind} draws one --metric.")
    names = metrics or ("mean_wait",)
    if kind == "sizes":
        raw = _sizes(trials, look, str(axis), values, names[0], level)
    elif kind == "ecdf":
        raw, names = _ecdf(trials, look, by, panels, metrics, level)
    else:
        raw = _over_x(trials, look, kind, x, by, panels, names, level, targets)
    write_trace(output, [raw])
    click.echo(f"picture in {output}")
    for metric in names:
        if metric in trials.columns:
            for text in gap_remarks(metric, gaps(trials, metric), len(trials)):
                remark(None, text)


def _check_options(kind: str, options: dict[str, Any]) -> None:
    for name, value in options.items():
        if value and name not in _OWN[kind]:
            if name == "--target" and kind == "normalised":
                raise click.UsageError("--target goes with --kind curves: normalised ones have other values.")
            raise click.UsageError(f"{name} does not go with --kind {kind}.")


def _is_numeric(trials: "TrialTable", x: str | None) -> bool:
    """Return whether the axis along the picture has at least two numbers or times."""
    from pipistrelle.models.samples.estimates import StatisticsError

    if not trials.axes:
        return False
    over = trials.axis(x) if x is not None else "repair" if "repair" in trials.axes else _category(trials, None)
    try:
        return len({trials.number(over, value) for value in trials.values(over)}) > 1
    except StatisticsError:
        return False


def _category(trials: "TrialTable", taken: str | None) -> str:
    """Return the axis along a picture with categories: the last one that is not the policy."""
    free = [name for name in trials.axes if name != taken]
    return next((name for name in reversed(free) if name != "policy"), free[-1])


def _sizes(
    trials: "TrialTable", look: "PictureLook", axis: str, values: str | None, metric: str, level: float
) -> bytes:
    from pipistrelle.studies.inference.reports import by_size
    from pipistrelle.studies.pictures.sizes import sizes_picture

    name = trials.axis(axis)
    chosen = chosen_values(trials, name, values)
    if len(chosen) != 2:
        raise click.UsageError(f"--kind sizes compares two values of {name}: name them with --values A,B.")
    rows = by_size(trials, name, chosen[0], chosen[1], metric, level=level)
    return sizes_picture(rows, look, first=chosen[0], second=chosen[1], metric=metric)


def _ecdf(
    trials: "TrialTable",
    look: "PictureLook",
    by: str | None,
    panels: str | None,
    metrics: tuple[str, ...],
    level: float,
) -> tuple[bytes, tuple[str, ...]]:
    from pipistrelle.studies.pictures.distributions import default_distribution, ecdf_picture

    facet = None if panels is None else trials.axis(panels)
    rest = [name for name in trials.axes if name != facet]
    colours = trials.axis(by) if by is not None else "policy" if "policy" in rest else next(iter(rest), None)
    _check_different({"--by": colours, "--panels": facet})
    left = [name for name in rest if name != colours]
    if facet is None and len(left) == 1:
        facet = left[0]
    metric = metrics[0] if metrics else default_distribution(trials)
    return ecdf_picture(trials, look, by=colours, panels=facet, metric=metric, level=level), (metric,)


def _over_x(
    trials: "TrialTable",
    look: "PictureLook",
    kind: str,
    x: str | None,
    by: str | None,
    panels: str | None,
    metrics: tuple[str, ...],
    level: float,
    targets: list[float],
) -> bytes:
    from pipistrelle.studies.pictures.categories import categories_picture
    from pipistrelle.studies.pictures.curves import curves_picture

    facet = None if panels is None else trials.axis(panels)
    if kind in ("curves", "normalised"):
        over, colours = chosen_axes(trials, x, by, facet)
        left = [name for name in trials.axes if name not in (over, colours, facet)]
        if facet is None and len(left) == 1:
            facet = left[0]
        _check_different({"--x": over, "--by": colours, "--panels": facet})
        return curves_picture(
            trials, look, x=over, by=colours, metric=metrics[0], panels=facet, level=level,
            normalised=kind == "normalised", targets=targets,
        )  # fmt: skip
    if not trials.axes:
        raise click.UsageError("the study has no axis: there is nothing to compare.")
    told = None if by is None else trials.axis(by)
    if x is not None:
        over = trials.axis(x)
    else:
        free = [name for name in trials.axes if name not in (told, facet)]
        if not free:
            raise click.UsageError("no axis is left for --x.")
        over = next((name for name in reversed(free) if name != "policy"), free[-1])
    rest = [name for name in trials.axes if name not in (over, facet)]
    colours = told or ("policy" if "policy" in rest else next(iter(rest), None))
    _check_different({"--x": over, "--by": colours, "--panels": facet})
    left = [name for name in rest if name != colours]
    if facet is None and len(left) == 1:
        facet = left[0]
    return categories_picture(
        trials, look, cast(Literal["bars", "boxes"], kind), x=over, by=colours, panels=facet, metrics=metrics,
        level=level,
    )  # fmt: skip


def _check_different(axes: dict[str, str | None]) -> None:
    named = [(option, name) for option, name in axes.items() if name is not None]
    for number, (option, name) in enumerate(named):
        for other, same in named[:number]:
            if same == name:
                raise click.UsageError(f"{other} and {option} are the same axis, {name}.")
