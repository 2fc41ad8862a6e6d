"""One HTML document out of the parts in the folder ``web``: nothing in it comes from elsewhere, or may."""

import base64
import hashlib
import html
import json
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any, Final

#: in this order; each is a script of its own, so that a browser names it by its place in the document
SCRIPTS: Final = (
    *("third_party/uPlot.iife.min.js", "words.js", "figures.js", "data.js", "elements.js", "colours.js", "state.js"),
    *("summary.js", "series.js", "raster.js", "gantt.js", "torus.js", "distributions.js", "heat.js", "groups.js"),
    *("breakdowns.js", "compare.js", "estimates.js", "worst.js", "about.js", "main.js"),
)
STYLES: Final = ("third_party/uPlot.min.css", "page.css")
_TEMPLATE: Final = "page.html"


def document(title: str, facts: Mapping[str, Any], packed: str) -> str:
    """Return the document.

    A policy in it lets no request leave, and no script run but ours, by their digests: what a log or a scheduler has
    written stands in a block of data and cannot end it.

    Parameters
    ----------
    title
        the heading, plain text.
    facts
        what web/data.js reads as JSON.
    packed
        the columns, as `ColumnPack.done` returns them.
    """
    scripts, styles = [read_web(name) for name in SCRIPTS], [read_web(name) for name in STYLES]
    return filled(
        read_web(_TEMPLATE),
        policy=policy_of(scripts, styles),
        title=html.escape(title),
        styles="\n".join(f"<style>{style}</style>" for style in styles),
        facts=in_script(facts),
        packed=packed,
        scripts="\n".join(f"<script>{script}</script>" for script in scripts),
    )


def filled(template: str, **parts: str) -> str:
    """Return a template with a part in the place of each name in double braces."""
    pieces = template.split("{{")
    found = [pieces[0]]
    for piece in pieces[1:]:
        name, _, rest = piece.partition("}}")
        found += [parts[name], rest]
    return "".join(found)


def policy_of(scripts: Sequence[str], styles: Sequence[str]) -> str:
    """Return a policy (Content-Security-Policy) that lets nothing in or out but these, by their digests."""
    return (
        f"default-src 'none'; script-src {' '.join(map(_digest, scripts))}; style-src {' '.join(map(_digest, styles))};"
        " img-src data:; base-uri 'none'; form-action 'none'"
    )


def in_script(value: Any) -> str:
    """Return JSON that can stand in a script element: no character in it opens or closes anything."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def read_web(name: str) -> str:
    """Return a file of the folder ``web`` beside this one."""
    return (resources.files("pipistrelle.reports.page") / "web" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"
