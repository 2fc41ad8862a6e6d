"""``pipistrelle study summary``, ``compare`` and ``break-even``."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from pipistrelle.cli.options.fields import ShareNumber
from pipistrelle.cli.options.sections import Command
from pipistrelle.cli.study.trials import (
    chosen_axes,
    form_options,
    grouped,
    is_timed,
    level_option,
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
    from pipistrelle.studies.inference.reports import CellRow, PairRow
    from pipistrelle.studies.inference.trials import Value

_ALONE = "one replica gives no interval: run the study with more ([replicas] count or precision)"
Method = Literal["t", "bootstrap"]


@click.command("summary", cls=Command)
@trials_argument
@where_option
@metrics_option
@click.option(
    "--quantile",
    metavar="SHARE",
    type=ShareNumber(),
    help="Print this quantile over the replicas, instead of their mean.",
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
    """Print means with confidence intervals for each combination of the varied parameters.

    DIR is the folder of a study, or its Parquet file.
    """
    from pipistrelle.studies.inference.reports import summary

    if quantile is not None and method != "t":
        raise click.UsageError("--interval goes with means: the interval of a quantile is of order statistics.")
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
        remark(form, _ALONE)
    for text in trials.remarks():
        remark(form, text)
    for metric in dict.fromkeys(row.metric for row in rows if row.missing):
        count = sum(row.missing for row in rows if row.metric == metric)
        remark(form, f"{count:,} of {len(trials):,} trials have no {metric}: they are in no mean")


def _summary_cells(row: "CellRow") -> list[str]:
    found = row.estimate
    ends = [number_text(end) for end in (found.value, found.low, found.high)]
    return [str(found.count), *ends, percent_text(None if row.plain()["low"] is None else found.relative)]


@click.command("compare", cls=Command)
@trials_argument
@click.option("--axis", metavar="AXIS", required=True, help="Varied parameter to which the two values belong.")
@click.option("--values", metavar="A,B", show_default="the only two", help="The two values to compare.")
@where_option
@metrics_option
@click.option("--ratios", is_flag=True, help="Print ratios B / A instead of differences.")
@level_option
@method_option
@form_options
def compare_command(
    place: Path,
    axis: str,
    values: str | None,
    conditions: list[tuple[str, str]],
    metrics: tuple[str, ...],
    ratios: bool,
    level: float,
    method: Method,
    form: str | None,
) -> None:
    """Compare two values A and B of one varied parameter, replica by replica.

    DIR is the folder of a study, or its Parquet file. Replicas are repetitions with other random numbers. Replica 1 of
    A and replica 1 of B have the same workload and failures, so their difference varies less than the results
    themselves.
    """
    from pipistrelle.studies.inference.reports import comparison

    trials = read_trials(place, conditions)
    axis = trials.axis(axis)
    first, second = two_values(trials.values(axis), values, axis, lambda text: trials.value(axis, text))
    rows = comparison(trials, axis, first, second, metrics, level=level, method=method)
    others = [name for name in trials.axes if name != axis]

    def tables() -> Iterator[tuple[str, list[str], list[list[str]]]]:
        by = f" by {others[-1]}" if others else ""
        how = f"{100 * level:g} %"
        for metric in dict.fromkeys(row.metric for row in rows):
            title = f"{metric}{by}: A = {axis} {first}, B = {second}, {how}"
            columns = (
                ["", "n", "B mean / A mean", "from", "to", "mean of B / A", "from", "to"]
                if ratios
                else ["", "n", "A", "B", "B - A", "from", "to", "% of A"]
            )
            cells = _ratio_cells if ratios else _difference_cells
            yield title, columns, grouped((row.cell, cells(row)) for row in rows if row.metric == metric)

    print_rows(form, [row.plain() for row in rows], tables())
    if any(row.pair.difference.count == 1 for row in rows):
        remark(form, _ALONE)
    for text in trials.remarks():
        remark(form, text)
    if unpaired := max(row.unpaired for row in rows):
        remark(form, f"of a pair of cells up to {unpaired:,} replicas have no figure in both: they are left out")


def two_values(known: "list[Value]", text: str | None, axis: str, value: Any) -> "tuple[Value, Value]":
    """Return the two values of the axis (a varied option) to compare: those in ``text``, or the only two that exist."""
    if text is None:
        if len(known) != 2:
            raise click.UsageError(f"{axis} has {len(known)} values: choose two with --values A,B.")
        return known[0], known[1]
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 2:
        raise click.UsageError(f"--values takes two values separated by a comma, not '{text}'.")
    first, second = (value(part) for part in parts)
    if first == second:
        raise click.UsageError("--values needs two different values.")
    return first, second


def _difference_cells(row: "PairRow") -> list[str]:
    pair = row.pair
    found = pair.difference
    numbers = [pair.first.value, pair.second.value, found.value, found.low, found.high]
    ratio = pair.ratio_of_means.value
    return [str(found.count), *map(number_text, numbers), percent_text(None if ratio is None else ratio - 1, "+")]


def _ratio_cells(row: "PairRow") -> list[str]:
    cells = [str(row.pair.difference.count)]
    for found in (row.pair.ratio_of_means, row.pair.mean_of_ratios):
        cells += [number_text(end) for end in (found.value, found.low, found.high)]
    return cells


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
    help="Value that --metric must reach, such as 2h or 0.8; repeatable.",
)
x_option = click.option(
    "--x",
    metavar="AXIS",
    show_default="repair, or the last axis",
    help="Numeric varied parameter: the search variable, or the x axis of the plot.",
)
by_option = click.option(
    "--by",
    metavar="AXIS",
    show_default="reliability_factor, or the first axis",
    help="Varied parameter; each of its values gives one curve.",
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
    show_default="the smallest",
    help="Value of --x at which the other curves are read.",
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
    """Find the repair time at which a result meets a target, or is equal for two failure rates.

    DIR is the folder of a study, or its Parquet file. The study varies the repair time and --reliability-factor; --x
    and --by choose other varied parameters.
    """
    from pipistrelle.studies.inference.crossing import Curves, break_even
    from pipistrelle.studies.inference.trials import label

    trials = read_trials(place, conditions)
    x, by = chosen_axes(trials, x, by)
    curves = Curves(trials, x, by, metric, level=level)
    where = 0 if at is None else curves.labels.index(trials.value(x, at))
    reached, met = break_even(curves, targets, where)
    if by is None and not targets:
        raise click.UsageError("there is only one curve: give a --target.")
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
        remark(form, _ALONE)


def _axis_text(least: float, greatest: float, timed: bool) -> Any:
    """Return a function that formats a value of an axis, or says that the value lies outside its range."""
    from pipistrelle.protocol.base.lengths import length_text

    def text(value: float | str | None) -> str:
        if value is None:
            return "-"
        if isinstance(value, str):
            mark, end = (">", greatest) if value == "above" else ("<", least)
            return f"{mark} {length_text(float(end)) if timed else number_text(float(end))}"
        return length_text(value) if timed else number_text(value)

    return text
