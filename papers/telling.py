"""Write results of papers as JSON, CSV and Markdown."""

import csv
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from pipistrelle.papers.entry import VERDICTS, FigureRow, number_text
from pipistrelle.papers.printed import Entry, EntryResult, Paper
from pipistrelle.protocol.fields import package_version

_COLUMNS: Final = ("paper", "entry", "verdict", "what", "unit", "paper_says", "ours", "low", "high", "agrees")
#: largest number of figures per entry on a page of the documentation
_MOST_ROWS: Final = 6


def plain(results: Sequence[EntryResult], size: str) -> dict[str, Any]:
    """Return results as JSON values, paper by paper, with all numbers and chart data."""
    papers: dict[str, dict[str, Any]] = {}
    for one in results:
        paper, entry = one.paper, one.entry
        told = papers.setdefault(
            paper.id,
            {"id": paper.id, "name": paper.name, "citation": paper.citation, "page": paper.page, "entries": []},
        )
        told["entries"].append(
            {
                **{name: getattr(entry, name) for name in ("id", "title", "place", "shows", "command", "needs")},
                "verdict": one.verdict,
                "reason": one.reason,
                "figures": [asdict(row) for row in one.finding.rows],
                "charts": [asdict(chart) for chart in one.finding.charts],
                "notes": list(one.finding.notes),
            }
        )
    return {"version": package_version(), "size": size, "papers": list(papers.values())}


def csv_text(results: Sequence[EntryResult]) -> str:
    """Return all numbers and claims as CSV.

    An entry without numbers and claims has one line with its verdict.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for one in results:
        begin = (one.paper.id, one.entry.id, one.verdict)
        for row in one.finding.rows:
            told = (row.what, row.unit, row.paper, row.ours, row.low, row.high)
            agrees = "" if row.agrees is None else "yes" if row.agrees else "no"
            writer.writerow([*begin, *("" if cell is None else cell for cell in told), agrees])
        if not one.finding.rows:
            writer.writerow([*begin, *[""] * 7])
    return text.getvalue()


def listed(chosen: Sequence[tuple[Paper, Entry]]) -> list[tuple[str, str, str, str, list[str], bool]]:
    """Return a row for each entry.

    A row has the paper, id, title, place, needed logs, and whether the entry can be computed.
    """
    return [
        (paper.id, entry.id, entry.title, entry.place, list(entry.needs), bool(entry.command))
        for paper, entry in chosen
    ]


def markdown(results: Sequence[EntryResult]) -> str:
    """Return results as Markdown: a table of entries per paper, and the differences."""
    parts = []
    for paper in {one.paper.id: one.paper for one in results}.values():
        mine = [one for one in results if one.paper.id == paper.id]
        counts = Counter(one.verdict for one in mine)
        told = ", ".join(f"{verdict} ({counts[verdict]})" for verdict in VERDICTS if counts[verdict])
        name = paper.page.rpartition("/")[2]
        parts.append(f"\n## {paper.id}: {paper.name}\n\n{paper.citation}. See also [{name}](../{paper.page}).\n")
        parts.append(f"\nWe compare {len(mine)} entries (tables, figures, claims) of this paper. ")
        parts.append(f"Outcomes, as explained above: {told}.\n\n")
        parts.append("| entry | what it shows | outcome | agree | why |\n|---|---|---|---|---|\n")
        for one in mine:
            right, every = one.compared
            agree = f"{right} of {every}" if every else ""
            why = "" if one.verdict == "reproduced" else one.reason
            parts.append(_line(f"`{one.entry.id}`", one.entry.title, f"**{one.verdict}**", agree, why))
        parts.append(_differences(mine))
    return "".join(parts)


def _differences(results: Sequence[EntryResult]) -> str:
    """Return a table of the numbers and claims that differ from the paper's.

    It has a few rows per entry.
    """
    lines = []
    for one in results:
        wrong = [row for row in one.finding.rows if row.agrees is False]
        entry = f"`{one.entry.id}`"
        lines += [_line(entry, row.what, *_both(row)) for row in wrong[:_MOST_ROWS]]
        if len(wrong) > _MOST_ROWS:
            lines.append(f"| {entry} | and {len(wrong) - _MOST_ROWS} more | | |\n")
    if not lines:
        return ""
    return "\nFigures that differ:\n\n| entry | figure | paper | ours |\n|---|---|---|---|\n" + "".join(lines)


def logged(results: Sequence[EntryResult]) -> str:
    """Return a documentation table with all numbers and claims of the entries.

    The table also has their verdicts.
    """
    lines = ["| paper, entry | outcome | figure | paper | ours |\n|---|---|---|---|---|\n"]
    for one in results:
        for number, row in enumerate(one.finding.rows):
            head = (f"{one.paper.id} `{one.entry.id}`", f"**{one.verdict}**") if not number else ("", "")
            lines.append(_line(*head, row.what, *_both(row)))
    return "".join(lines)


def _both(row: FigureRow) -> tuple[str, str]:
    """Return the paper's number and our number as texts with their unit."""
    paper, ours = (
        f"{number_text(value)} {row.unit}" if row.unit and isinstance(value, float | int) else number_text(value)
        for value in (row.paper, row.ours)
    )
    return paper, ours


def _line(*cells: str) -> str:
    """Return a row of a Markdown table."""
    escaped = (cell.replace("|", "\\|").replace("\n", " ") for cell in cells)
    return f"| {' | '.join(escaped)} |\n"
