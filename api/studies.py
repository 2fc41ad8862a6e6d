"""Run studies, and summarise their trials.

A study consists of many simulations, called trials.
"""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from msgspec.structs import fields

from pipistrelle.api.options import Name, OptionError, keyword, path_text, plain
from pipistrelle.api.plots import axes_of
from pipistrelle.api.progress import study_progress
from pipistrelle.api.tables import Table, imported
from pipistrelle.models.samples.estimates import LEVEL, StatisticsError
from pipistrelle.models.samples.ranks import PairTest
from pipistrelle.models.workloads.pictures import INCHES, Font
from pipistrelle.protocol.base.errors import did_you_mean
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.studies.inference.ranking import Blocks, ranking
from pipistrelle.studies.inference.reports import all_pairs, summary
from pipistrelle.studies.inference.trials import TrialTable, label
from pipistrelle.studies.pictures.categories import draw_bars
from pipistrelle.studies.pictures.choices import Kind, PictureChoice, draw_study
from pipistrelle.studies.pictures.style import PictureLook
from pipistrelle.studies.trials.results import Results
from pipistrelle.studies.trials.study import Engine, Study, check_tables
from pipistrelle.traces.files import write_trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Interval = Literal["t", "bootstrap"]
Better = Literal["less", "more"]
_SUFFIXES: Final = (".svg", ".pdf", ".png")


def _check_shares(**shares: float | None) -> None:
    """Raise OptionError for the first keyword that is not between 0 and 1.

    None is allowed.
    """
    for name, share in shares.items():
        if share is not None and not (isinstance(share, int | float) and 0 < share < 1):
            raise OptionError(f"{name}: an invalid value", expected="a number between 0 and 1", found=repr(share))


def _check(**words: tuple[str, Any]) -> None:
    """Raise OptionError for the first keyword whose word is not allowed.

    A word is allowed if it is a value of the keyword's Literal type.

    Args:
        words: {keyword: (word, Literal type)}.
    """
    for name, (word, kind) in words.items():
        known = list(get_args(kind))
        if word not in known:
            raise OptionError(f"there is no {name} {word!r}", hint=did_you_mean(str(word), known))


def _is_size(size: object) -> bool:
    return (
        isinstance(size, tuple | list)
        and len(size) == 2
        and all(isinstance(side, int | float) and INCHES[0] <= side <= INCHES[1] for side in size)
    )


