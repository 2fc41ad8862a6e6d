"""The common parts of a study's pictures: labels, panels and marks of gaps."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct

from pipistrelle.models.samples.estimates import StatisticsError
from pipistrelle.models.workloads.pictures import Font, drawn_as
from pipistrelle.protocol.base.errors import printable
from pipistrelle.studies.inference.gaps import Gap, counted_causes, once
from pipistrelle.studies.inference.trials import Value, label
from pipistrelle.studies.inference.words import MetricWords, axis_words, words_of
from pipistrelle.traces.files import trace_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKERS: Final = "osD^vP*X"
#: maximum number of panels side by side
_MOST_ACROSS: Final = 4
#: units of an axis: (least value that it suits and its size, both in the column's unit, and its name)
_TIMES: Final = ((3 * 86400.0, 86400.0, "days"), (3 * 3600.0, 3600.0, "hours"), (180.0, 60.0, "minutes"))
_SCALES: Final = {
    "s": (*_TIMES, (0.0, 1.0, "seconds")),
    "share": ((0.0, 0.01, "%"),),
    "%": ((0.0, 1.0, "%"),),
    "node seconds": ((0.0, 3600.0, "node-hours"),),
    "unit seconds": ((0.0, 3600.0, "unit-hours"),),
    "kWh": ((3000.0, 1000.0, "MWh"), (0.0, 1.0, "kWh")),
    "": ((0.0, 1.0, ""),),
}
_LONGEST_NOTE: Final = 140
#: maximum number of selected values of an axis that a title names
_MOST_SELECTED: Final = 4
#: suffixes of file names that are shown without folder and suffix
_FILES: Final = (".swf", ".json", ".gz", ".xz", ".toml")


class PictureLook(Struct, frozen=True, kw_only=True):
    """How a picture is drawn: file type, font, size and title.

    Attributes:
        suffix: the file's type: ``.svg``, ``.pdf`` or ``.png``.
        font: ``sans``, ``stix`` or ``cm``.
        size: width and height in inches; None: as large as the panels need.
        title: the picture's title; "" for no title, None for a title that says what varies.
        selection: the second line of that title, which names the selected trials; "" if all trials are drawn.
        log_scale: the axis of the metric is logarithmic.
    """

    suffix: str
    font: Font = "sans"
    size: tuple[float, float] | None = None
    title: str | None = None
    selection: str = ""
    log_scale: bool = False


class AxisScale(Struct, frozen=True):
    """The unit in which an axis shows values.

    Values are divided by ``unit``; ``text`` labels the axis.
    """

    unit: float
    text: str

    @classmethod
    def of(cls, words: MetricWords, values: Iterable[float | None]) -> "AxisScale":
        """Return the unit, such as hours, that suits a metric's greatest finite value."""
        most = max((abs(one) for one in values if one is not None and math.isfinite(one)), default=0.0)
        _, unit, name = next(one for one in _SCALES[words.unit] if most >= one[0])
        return cls(unit, f"{words.name} ({name})" if name else words.name)


def short_labels(values: Sequence[Value]) -> list[str]:
    """Return the values of an axis as short texts.

    Paths become file names, unless two file names are equal.
    """
    texts = [label(value) for value in values]
    names = [trace_name(text).removesuffix(".toml") if "/" in text or text.endswith(_FILES) else text for text in texts]
    return names if len(set(names)) == len(names) else texts


def what_varies(metrics: Sequence[str], axes: Iterable[str | None]) -> str:
    """Return a picture's title from its metrics and axes.

    An example is ``mean wait by log and policy``.
    """
    names = [axis_words(axis) for axis in axes if axis is not None]
    by = f"by {', '.join(names[:-1])}{' and ' if len(names) > 1 else ''}{names[-1]}" if names else ""
    what = words_of(metrics[0]).name if len(metrics) == 1 else ""
    return f"{what} {by}".strip()


def selection_text(selection: Mapping[str, Sequence[Value]]) -> str:
    """Return the values of axes to which trials are restricted, in words.

    An example is ``log kth, policy fcfs or easy``.
    """
    parts = []
    for axis, values in selection.items():
        texts = short_labels(values)
        rest = len(texts) - _MOST_SELECTED
        texts = texts if rest <= 0 else [*texts[:_MOST_SELECTED], f"{rest} more"]
        parts.append(f"{axis_words(axis)} {' or '.join(texts)}")
    return ", ".join(parts)


