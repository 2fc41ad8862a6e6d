"""Draw workloads as text and as SVG."""

import logging
from collections.abc import Callable
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from pipistrelle.models.workloads.summary import shares
from pipistrelle.protocol.base.errors import PipistrelleError, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SHADES: Final = " .:-=+*#%@"
#: {file type: the field that would make two equal figures differ}
_DATED: Final = {".svg": "Date", ".pdf": "CreationDate", ".png": "Software"}
Font = Literal["sans", "stix", "cm"]
#: least and greatest width or height of a picture, in inches
INCHES: Final = (0.5, 50.0)
#: {font: settings of matplotlib}; all these fonts come with it, and cmr10 lacks some signs, which STIX has
_FONTS: Final[dict[Font, Any]] = {
    "sans": {"svg.fonttype": "none"},
    "stix": {"font.family": ["STIXGeneral"], "mathtext.fontset": "stix"},
    "cm": {
        "font.family": ["cmr10", "STIXGeneral"],
        "mathtext.fontset": "cm",
        "axes.formatter.use_mathtext": True,
        "axes.unicode_minus": False,
    },
}


def arrivals_text(arrivals: dict[str, Any]) -> list[str]:
    """Return submissions by weekday and hour as lines of text.

    Cells with more submissions are darker: the shade grows with the square root.
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
    """Return a picture of the statistics that `summarise` returned, as SVG text.

    The upper part shows jobs by size and run time, like figures 5 and 6 of Horace et al.
    (docs/tutorials/repair-time.md). The lower part shows submissions by weekday and hour, if the trace has dates.
    Cells show numbers of jobs, margins show percentages. Without jobs there is only the heading. Equal statistics
    give equal bytes with the same version of matplotlib.
    """
    tables: list[tuple[Any, list[str], list[str], str]] = []
    if (grid := figures["by_size_and_runtime"]) is not None:
        runtimes = [bound if bound == "more" else f"< {bound}" for bound in grid["runtimes_below"]]
        tables.append((grid["counts"], grid["sizes"], runtimes, "jobs by units and run time"))
    if (arrivals := figures["arrivals"]) is not None:  # the first day of the week at the top
        hours = [str(hour) for hour in range(24)]
        title = f"submissions by weekday and hour ({figures['zone']})"
        tables.append((arrivals["counts"][::-1], arrivals["weekdays"][::-1], hours, title))

    def draw(figure: "Figure") -> None:
        name = printable(str(figures["name"]))
        figure.suptitle(f"{name}: {figures['runnable']:,} jobs", parse_math=False)
        for number, table in enumerate(tables, 1):
            _heat(figure.add_subplot(len(tables), 1, number), *table)

    return drawn(draw, 9, 0.8 + 3.6 * len(tables))


def drawn(draw: Callable[["Figure"], None], width: float, height: float) -> str:
    """Return a figure that `draw` fills, as SVG text; width and height are in inches."""
    return drawn_as(".svg", draw, width, height).decode()


def drawn_as(suffix: str, draw: Callable[["Figure"], None], width: float, height: float, font: Font = "sans") -> bytes:
    """Return the bytes of a ``.svg``, ``.pdf`` or ``.png`` figure that `draw` fills.

    A PDF has its fonts embedded as Type 42 (TrueType), which publishers accept. An SVG has its texts as text in the
    default font, and as outlines in other fonts, which few machines have. Width and height are in inches. Equal figures
    give equal bytes with the same version of matplotlib.

    Args:
        font: ``sans``, or a font that suits a paper in LaTeX: ``stix`` (like Times) or ``cm`` (Computer Modern).
    """
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        raise PipistrelleError(
            "a picture needs matplotlib, which is not installed",
            hint="Install it with: pip install 'pipistrelle[report]'",
        ) from None
    for name in ("matplotlib", "fontTools"):  # silence messages about the font cache and dates of fonts
        logging.getLogger(name).setLevel(logging.ERROR)
    file = BytesIO()
    with mpl.rc_context():
        mpl.rcdefaults()  # ignore user settings
        mpl.rcParams |= {"svg.hashsalt": "pipistrelle", "font.size": 8, "pdf.fonttype": 42}
        mpl.rcParams.update(_FONTS[font])
        figure = Figure(figsize=(width, height), layout="constrained", dpi=150)
        draw(figure)
        figure.savefig(file, format=suffix.removeprefix("."), metadata={_DATED[suffix]: None})
    return file.getvalue()


def _heat(axes: "Axes", rows: list[list[int]], names: list[str], columns: list[str], title: str) -> None:
    """Draw a table of counts as shaded cells, with percentages at its margins.

    The first row is at the bottom.
    """
    counts = np.array(rows, dtype=np.int64)
    depth, share = np.sqrt(counts / max(int(counts.max()), 1)), shares(counts)
    axes.pcolormesh(depth, cmap="Blues", vmin=0, vmax=1, edgecolors="white")
    axes.set_title(title, parse_math=False)
    axes.set_xticks(np.arange(len(columns)) + 0.5, columns)
    axes.set_yticks(np.arange(len(names)) + 0.5, names)
    for (row, column), count in np.ndenumerate(counts):
        colour = "white" if depth[row, column] > 0.55 else "black"
        text = f"{count:,}" if count else ""
        axes.text(column + 0.5, row + 0.5, text, ha="center", va="center", color=colour, size=7)
    right, top = axes.secondary_yaxis("right"), axes.secondary_xaxis("top")
    right.set_yticks(axes.get_yticks(), [_percent(total) for total in share.sum(axis=1)])
    top.set_xticks(axes.get_xticks(), [_percent(total) for total in share.sum(axis=0)])


def _percent(share: float) -> str:
    return f"{share:.1f} %" if share == 0 or share >= 0.05 else "<0.1 %"
