"""Compare two workloads in pictures (SVG) or on a page (HTML)."""

from html import escape
from typing import TYPE_CHECKING, Any, Final

from pipistrelle.models.likeness.comparison import LAGS, QUANTITIES, REPETITION
from pipistrelle.models.workloads.pictures import drawn
from pipistrelle.models.workloads.summary import WEEKDAYS
from pipistrelle.protocol.base.errors import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LINES: Final = ("-", "--")
_COLOURS: Final = ("tab:blue", "tab:orange")
_SPREAD: Final = ("mean", "p05", "p25", "median", "p75", "p95", "greatest")
_WORDS: Final = {"p05": "5 %", "p25": "25 %", "p75": "75 %", "p95": "95 %"}
_STYLE: Final = """body { font: 14px sans-serif; margin: 2em; } table { border-collapse: collapse; margin: 1em 0; }
td, th { padding: 2px 10px; text-align: right; } td:first-child, th:first-child { text-align: left; }
tr:nth-child(even) { background: #f2f2f2; } svg { max-width: 100%; height: auto; }"""


def svg(found: dict[str, Any]) -> str:
    """Return pictures of two workloads compared by `compare`, as SVG text.

    They show distribution functions of all `QUANTITIES`, autocorrelation of hourly submissions, submissions by hour of
    the week, and repetition by users. Equal arguments give equal bytes with the same version of matplotlib.
    """
    names = [_label(one) for one in found["workloads"]]

    def draw(figure: "Figure") -> None:
        figure.suptitle(" and ".join(names), parse_math=False)
        panels = [figure.add_subplot(4, 2, number + 1) for number in range(8)]
        for axes, key in zip(panels, QUANTITIES, strict=False):
            _distribution(axes, found, key)
        _autocorrelation(panels[5], found)
        _week(panels[6], found)
        _repetition(panels[7], found)
        lines = panels[0].get_lines()
        figure.legend(lines, names, loc="outside lower center", ncols=2)

    return drawn(draw, 10, 12)


def html(found: dict[str, Any]) -> str:
    """Return the pictures and the table of `rows` as a self-contained HTML file."""
    picture = svg(found)
    head, *lines = rows(found)
    table = ["<tr>" + "".join(f"<th>{escape(cell)}</th>" for cell in head) + "</tr>"]
    table += ["<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>" for line in lines]
    title = escape(" and ".join(_label(one) for one in found["workloads"]))
    return "\n".join(
        [
            "<!DOCTYPE html>",
            f'<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style></head><body>',
            f"<h1>{title}</h1>",
            picture[picture.index("<svg") :],
            "<table>",
            *table,
            "</table></body></html>\n",
        ]
    )


def rows(found: dict[str, Any]) -> list[list[str]]:
    """Return the table of two workloads compared by `compare`.

    The first row is a header. Each other row has a quantity, its values in both workloads, and their distance.
    """
    both = found["workloads"]
    table = [["", *(printable(str(one["name"])) for one in both), "distance"]]
    for key, what in (
        ("jobs", "jobs"),
        ("days", "days"),
        ("machine", "units of the machine"),
        ("load", "offered load"),
    ):
        table.append([what, *(_number(one[key]) for one in both), ""])
    table.append(["jobs of one unit", *(_percent(one["serial"]) for one in both), ""])
    for key, what in QUANTITIES.items():
        gap = found["distances"][key]
        table.append([what, "", "", "" if gap is None else f"{gap:.3f}"])
        for name in _SPREAD:
            cells = ["-" if one["spread"][key] is None else _number(one["spread"][key][name]) for one in both]
            table.append([f"  {_WORDS.get(name, name)}", *cells, ""])
    table.append(["submissions a day: variance over mean", *(_number(one["dispersion"]) for one in both), ""])
    table.append(["autocorrelation of submissions an hour", "", "", ""])
    for lag in LAGS:
        table.append([f"  {lag} h apart", *(_number(one["autocorrelation"][lag - 1], 2) for one in both), ""])
    for key, what in REPETITION.items():
        shown = _number if key in ("users", "jobs_per_campaign") else _percent
        table.append([what, *(shown(one["repetition"][key]) for one in both), ""])
    return table


def _label(figures: dict[str, Any]) -> str:
    return f"{printable(str(figures['name']))} ({figures['jobs']:,} jobs)"


def _number(value: float | None, digits: int = 3) -> str:
    if value is None:
        return "-"
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.{digits}f}".rstrip("0").rstrip(".") if abs(value) < 10 else f"{value:,.1f}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"


def _distribution(axes: "Axes", found: dict[str, Any], key: str) -> None:
    gap = found["distances"][key]
    axes.set_title(QUANTITIES[key] + ("" if gap is None else f": distance {gap:.3f}"), parse_math=False)
    least = 0.0 if key == "used" else 1.0
    for one, line, colour in zip(found["workloads"], _LINES, _COLOURS, strict=True):
        curve = one["curves"][key]
        if curve is not None:
            shares = [place / (len(curve) - 1) for place in range(len(curve))]
            values = [max(value, least) for value in curve]
            axes.plot(values, shares, line, color=colour, drawstyle="steps-post")
    if key == "used":
        axes.set_xlim(0, 1.2)
    else:
        axes.set_xscale("log")
    axes.set_ylim(0, 1)
    axes.set_ylabel("share of jobs up to")
    axes.grid(visible=True, alpha=0.3)


def _autocorrelation(axes: "Axes", found: dict[str, Any]) -> None:
    axes.set_title("autocorrelation of submissions an hour", parse_math=False)
    for one, line, colour in zip(found["workloads"], _LINES, _COLOURS, strict=True):
        known = [(lag, value) for lag, value in enumerate(one["autocorrelation"], 1) if value is not None]
        axes.plot([lag for lag, _ in known], [value for _, value in known], line, color=colour)
    axes.axhline(0, color="black", linewidth=0.5)
    axes.set_xticks(range(0, 169, 24))
    axes.set_xlabel("hours apart")
    axes.grid(visible=True, alpha=0.3)


def _week(axes: "Axes", found: dict[str, Any]) -> None:
    axes.set_title("submissions by hour of the week, %", parse_math=False)
    for one, line, colour in zip(found["workloads"], _LINES, _COLOURS, strict=True):
        axes.plot(range(168), [100 * share for share in one["week"]], line, color=colour, linewidth=0.8)
    axes.set_xticks(range(0, 168, 24), WEEKDAYS)
    axes.grid(visible=True, alpha=0.3)


def _repetition(axes: "Axes", found: dict[str, Any]) -> None:
    axes.set_title("repetition by user, % of jobs", parse_math=False)
    keys = ("same_size", "same_work", "busiest", "ten_busiest")
    for number, (one, colour) in enumerate(zip(found["workloads"], _COLOURS, strict=True)):
        places = [place + 0.4 * (number - 0.5) for place in range(len(keys))]
        axes.bar(places, [100 * (one["repetition"][key] or 0.0) for key in keys], 0.4, color=colour)
    names = ("same size\nas before", "same size\nand run time", "busiest\nuser", "ten busiest\nusers")
    axes.set_xticks(range(len(keys)), names)
    axes.set_ylim(0, 100)