def picture(
    look: PictureLook,
    draw: Callable[["Figure"], None],
    *,
    size: tuple[float, float],
    title: str,
    gaps: Sequence[Gap] = (),
    mark: str = "",
) -> bytes:
    """Return a picture with its title, and with a note about trials without a value.

    Args:
        look: the file type, font, size and title that the user chose.
        draw: draws the panels on a figure.
        size, title: the picture's size in inches and its title, if ``look`` has none.
        gaps: the trials without a value of the metric. The note names their causes.
        mark: words for the note, such as ``hollow``. They say how the picture marks a mean over only some of the
            replicas. Without such a mean, this is "".

    Raises:
        PipistrelleError: matplotlib is not installed.
    """
    text = f"{title}\n{look.selection}".strip() if look.title is None else look.title

    def whole(figure: "Figure") -> None:
        draw(figure)
        if text:
            figure.suptitle("\n".join(map(printable, text.split("\n"))), parse_math=False, fontsize=9)
        if gaps:
            figure.supxlabel(_note(gaps, mark), parse_math=False, fontsize=6)

    width, height = look.size or size
    return drawn_as(look.suffix, whole, width, height, look.font)


def _note(gaps: Sequence[Gap], mark: str) -> str:
    kinds: dict[str, int] = {}
    trials = once(gaps)
    for cause, count in counted_causes(trials).items():
        kind = cause.partition(":")[0]
        kinds[kind] = kinds.get(kind, 0) + count
    causes = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())
    text = f"{mark}{': ' if mark else ''}{len(trials):,} trials have no value ({causes})"
    return text if len(text) <= _LONGEST_NOTE else f"{text[:_LONGEST_NOTE]}..."


def panels_of(figure: "Figure", rows: int, columns: int, *, share: bool = False) -> Iterator[tuple[int, int, "Axes"]]:
    """Add a panel (axes) for each row and column to a figure.

    Yield (row, column, axes) of each. A single long row is broken into several rows.

    Args:
        share: all panels have the same scales.
    """
    across, down = shape_of(rows, columns)
    first: Axes | None = None
    for place in range(rows * columns):
        row, column = divmod(place, columns)
        at = place if rows == 1 else row * across + column
        other = first if share else None
        axes = figure.add_subplot(down, across, at + 1, sharex=other, sharey=other)
        first = first or axes
        yield row, column, axes


def shape_of(rows: int, columns: int) -> tuple[int, int]:
    """Return how many panels are drawn side by side, and in how many rows.

    One long row of panels is broken into several rows.
    """
    if rows > 1:
        return columns, rows
    across = min(columns, _MOST_ACROSS)
    return across, -(-columns // across)


def size_of(rows: int, columns: int, *, width: float, height: float) -> tuple[float, float]:
    """Return the size of a figure, given the width and height of one panel.

    All lengths are in inches.
    """
    across, down = shape_of(rows, columns)
    return (width if across == 1 else 0.5 + 0.62 * width * across, 0.4 + height * (1.0 if down == 1 else 0.8 * down))


def mark_missing(
    axes: "Axes", x: float, y: float | None, known: int, every: int, colour: str = "C3", *, aside: float = 0.0
) -> None:
    """Write how many replicas of a cell have a value, if some lack one.

    The text stands above the mean, or at the foot of the axes if the cell has no mean.

    Args:
        y: the mean; None: no replica has a value, or their mean cannot be drawn.
        known, every: number of replicas with a value, and of all replicas.
        aside: how far (points) the text at the foot is moved to the right.
    """
    if every == 0:
        return
    if y is None or known == 0:
        axes.annotate(
            f"none of {every}" if known == 0 else "no first value", (x, 0.02), xycoords=("data", "axes fraction"),
            xytext=(aside, 0), textcoords="offset points", ha="center", va="bottom", rotation=90, fontsize=6,
            color=colour,
        )  # fmt: skip
    elif known == every:
        return
    else:
        axes.annotate(
            f"{known} of {every}", (x, y), xytext=(0, 2), textcoords="offset points", ha="center", va="bottom",
            fontsize=6, color=colour,
        )  # fmt: skip


def log_scaled(values: Iterable[float]) -> bool:
    """Return whether values suit a logarithmic scale.

    They must be positive and span enough orders of magnitude.
    """
    known = [value for value in values if math.isfinite(value)]
    positive = [value for value in known if value > 0]
    return bool(known) and len(positive) == len(known) and max(positive) > 100 * min(positive)


def check_log_scale(look: PictureLook, values: Iterable[float], metric: str, where: str) -> None:
    """Raise StatisticsError if a logarithmic axis is not possible.

    It is not possible if a value of the metric is not above 0.
    """
    least = min(values, default=1.0)
    if look.log_scale and least <= 0:
        raise StatisticsError(
            f"a logarithmic axis cannot show all values of '{metric}'", where=where, expected="values above 0",
            found=f"{least:g}", hint="Draw them on a linear axis.",
        )  # fmt: skip


def offsets(count: int, *, whole: float = 0.8) -> np.ndarray:
    """Return the horizontal offsets of ``count`` bars that are drawn side by side.

    Offsets are measured from the middle of the bars, which together have the width ``whole``.
    """
    return (np.arange(count) - (count - 1) / 2) * whole / count