class Picture:
    """A picture of a study's results.

    `StudyResults.picture` returns it, and notebooks show it.

    Args:
        draw: returns the content of the picture file for a suffix, such as ``.svg``.
    """

    def __init__(self, draw: Callable[[str], bytes]) -> None:
        self._draw = draw
        self._svg = draw(".svg")

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the picture as ``.svg``, ``.pdf`` or ``.png``, and return its path.

        Raises:
            PipistrelleError: the suffix is not supported, or the file cannot be written.
        """
        target = Path(path)
        if target.suffix not in _SUFFIXES:
            raise OptionError(
                "a picture cannot have this suffix",
                where=str(target),
                expected=", ".join(_SUFFIXES),
                found=target.suffix or "none",
            )
        write_trace(target, [self._svg if target.suffix == ".svg" else self._draw(target.suffix)])
        return target

    def _repr_svg_(self) -> str:
        return self._svg.decode()


class StudyResults:
    """The result of `study` and `open_study`: the trials of a study.

    Attributes:
        trials: a table with one row per trial; docs/how-to/studies.md describes its columns.
    """

    def __init__(self, results: Results) -> None:
        self._results: Results | None = results
        self.trials = Table(results.table)
        self._table = TrialTable.of(results.table)

    @classmethod
    def of(cls, columns: Mapping[str, Sequence[Any]]) -> "StudyResults":
        """Make study results from your own table of trials.

        Args:
            columns: {name: values}: the axes, then ``replica``, then the metrics; all columns have the same length.

        Raises:
            PipistrelleError: there is no column ``replica``, a combination occurs twice, or pyarrow is not installed.
        """
        lengths = {str(name): len(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            found = ", ".join(f"{name} {length}" for name, length in lengths.items())
            raise StatisticsError("columns differ in length", where="the trials", expected="one length", found=found)
        return cls._made(TrialTable(columns))

    @classmethod
    def _made(cls, table: TrialTable) -> "StudyResults":
        arrow = imported("pyarrow", "a table")
        found = cls.__new__(cls)
        found._results, found._table = None, table
        found.trials = Table(arrow.table({name: list(column) for name, column in table.columns.items()}))
        return found

    @property
    def axes(self) -> list[str]:
        """The names of the axes: the options that vary between the cells of the study."""
        return list(self._table.axes)

    @property
    def stalled(self) -> int:
        """The number of trials whose run stalled; they have no metrics."""
        reasons = self._table.columns.get("reason", ())
        return sum(reason == "stalled" for reason in reasons)

    def where(self, **values: object) -> "StudyResults":
        """Return only the trials with the given values of axes.

        For example, ``where(scheduler="easy")`` returns the trials of this scheduler.

        Raises:
            PipistrelleError: there is no such axis or value, or no trial is left.
        """
        kept = self._table.only([(name, str(value)) for name, value in values.items()])
        return self._made(kept)

    def summary(
        self,
        *metrics: str,
        level: float = LEVEL,
        interval: Interval = "t",
        quantile: float | None = None,
    ) -> Table:
        """Return the mean of each metric in each cell, with its confidence interval.

        A cell is a combination of the axes' values. ``missing`` counts the trials without the metric, such as stalled
        trials. The mean does not include them.

        Args:
            metrics: columns of `trials`; default: mean wait, mean bounded slowdown and utilisation.
            level: confidence level.
            interval: method for the confidence interval: Student's ``t``, or a seeded ``bootstrap``.
            quantile: return this quantile of the trials instead of the mean.

        Raises:
            PipistrelleError: there is no such metric, or scipy or pyarrow is not installed.
        """
        _check(interval=(interval, Interval))
        _check_shares(level=level, quantile=quantile)
        rows = summary(self._table, metrics, level=level, method=interval, quantile=quantile)
        return Table.of([row.plain() for row in rows])

    def compare(
        self,
        axis: str,
        *values: object,
        metrics: str | Sequence[str] = (),
        level: float = LEVEL,
        interval: Interval = "t",
        test: PairTest = "t",
    ) -> Table:
        """Return the differences between each pair of values of an axis.

        The values are paired by replica. ``a`` and ``b`` name the pair. ``difference`` is b minus a, and ``ratio`` is b
        over a, each with its confidence interval. ``p`` is the p-value of the paired test. ``p_holm`` is adjusted for
        all pairs of the metric by Holm's method.

        Args:
            axis: an axis of the study, such as ``scheduler``.
            values: two or more values to compare; default: all.
            metrics, level, interval: as for `summary`.
            test: the paired ``t`` test, or Wilcoxon's signed-rank test (``wilcoxon``).

        Raises:
            PipistrelleError: there is no such axis, value or metric, or scipy or pyarrow is not installed.
        """
        _check(interval=(interval, Interval), test=(test, PairTest))
        _check_shares(level=level)
        name = self._table.axis(axis)
        chosen = list(dict.fromkeys(self._table.value(name, str(value)) for value in values))
        if values and len(chosen) < 2:
            raise OptionError("compare needs two values or more", found=label(chosen[0]))
        columns = [metrics] if isinstance(metrics, str) else list(metrics)
        rows = all_pairs(
            self._table, name, chosen or self._table.values(name), columns, level=level, method=interval, test=test
        )
        return Table.of([_flat(row.plain()) for row in rows])

    def ranking(
        self,
        axis: str,
        metric: str = "mean_wait",
        *,
        blocks: Blocks = "replicas",
        better: Better | None = None,
        level: float = LEVEL,
    ) -> Table:
        """Rank the values of an axis by their mean rank, best first.

        The table has the results of Friedman's and Nemenyi's tests. Values that share a letter do not differ
        significantly.

        Args:
            axis: an axis with at least three values, such as ``scheduler``.
            metric: a column of `trials`.
            blocks: ``replicas`` ranks the values in each replica of each cell; ``cells`` ranks their means in each
                cell.
            better: whether ``less`` or ``more`` is better; the default depends on the metric.
            level: confidence level.

        Raises:
            PipistrelleError: there is no such axis or metric, too few values, or a package is not installed.
        """
        _check(blocks=(blocks, Blocks), better=(better or "less", Better))
        _check_shares(level=level)
        name = self._table.axis(axis)
        values = self._table.values(name)
        found = ranking(self._table, name, values, metric, level=level, blocks=blocks, better=better)
        return Table.of(found.plain())

    def plot(
        self,
        metric: str = "mean_wait",
        ax: "Axes | None" = None,
        *,
        x: str | None = None,
        by: str | None = None,
        level: float = LEVEL,
    ) -> "Axes":
        """Draw the means of a metric as bars with confidence intervals.

        The matplotlib axes are returned. If a mean leaves out trials, its bar is hatched and shows how many trials it
        has. `picture` offers more kinds of pictures, and embeds fonts as papers need them.

        Args:
            metric: a column of `trials`.
            ax: axes to draw on; default: a new figure.
            x: the study's axis that gives one group of bars per value; default: the first.
            by: the study's axis that gives one bar per value in each group; default: the other axis, if there are two.
            level: confidence level.

        Raises:
            PipistrelleError: there is no such axis or metric, other axes vary, or a package is not installed.
        """
        _check_shares(level=level)
        over, groups = self._drawn(x, by)
        axes = axes_of(ax)
        draw_bars(axes, self._table, x=over, by=groups, metric=metric, level=level)
        return axes

    def picture(
        self,
        kind: Kind | None = None,
        metrics: str | Sequence[str] = (),
        *,
        x: str | None = None,
        by: str | None = None,
        panels: str | None = None,
        targets: Sequence[float] = (),
        axis: str | None = None,
        values: Sequence[object] | None = None,
        level: float = LEVEL,
        log_scale: bool = False,
        font: Font = "sans",
        size: tuple[float, float] | None = None,
        title: str | None = None,
    ) -> "Picture":
        """Draw a picture as ``pipistrelle study plot`` does.

        Notebooks show the returned picture, and `Picture.save` writes it.

        Args:
            kind: ``curves``, ``normalised``, ``bars``, ``boxes``, ``ecdf`` or ``sizes``. The default is curves if an
                axis is numeric, otherwise bars.
            metrics: columns of `trials`; only bars and boxes have several.
            x: the study's axis that runs along the picture.
            by, panels: the axis with one colour per value, and the axis with one panel per value.
            targets: values of the metric to mark in curves.
            axis, values: for ``sizes``: an axis, and its two values to compare.
            level: confidence level.
            log_scale: make the metric's axis logarithmic; not for ``ecdf`` and ``sizes``.
            font: ``stix`` or ``cm`` suit LaTeX.
            size: width and height in inches.
            title: the title; "" for none; default: the axes that vary.

        Raises:
            PipistrelleError: there is no such axis or metric, options do not go together, or matplotlib is not
                installed.
        """
        _check(kind=(kind or "bars", Kind), font=(font, Font))
        _check_shares(level=level)
        if size is not None and not _is_size(size):
            expected = f"width and height in inches, from {INCHES[0]:g} to {INCHES[1]:g}, such as (3.5, 2.5)"
            raise OptionError("size: an invalid value", where="picture", expected=expected, found=repr(size))
        table = self._table
        chosen = None
        if axis is not None and values is not None:
            chosen = [table.value(table.axis(axis), str(one)) for one in values]
        names = (metrics,) if isinstance(metrics, str) else tuple(metrics)

        def draw(suffix: str) -> bytes:
            look = PictureLook(suffix=suffix, font=font, size=size, title=title, log_scale=log_scale)
            try:
                return draw_study(
                    table, look, kind, metrics=names, x=x, by=by, panels=panels, targets=targets, axis=axis,
                    values=chosen, level=level,
                )[0]  # fmt: skip
            except PictureChoice as error:  # it names options of the command
                raise OptionError(
                    str(error).replace("--log-scale", "log_scale").replace("--", ""), where="picture"
                ) from None

        return Picture(draw)

    def _drawn(self, x: str | None, by: str | None) -> tuple[str, str | None]:
        table = self._table
        if not table.axes:
            raise StatisticsError("the study has no axis, so there is nothing to draw", where=table.where)
        over = table.axes[0] if x is None else table.axis(x)
        rest = [name for name in table.axes if name != over]
        groups = rest[0] if by is None and rest else None if by is None else table.axis(by)
        if more := [name for name in rest if name != groups]:
            raise StatisticsError(
                "more than two axes vary",
                where=table.where,
                found=", ".join(table.axes),
                hint=f"Choose a value of the others first: where({more[0]}=...).",
            )
        return over, groups

    def __len__(self) -> int:
        return len(self._table)

    def __repr__(self) -> str:
        return repr(self.trials if self._results is None else self._results)

    def _repr_html_(self) -> str:
        return self.trials._repr_html_() if self._results is None else self._results._repr_html_()


def study(
    description: Name | Study | None = None,
    *,
    run: Mapping[str, Any] | None = None,
    axes: Mapping[str, Any] | None = None,
    replicas: int | Mapping[str, Any] = 1,
    metrics: Mapping[str, Any] | None = None,
    engine: Engine = "auto",
    out: str | PathLike[str] | None = None,
    overwrite: bool = False,
    jobs: int | None = None,
    progress: bool | None = None,
) -> StudyResults:
    """Run a study, or continue an interrupted one, and return its trials.

    Args:
        description: a study's file or a `Study`; without it, the next five arguments describe the study.
        run: options of all runs, named as in `RunKeywords`, such as ``{"platform": "kth-sp2"}``.
        axes: {option: values}; each combination of values is a cell. A new name takes a list of tables of options, each
            with a ``name``: ``{"policy": [{"name": "mine", "scheduler": "mine.py:Mine"}]}``.
        replicas: number of trials per cell with different random numbers, or the table ``replicas`` of a study's file.
        metrics: the table ``metrics`` of a study's file, such as ``{"warm_up": "30d"}``.
        engine: ``auto`` uses the compiled kernel if possible, ``reference`` never uses it; ``fill`` fills clusters of
            GPU nodes with pods instead of simulating runs.
        out: folder for the trials; an interrupted study continues there. Without a folder nothing is kept.
        overwrite: replace the results of another study in ``out``.
        jobs: number of worker processes; default: one per processor, or this process alone if there are Python objects.
        progress: show a progress bar; default: in notebooks and on terminals.

    Raises:
        PipistrelleError: the study is wrong, a trial failed, or a package is not installed. Ended trials are kept.
    """
    if description is not None and (run or axes or metrics or replicas != 1 or engine != "auto"):
        raise OptionError("a study has a description, or the arguments that describe it, but not both", where="study")
    if description is None:
        check_tables("study", run=run, axes=axes, metrics=metrics)
        told = Study(_options(run), _axes(axes), _replicas(replicas), _table(metrics), engine)
    else:
        told = (
            description
            if isinstance(description, Study)
            else Study.read(path_text(description, "description", "study"))
        )
    if jobs is not None and not (isinstance(jobs, int) and jobs >= 1):
        raise OptionError("jobs: an invalid value", where="study", expected="a whole number >= 1", found=repr(jobs))
    folder = None if out is None else Path(path_text(out, "out", "study"))
    from pipistrelle.studies.workers.campaign import run as carry_out  # slow to import

    with study_progress(progress) as watch:
        found = carry_out(told, folder, jobs=jobs, overwrite=overwrite, watch=watch)
    return StudyResults(found)


def open_study(path: str | PathLike[str]) -> StudyResults:
    """Read the trials of a study from its folder or Parquet file.

    Raises:
        PipistrelleError: there are no such trials, or pyarrow is not installed.
    """
    return StudyResults(Results.read(Path(path_text(path, "path", "open_study"))))


def _options(values: Mapping[str, Any] | None) -> dict[str, Any]:
    """Convert keywords of `run` to {command-line name: plain value}.

    Python objects stay as they are.
    """
    known = {one.name: one for one in fields(RunSpec)}
    found = {}
    for name, value in (values or {}).items():
        one = known.get(name.replace("-", "_"))
        if one is None or one.name == "scheduler":
            found[_dashed(name)] = plain(value)
        else:
            found[one.encode_name] = keyword(one, value, "study")
    return found


def _axes(values: Mapping[str, Any] | None) -> dict[str, Any]:
    """Convert the argument ``axes`` of `study` to the form of a study's file.

    The values of an axis whose name is not an option are tables of options.
    """
    options = {one.name for one in fields(RunSpec)}
    found: dict[str, Any] = {}
    for name, value in (values or {}).items():
        is_new = name.replace("-", "_").partition(".")[0] not in options
        tables = isinstance(value, list | tuple) and is_new
        told = [_options(one) if isinstance(one, Mapping) else one for one in value] if tables else value
        found[_dashed(name)] = plain(told)
    return found


def _table(values: Mapping[str, Any] | None) -> dict[str, Any]:
    """Convert keywords to a table of a study's file.

    Names get dashes, also in inner tables.
    """
    return {
        _dashed(name): _table(value) if isinstance(value, Mapping) else plain(value)
        for name, value in (values or {}).items()
    }


def _dashed(name: str) -> str:
    return name.removesuffix("_").replace("_", "-")


def _replicas(replicas: int | Mapping[str, Any]) -> int | Mapping[str, Any]:
    if isinstance(replicas, int):
        return replicas
    check_tables("study", replicas=replicas)
    return _table(replicas)


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in row.items():
        if not isinstance(value, Mapping):
            found[name] = value
            continue
        short = {"ratio_of_means": "ratio", "mean_of_ratios": "mean_ratio"}.get(name, name)
        found |= {short if part == "value" else f"{short}_{part}": one for part, one in value.items()}
    return found
