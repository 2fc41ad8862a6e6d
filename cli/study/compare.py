"""``pipistrelle study compare``: compare and rank the values of an axis.

An axis is a parameter that a study varies.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from pipistrelle.cli.options.fields import Choice
from pipistrelle.cli.options.sections import Command
from pipistrelle.cli.study.trials import (
    ALONE,
    form_options,
    grouped,
    level_option,
    marked,
    method_option,
    metrics_option,
    number_text,
    percent_text,
    print_rows,
    probability_text,
    read_trials,
    remark,
    trials_argument,
    where_option,
)
from pipistrelle.traces.errors import counted

if TYPE_CHECKING:
    from pipistrelle.models.samples.ranks import PairTest
    from pipistrelle.studies.inference.ranking import Blocks, Ranking
    from pipistrelle.studies.inference.reports import PairRow
    from pipistrelle.studies.inference.trials import TrialTable, Value

    _Table = tuple[str, list[str], list[list[str]]]

_TESTS: Final = {"t": "paired t test", "wilcoxon": "Wilcoxon's signed-rank test", "nemenyi": "Nemenyi's test"}
_BLOCKS: Final = ("replicas", "cells")


@click.command("compare", cls=Command)
@trials_argument
@click.option(
    "--axis",
    metavar="AXIS",
    required=True,
    help="Axis (parameter that the study varies) whose values to compare, such as policy.",
)
@click.option("--values", metavar="A,B,...", show_default="all", help="Values of --axis to compare, at least two.")
@where_option
@metrics_option
@click.option(
    "--ratios", is_flag=True, help="For values A and B: print the ratio of results B / A, not the difference B - A."
)
@click.option(
    "--test",
    type=Choice(list(_TESTS)),
    default="t",
    help="Significance test for each pair of values (t and wilcoxon: with Holm's correction).",
)
@click.option(
    "--blocks",
    type=Choice(_BLOCKS),
    default="replicas",
    help="What to rank: results of every repetition (replicas), or means over repetitions (cells).",
)
@click.option(
    "--best",
    type=Choice(["less", "more"]),
    show_default="more for utilisation, availability and completed jobs, otherwise less",
    help="Whether the lowest (less) or the highest (more) result ranks first.",
)
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
    test: "PairTest",
    blocks: "Blocks",
    best: Literal["less", "more"] | None,
    level: float,
    method: Literal["t", "bootstrap"],
    form: str | None,
) -> None:
    """Compare the values of a parameter that the study varies, such as schedulers.

    DIR is the folder of a study, or its Parquet file. A study repeats each simulation with different random numbers.
    Two values A and B are compared repetition by repetition, because repetitions with the same number have the same
    workload and failures. Three or more values are compared in all pairs, and ranked with Friedman's test.
    """
    from pipistrelle.studies.inference.gaps import gap_remarks
    from pipistrelle.studies.inference.ranking import ranking
    from pipistrelle.studies.inference.reports import all_pairs

    trials = read_trials(place, conditions)
    axis = trials.axis(axis)
    chosen = chosen_values(trials, axis, values)
    if len(chosen) == 2:
        given = click.get_current_context()
        for name in ("blocks", "best"):
            if given.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
                raise click.UsageError(f"--{name} is for a ranking, which needs at least three values.")
        if test == "nemenyi":
            raise click.UsageError("Nemenyi's test needs at least three values: choose another --test.")
    pairwise: Literal["t", "wilcoxon"] | None = None if test == "nemenyi" else test
    rows = all_pairs(trials, axis, chosen, metrics, level=level, method=method, test=pairwise)
    ranks = [
        ranking(trials, axis, chosen, metric, level=level, blocks=blocks, better=best)
        for metric in (trials.metrics(metrics) if len(chosen) > 2 else ())
    ]

    def tables() -> Iterator["_Table"]:
        for metric in dict.fromkeys(row.metric for row in rows):
            for one in ranks:
                if one.metric == metric:
                    yield _ranking_table(one)
                    if test == "nemenyi":
                        yield _nemenyi_table(one)
            if test != "nemenyi":
                yield _pairs_table(trials, axis, [row for row in rows if row.metric == metric], level, test, ratios)

    plain = [{"table": "pairs", **row.plain()} for row in rows if test != "nemenyi"]
    for one in ranks:
        plain += one.plain() + (_nemenyi_rows(one) if test == "nemenyi" else [])
    print_rows(form, plain, tables())
    for one in ranks:
        for text in _test_remarks(one, level):
            remark(form, text)
    if any(row.pair.difference.count == 1 for row in rows):
        remark(form, ALONE)
    for text in trials.remarks():
        remark(form, text)
    total = sum(len(cell.rows) for cell in trials.cells if cell.key[trials.axes.index(axis)] in chosen)
    for metric in dict.fromkeys(row.metric for row in rows):
        for text in gap_remarks(metric, (gap for row in rows if row.metric == metric for gap in row.gaps), total):
            remark(form, text)
    if unpaired := max(row.unpaired for row in rows):
        remark(
            form, f"left out: up to {counted(unpaired, 'replica')} of a pair of cells, because one cell has no value"
        )


def chosen_values(trials: "TrialTable", axis: str, text: str | None) -> "list[Value]":
    """Return the values of an axis (varied parameter) to compare.

    These are all values, or those that ``text`` lists.
    """
    if text is None:
        return trials.values(axis)
    parts = [part.strip() for part in text.split(",")]
    if len(parts) < 2:
        raise click.UsageError(f"--values takes two or more values separated by commas, not '{text}'.")
    found = [trials.value(axis, part) for part in parts]
    if len(set(found)) < len(found):
        raise click.UsageError("--values names a value twice: give different values.")
    return found


def _pairs_table(
    trials: "TrialTable", axis: str, rows: "Sequence[PairRow]", level: float, test: str, ratios: bool
) -> "_Table":
    from pipistrelle.studies.inference.trials import label

    metric, several = rows[0].metric, len({row.values for row in rows}) > 1
    others = [name for name in trials.axes if name != axis]
    how = f"{100 * level:g} %"
    # the correction counts every pair of the metric, in all cells
    p = "p (Holm)" if len(rows) > 1 else "p"
    if several:
        what = f"B / A for pairs of {axis}" if ratios else f"B - A for pairs of {axis}"
        title = f"{metric}: {what}, {how}, {_TESTS[test]}"
    else:
        first, second = map(label, rows[0].values)
        by = f" by {others[-1]}" if others else ""
        title = f"{metric}{by}: A = {axis} {first}, B = {second}, {how}"
    if ratios and several:
        columns = ["", "n", "mean B / mean A", "from", "to", p]
    elif ratios:
        columns = ["", "n", "mean B / mean A", "from", "to", "mean of B / A", "from", "to", p]
    elif several:
        columns = ["", "n", "B - A", "from", "to", "% of A", p]
    else:
        columns = ["", "n", "A", "B", "B - A", "from", "to", "% of A", p]
    cells = []
    for row in rows:
        cell: dict[str, Value] = dict(row.cell)
        if several:
            cell["pair"] = " - ".join(label(one) for one in reversed(row.values))
        figures = _ratio_cells(row, short=several) if ratios else _difference_cells(row, means=not several)
        cells.append((cell, [*figures, probability_text(row.adjusted)]))
    return title, columns, grouped(cells)


def _difference_cells(row: "PairRow", *, means: bool) -> list[str]:
    pair = row.pair
    found = pair.difference
    apart, *ends = (number_text(end) for end in (found.value, found.low, found.high))
    count, apart = marked(found.count, row.unpaired if row.gaps else 0, apart)
    both = [number_text(pair.first.value), number_text(pair.second.value)] if means else []
    ratio = pair.ratio_of_means.value
    return [count, *both, apart, *ends, percent_text(None if ratio is None else ratio - 1, "+")]


def _ratio_cells(row: "PairRow", *, short: bool) -> list[str]:
    cells: list[str] = []
    for found in (row.pair.ratio_of_means, *(() if short else (row.pair.mean_of_ratios,))):
        value, *ends = (number_text(end) for end in (found.value, found.low, found.high))
        count, value = marked(row.pair.difference.count, row.unpaired if row.gaps else 0, value)
        cells += [value, *ends] if cells else [count, value, *ends]
    return cells


def _ranking_table(one: "Ranking") -> "_Table":
    from pipistrelle.studies.inference.trials import label

    title = f"{one.metric}: ranks of {one.axis} in {one.test.blocks:,} blocks ({one.blocks}), {one.better} is better"
    star = "*" if one.left_out and one.gaps else ""
    lines = [
        [label(place.value), f"{place.rank:.2f}{star}", str(place.best), place.letters or "-"]
        for place in one.standings
    ]
    return title, ["", "mean rank", "best in", "letters"], lines


def _nemenyi_rows(one: "Ranking") -> list[dict[str, Any]]:
    test = one.test
    return [
        {
            "table": "pairs",
            "metric": one.metric,
            "a": one.values[first],
            "b": one.values[second],
            "rank_difference": test.ranks[second] - test.ranks[first],
            "p_nemenyi": None if test.pairs is None else test.pairs[first][second],
        }
        for first, second in combinations(range(len(one.values)), 2)
    ]


def _nemenyi_table(one: "Ranking") -> "_Table":
    from pipistrelle.studies.inference.trials import label

    lines = [
        [f"{label(row['b'])} - {label(row['a'])}", f"{row['rank_difference']:+.2f}", probability_text(row["p_nemenyi"])]
        for row in _nemenyi_rows(one)
    ]
    return f"{one.metric}: mean rank of B less that of A, Nemenyi's test", ["", "B - A", "p"], lines


def _test_remarks(one: "Ranking", level: float) -> list[str]:
    test = one.test
    if test.p is None or test.critical is None or test.statistic is None:
        return [f"{one.metric}: one block has ranks, but no test: more replicas or cells are needed"]
    count = len(one.values) - 1
    lines = [
        f"{one.metric}: Friedman's chi-squared({count}) = {test.statistic:.4g}, p = {_p_text(test.p)}.",
        f"  Mean ranks {test.critical:.3g} apart differ (Nemenyi, {100 * level:g} %), so they have no common letter.",
    ]
    if one.left_out:
        lines.append(
            f"  left out: {counted(one.left_out, 'block')}, because the metric is unknown for one of the values"
        )
    return lines


def _p_text(p: float) -> str:
    return f"{p:.2g}" if p >= 1e-4 else f"{p:.1e}"
