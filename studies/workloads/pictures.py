"""Pictures of a workload: arrivals as text, and jobs by size and run time and arrivals as SVG."""

from collections.abc import Sequence
from typing import Any, Final
from xml.sax.saxutils import escape

import numpy as np

from pipistrelle.protocol.base.errors import printable
from pipistrelle.studies.workloads.summary import shares

_SHADES: Final = " .:-=+*#%@"
#: colours of a cell from few jobs to many, and of the text on it
_LIGHT: Final = (247, 251, 255)
_DARK: Final = (8, 48, 107)
_CELL: Final = (62, 22)  # width, height of a cell by size and run time, px
_HOUR: Final = (24, 22)  # of an hour of a weekday
_LEFT: Final = 130
_GAP: Final = 56
_FONT: Final = "font-family='DejaVu Sans, Arial, sans-serif'"


def arrivals_text(arrivals: dict[str, Any]) -> list[str]:
    """Return submissions by weekday and hour as lines, darker for more; `arrivals` as `summarise` has them.

    Shades go by the square root, so that few are seen beside many.
    """
    counts = np.array(arrivals["counts"], dtype=np.int64)
    shade = np.ceil(np.sqrt(counts / max(int(counts.max()), 1)) * (len(_SHADES) - 1)).astype(np.int64)
    lines = [
        f"{day} |{''.join(2 * _SHADES[cell] for cell in row)}| {int(total):>9,}"
        for day, row, total in zip(arrivals["weekdays"], shade.tolist(), counts.sum(axis=1), strict=True)
    ]
    scale = "".join(f"{hour:<12}" for hour in range(0, 24, 6))
    return [*lines, f"     {scale}", f"     the busiest hour of the week has {int(counts.max()):,} jobs"]


def svg(figures: dict[str, Any]) -> str:
    """Return a picture of a workload, whose figures are as `summarise` has them, as the text of an SVG file.

    Above are the jobs by size and run time in percent, as in figures 5 and 6 of paper 000; below, if the trace has
    dates, submissions by weekday and hour. Without jobs there is the heading alone.
    """
    parts: list[str] = []
    width, top = _LEFT + 24 * _HOUR[0] + 60, 40
    name = printable(str(figures["name"]))
    parts.append(_text(width / 2, 24, f"{name}: {figures['runnable']:,} jobs", size=15, anchor="middle"))
    grid = figures["by_size_and_runtime"]
    if grid is not None:
        counts = np.array(grid["counts"], dtype=np.int64)[::-1]  # large jobs at the top
        top = _heat(
            parts,
            top,
            counts,
            grid["sizes"][::-1],
            _runtime_names(grid["runtimes_below"]),
            _CELL,
            "units",
            percent=True,
        )
        parts.append(_text(width / 2, top + 14, "run time; percent of the jobs", anchor="middle"))
        top += _GAP
    arrivals = figures["arrivals"]
    if arrivals is not None:
        counts = np.array(arrivals["counts"], dtype=np.int64)
        hours = [str(hour) if hour % 3 == 0 else "" for hour in range(24)]
        top = _heat(parts, top, counts, arrivals["weekdays"], hours, _HOUR, "weekday")
        parts.append(_text(width / 2, top + 14, f"submissions by hour ({figures['zone']})", anchor="middle"))
        top += _GAP
    head = (
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{top}' viewBox='0 0 {width} {top}' {_FONT}>"
    )
    back = f"<rect width='{width}' height='{top}' fill='white'/>"
    return "\n".join([head, back, *parts, "</svg>", ""])


def _runtime_names(bounds: Sequence[str]) -> list[str]:
    return [f"< {bound}" if bound != "more" else "more" for bound in bounds]


def _heat(
    parts: list[str],
    top: float,
    counts: np.ndarray[Any, np.dtype[np.int64]],
    rows: Sequence[str],
    columns: Sequence[str],
    cell: tuple[int, int],
    heading: str,
    *,
    percent: bool = False,
) -> int:
    """Add a table of shaded cells with totals of rows, and those of columns below; return where it ends."""
    wide, high = cell
    share, most = shares(counts), max(int(counts.max()), 1)
    y = top + high
    parts.append(_text(_LEFT - 8, y - 7, heading, anchor="end"))
    for column, name in enumerate(columns):
        parts.append(_text(_LEFT + (column + 0.5) * wide, y - 7, name, anchor="middle"))
    parts.append(_text(_LEFT + len(columns) * wide + 8, y - 7, "all, %"))
    for row, name in enumerate(rows):
        parts.append(_text(_LEFT - 8, y + 0.7 * high, name, anchor="end"))
        for column in range(len(columns)):
            x, depth = _LEFT + column * wide, float(np.sqrt(counts[row, column] / most))
            parts.append(
                f"<rect x='{x}' y='{y:g}' width='{wide - 1}' height='{high - 1}' fill='{_colour(depth)}'>"
                f"<title>{int(counts[row, column]):,} jobs</title></rect>"
            )
            if percent and counts[row, column]:
                fill = "white" if depth > 0.55 else "black"
                text = _percent(float(share[row, column]))
                parts.append(_text(x + wide / 2, y + 0.7 * high, text, anchor="middle", fill=fill))
        parts.append(_text(_LEFT + len(columns) * wide + 8, y + 0.7 * high, _percent(float(share[row].sum()))))
        y += high
    if percent:
        for column in range(len(columns)):
            text = _percent(float(share[:, column].sum()))
            parts.append(_text(_LEFT + (column + 0.5) * wide, y + 0.7 * high, text, anchor="middle"))
        parts.append(_text(_LEFT - 8, y + 0.7 * high, "all", anchor="end"))
        y += high
    return int(y)


def _percent(share: float) -> str:
    return f"{share:.1f}" if share == 0 or share >= 0.05 else "<0.1"


def _colour(depth: float) -> str:
    red, green, blue = (round(low + depth * (high - low)) for low, high in zip(_LIGHT, _DARK, strict=True))
    return f"#{red:02x}{green:02x}{blue:02x}"


def _text(x: float, y: float, text: str, *, size: int = 11, anchor: str = "start", fill: str = "black") -> str:
    place = f"x='{x:g}' y='{y:g}' font-size='{size}'"
    return f"<text {place} text-anchor='{anchor}' fill='{fill}'>{escape(text)}</text>"
