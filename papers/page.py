"""The results of a paper as one HTML page: tables and charts with both numbers."""

import base64
import html
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from pipistrelle.papers.charts import chart_svg
from pipistrelle.papers.entry import VERDICTS, Chart, FigureRow, number_text
from pipistrelle.papers.printed import EntryResult, Paper
from pipistrelle.protocol.fields import package_version
from pipistrelle.reports.page.document import digest, read_web

#: tables with at most this many rows are expanded
_MOST_OPEN: Final = 30
_STYLE: Final = """
.verdict { display: inline-block; margin-left: 10px; padding: 1px 9px; border-radius: 10px; vertical-align: middle; }
.verdict { border: 1px solid var(--line); font-size: var(--small); font-weight: 500; }
.reproduced { border-color: var(--series-3); color: var(--series-3); }
.differs { border-color: var(--series-2); color: var(--series-2); }
code { overflow-wrap: anywhere; font-size: 13px; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 14px; margin: 8px 0 12px; }
dt { color: var(--muted); }
dd { margin: 0; }
img { max-width: 100%; height: auto; background: #ffffff; border-radius: 4px; }
tr.differs td, tr.differs th { color: inherit; }
td.no { color: var(--series-2); font-weight: 600; }
"""


def paper_page(paper: Paper, results: Sequence[EntryResult], size: str) -> str:
    """Return a paper's results as an HTML page without scripts or external links.

    Args:
        results: results of the entries, in order.
        size: name of the size in which they were computed.

    Raises:
        PipistrelleError: if there are charts and matplotlib is not installed.
    """
    styles = read_web("page/web/page.css") + _STYLE
    policy = f"default-src 'none'; style-src {digest(styles)}; img-src data:; base-uri 'none'; form-action 'none'"
    title = f"Paper {paper.id}: {paper.name}"
    counts = Counter(one.verdict for one in results)
    tiles = "".join(
        f'<div class="tile"><h3>{verdict}</h3><p class="big">{counts[verdict]}</p></div>'
        for verdict in VERDICTS
        if counts[verdict]
    )
    links = "".join(f'<a href="#{_text(one.entry.id)}">{_text(one.entry.id)}</a>' for one in results)
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">',
            f"<title>{_text(title)}</title>\n<style>{styles}</style>\n</head>\n<body>",
            '<a class="skip" href="#main">Skip to the entries</a>',
            f'<header><h1>{_text(title)}</h1><p class="lead">{_text(paper.citation)}</p>',
            f'<p class="keys">Computed by Pipistrelle {_text(package_version())}, size {_text(size)}; ',
            f"more of it: docs/{_text(paper.page)}</p>",
            f'<div class="tiles">{tiles}</div><nav aria-label="entries">{links}</nav></header>',
            '<main id="main" tabindex="-1">',
            *map(_section, results),
            "</main>\n</body>\n</html>\n",
        ]
    )


def _text(text: str) -> str:
    return html.escape(text)


def _section(one: EntryResult) -> str:
    entry, finding = one.entry, one.finding
    facts = [("in the paper", _text(entry.place)), ("it shows", _text(entry.shows))]
    if entry.command:
        facts.append(("made by", f"<code>{_text(entry.command)}</code>"))
    right, all_ = one.compared
    if all_:
        facts.append(("agree", f"{right} of {all_} figures"))
    if one.reason:
        facts.append((_why(one), _text(one.reason)))
    told = "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in facts)
    known = one.verdict if one.verdict in ("reproduced", "differs") else ""
    parts = [
        f'<section id="{_text(entry.id)}"><h2>{_text(entry.title)}',
        f'<span class="verdict {known}">{one.verdict}</span></h2><p class="keys">{_text(entry.id)}</p><dl>{told}</dl>',
        *map(_figure, finding.charts),
        _table(entry.title, finding.rows),
        *(f'<p class="behind">{_text(note)}</p>' for note in finding.notes),
        "</section>",
    ]
    return "\n".join(part for part in parts if part)


def _why(one: EntryResult) -> str:
    if one.verdict == "differs":
        return "it differs because"
    return "it is not there because" if one.verdict in ("not computable", "left out") else "to note"


def _figure(chart: Chart) -> str:
    svg = base64.b64encode(chart_svg(chart).encode()).decode("ascii")
    told = f"{chart.title}: {', '.join(series.name for series in chart.series)}"
    return f'<figure><img src="data:image/svg+xml;base64,{svg}" alt="{_text(told)}"></figure>'


def _table(title: str, rows: Sequence[FigureRow]) -> str:
    if not rows:
        return ""
    ends = any(row.low is not None or row.high is not None for row in rows)
    heads = ["", "paper", "ours", *(["from", "to"] if ends else []), "unit", "agrees"]
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    body = "".join(_row(row, ends) for row in rows)
    table = f'<div class="scroll"><table><caption class="hidden">{_text(title)}</caption><thead><tr>{head}</tr></thead>'
    table += f"<tbody>{body}</tbody></table></div>"
    if len(rows) <= _MOST_OPEN:
        return table
    wrong = sum(row.agrees is False for row in rows)
    return f"<details><summary>{len(rows)} figures, {wrong} of which differ</summary>{table}</details>"


def _row(row: FigureRow, ends: bool) -> str:
    cells: Iterable[str] = (
        number_text(row.paper),
        number_text(row.ours),
        *((number_text(row.low), number_text(row.high)) if ends else ()),
        row.unit,
    )
    told = {True: "yes", False: "no", None: ""}[row.agrees]
    body = "".join(f"<td>{_text(cell)}</td>" for cell in cells)
    return f'<tr><th scope="row" class="text">{_text(row.what)}</th>{body}<td class="{told}">{told}</td></tr>'
