"""``pipistrelle study summary`` and ``break-even``."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from pipistrelle.cli.options.fields import ShareNumber
from pipistrelle.cli.options.sections import Command
from pipistrelle.cli.study.trials import (
    ALONE,
    chosen_axes,
    form_options,
    grouped,
    is_timed,
    level_option,
    marked,
    method_option,
    metric_option,
    metrics_option,
    number_text,
    percent_text,
    print_rows,
    read_trials,
    remark,
    trials_argument,
    where_option,
)

if TYPE_CHECKING:
    from pipistrelle.studies.inference.reports import CellRow

Method = Literal["t", "bootstrap"]


@click.command("summary", cls=Command)
@trials_argument
@where_option
@metrics_option
@click.option(
    "--quantile",
    metavar="PERCENTAGE",
    type=ShareNumber(),
    help="Print this quantile over repetitions, such as 90%, instead of the mean.",
)
@level_option
@method_option
@form_options
def summary_command(
    place: Path,
    conditions: list[tuple[str, str]],
    metrics: tuple[str, ...],
    quantile: float | None,
    level: float,
    method: Method,
    form: str | None,
) -> None:
    """Print mean results, with confidence intervals, for each combination of varied parameters.

    DIR is the folder of a study, or its Parquet file. The means are over the repetitions of a simulation with different
    random numbers.
    """
    from pipistrelle.studies.inference.gaps import gap_remarks
    from pipistrelle.studies.inference.reports import summary

    if quantile is not None and method != "t":
        raise click.UsageError("--interval is for means: the intervals of quantiles always come from order statistics.")
    trials = read_trials(place, conditions)
    rows = summary(trials, metrics, level=level, method=method, quantile=quantile)
    what = "means" if quantile is None else f"{100 * quantile:g} % quantiles"
    how = "order statistics" if quantile is not None else "t" if method == "t" else "bootstrap"

    def tables() -> Iterator[tuple[str, list[str], list[list[str]]]]:
        by = f" by {trials.axes[-1]}" if trials.axes else ""
        for metric in dict.fromkeys(row.metric for row in rows):
            own = [row for row in rows if row.metric == metric]
            title = f"{metric}{by}: {what}, {100 * level:g} % intervals ({how})"
            columns = ["", "n", "value", "from", "to", "± %"]
            yield title, columns, grouped((row.cell, _summary_cells(row)) for row in own)

    print_rows(form, [row.plain() for row in rows], tables())
    if any(row.estimate.count == 1 for row in rows):
        remark(form, ALONE)
    for text in trials.remarks():
        remark(form, text)
    for metric in dict.fromkeys(row.metric for row in rows):
        for text in gap_remarks(metric, (gap for row in rows if row.metric == metric for gap in row.gaps), len(trials)):
            remark(form, text)


def _summary_cells(row: "CellRow") -> list[str]:
    found = row.estimate
    value, *ends = (number_text(end) for end in (found.value, found.low, found.high))
    relative = percent_text(None if row.plain()["low"] is None else found.relative)
    return [*marked(found.count, row.missing, value), *ends, relative]


def _targets(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> list[float]:
    from pipistrelle.protocol.base.lengths import seconds_of

    try:
        return [seconds_of(text) for text in texts]
    except ValueError as error:
        raise click.BadParameter(f"a target is a number, or a length of time: {error}.") from None


target_option = click.option(
    "--target",
    "targets",
    metavar="VALUE",
    multiple=True,
    callback=_targets,
    help="Value of --metric to reach, such as 2h or 0.8; repeatable.",
)
x_option = click.option(
    "--x",
    metavar="AXIS",
    show_default="repair, or the last axis",
    help="Axis (parameter that the study varies) whose value is searched for.",
)
by_option = click.option(
    "--by",
    metavar="AXIS",
    show_default="reliability_factor, or the first axis",
    help="Axis (parameter that the study varies); each value gives one curve.",
)


@click.command("break-even", cls=Command)
@trials_argument
@x_option
@by_option
@metric_option
@target_option
@click.option(
    "--at",
    metavar="VALUE",
    show_default="the smallest value of --x",
    help="Print where the other curves reach each curve's value at this --x.",
)
@where_option
@level_option
@form_options
def break_even_command(
    place: Path,
    x: str | None,
    by: str | None,
    metric: str,
    targets: list[float],
    at: str | None,
    conditions: list[tuple[str, str]],
    level: float,
    form: str | None,
) -> None:
    """Find the repair time at which a metric reaches a given value.

    DIR is the folder of a study, or its Parquet file. For each failure rate, a curve shows how the metric
    depends on the repair time. With --target, the command prints the repair time at which each curve reaches this
    value. With --at, it reads each curve at this repair time, and prints where the other curves reach the same value.
    --x and --by replace repair time and failure rate by other parameters that the study varies.
    """
    from pipistrelle.studies.inference.crossing import Curves, break_even
    from pipistrelle.studies.inference.trials import label

    trials = read_trials(place, conditions)
    x, by = chosen_axes(trials, x, by)
    curves = Curves(trials, x, by, metric, level=level)
    where = 0 if at is None else curves.labels.index(trials.value(x, at))
    reached, met = break_even(curves, targets, where)
    if by is None and not targets:
        raise click.UsageError("there is only one curve, so none to compare it with: give --target VALUE.")
    # a result beyond the axis in every resample is shown only if there is no other
    shown = [one for one in met if len({one["at"], one["low"], one["high"]}) > 1] or met
    text = _axis_text(curves.x[0], curves.x[-1], is_timed(trials, x))

    def tables() -> Iterator[tuple[str, list[str], list[list[str]]]]:
        how = f"{100 * level:g} % intervals"
        if reached:
            curve = [] if by is None else [by]
            lines = []
            for one in reached:
                cells = [number_text(one["target"]), *(text(one[end]) for end in ("at", "low", "high"))]
                lines.append(cells if by is None else [label(one["curve"]), *cells])
            yield f"{x} that meets a target of {metric}, {how}", [*curve, "target", x, "from", "to"], lines
        if shown:
            lines = [
                [label(one["curve"]), label(one["other"]), number_text(one["target"])]
                + [text(one[end]) for end in ("at", "low", "high")]
                for one in shown
            ]
            title = f"{x} for the {metric} that another has at {label(curves.labels[where])}, {how}"
            yield title, [by or "", "equals", metric, x, "from", "to"], lines

    rows = [{"x": x, "by": by, "metric": metric, **one} for one in [*reached, *met]]
    print_rows(form, rows, tables())
    if len(shown) < len(met):
        remark(form, f"left out: {len(met) - len(shown):,} pairs whose {x} is beyond the axis")
    if curves.drawn is None:
        remark(form, ALONE)


def _axis_text(least: float, greatest: float, timed: bool) -> Any:
    """Return a function that formats a value of an axis (varied parameter).

    A value outside the studied range becomes "< LEAST" or "> GREATEST". ``timed``: values are durations (s).
    """
    from pipistrelle.protocol.base.lengths import length_text

    def text(value: float | str | None) -> str:
        if value is None:
            return "-"
        if isinstance(value, str):
            mark, end = (">", greatest) if value == "above" else ("<", least)
            return f"{mark} {length_text(float(end)) if timed else number_text(float(end))}"
        return length_text(value) if timed else number_text(value)

    return text
