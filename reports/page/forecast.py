"""A forecast as one self-contained HTML page with a table."""

import html

from pipistrelle.reports.estimates.forecast_texts import ForecastTexts
from pipistrelle.reports.page.document import static_document

_TEXTS = frozenset(("job", "user", "account", "partition", "reason", "expected nodes"))


def forecast_page(texts: ForecastTexts, title: str) -> str:
    """Return a forecast of job starts as an HTML page with a table.

    ``title`` is plain text.
    """
    columns = texts.columns()
    kinds = {name: "text" if name in _TEXTS else "number" for name in columns}
    head = "".join(f'<th scope="col" class="{kinds[name]}">{html.escape(name)}</th>' for name in columns)
    rows = []
    for one in texts.forecast.jobs:
        cells = "".join(
            f'<td class="{kinds[name]}">{html.escape(cell(one)) if not one.tried else _strong(cell(one))}</td>'
            for name, cell in columns.items()
        )
        rows.append(f"<tr>{cells}</tr>")
    lead = "".join(f'<p class="lead">{html.escape(line)}</p>' for line in texts.summary())
    remarks = [*texts.forecast.remarks, *texts.forecast.faults]
    said = "".join(f"<li>{html.escape(line)}</li>" for line in remarks)
    body = (
        f"<h1>{html.escape(title)}</h1>{lead}"
        f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )
    return static_document(title, body + (f"<h2>Warnings</h2><ul>{said}</ul>" if said else ""))


def _strong(text: str) -> str:
    return f"<strong>{html.escape(text)}</strong>"
