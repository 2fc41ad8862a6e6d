"""A comparison of the scheduler ``slurm`` with slurmctld as an HTML page.

The page needs no other files.
"""

import html
from collections.abc import Sequence

from pipistrelle.reports.page.document import static_document
from pipistrelle.reports.report.slurm_check import SlurmCheckTexts

_MOST = 50


def slurm_check_page(texts: SlurmCheckTexts) -> str:
    """Return the page.

    It has numbers of equal results, mean waits, and the first differences.
    """
    said = "".join(f"<li>{html.escape(line)}</li>" for line in texts.differences(_MOST))
    body = (
        f"<h1>{html.escape(texts.title)}</h1>"
        '<p class="lead">Each pass starts from the recorded state before it. A run starts with an empty machine. Two'
        " starts are equal if they are at the same second on the same nodes.</p>"
        f"{_table(texts.agreement_columns, texts.agreements())}"
        f"<h2>Mean waits (s)</h2>{_table(texts.wait_columns, texts.waits())}"
        f"<h2>First differences</h2><ul>{said}</ul>"
    )
    return static_document(texts.title, body)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    kinds = ["text", *["number"] * (len(columns) - 1)]
    head = "".join(
        f'<th scope="col" class="{kind}">{html.escape(name)}</th>' for kind, name in zip(kinds, columns, strict=True)
    )
    lines = (
        "".join(f'<td class="{kind}">{html.escape(cell)}</td>' for kind, cell in zip(kinds, row, strict=True))
        for row in rows
    )
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
