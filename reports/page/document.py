"""Put a page into one self-contained HTML document that may not load anything."""

import base64
import hashlib
import html
import json
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any, Final

from pipistrelle.reports.page.bundle import bundle

_TEMPLATE: Final = "page/web/page.html"
_STYLE: Final = "page/web/page.css"
_CHARTS: Final = ("page/web/third_party/uPlot.iife.min.js", "page/web/third_party/uPlot.min.css")


def document(title: str, facts: Mapping[str, Any], packed: str) -> str:
    """Return the HTML page of finished runs.

    Args:
        facts: the data that web/data.js reads as JSON.
        packed: the columns, from `ColumnPack.done`.
    """
    charts, style = _CHARTS
    scripts, styles = [read_web(charts), bundle("page/web/main.js", read_web)], [read_web(style), read_web(_STYLE)]
    policy = _policy(scripts, styles)
    data = f'<script type="application/octet-stream" id="packed">{packed}</script>'
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    return _filled(title, facts, scripts, styles, head=head, asks="nothing is loaded from elsewhere", data=data)


def live_document(title: str, facts: Mapping[str, Any]) -> tuple[str, str]:
    """Return the HTML page of a run in progress, and its Content-Security-Policy."""
    scripts, styles = [bundle("live/web/live.js", read_web)], [read_web(_STYLE), read_web("live/web/live.css")]
    policy = f"{_policy(scripts, styles)}; connect-src 'self'; frame-ancestors 'none'"
    asks = "it connects to the run that it shows and to nothing else"
    return _filled(title, facts, scripts, styles, head='<link rel="icon" href="data:,">', asks=asks), policy


def static_document(title: str, main: str) -> str:
    """Return an HTML page without scripts.

    Args:
        main: HTML of the page's content, with all texts escaped.
    """
    style = read_web(_STYLE)
    policy = f"default-src 'none'; style-src {digest(style)}; base-uri 'none'; form-action 'none'"
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    return _filled(title, {}, [], [style], head=head, main=main)


def in_script(value: Any) -> str:
    """Return a value as JSON without <, > and &, which is safe in a script element."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def read_web(path: str) -> str:
    """Return the text of a file in a folder ``web``.

    Its path is relative to ``reports``.
    """
    return (resources.files("pipistrelle.reports") / path).read_text(encoding="utf-8")


def _filled(title: str, facts: Mapping[str, Any], scripts: Sequence[str], styles: Sequence[str], **parts: str) -> str:
    """Return the page's HTML from its template.

    Each name in double braces is replaced by its text.
    """
    parts |= {
        "title": html.escape(title),
        "styles": "\n".join(f"<style>{style}</style>" for style in styles),
        "facts": in_script(facts),
        "scripts": "\n".join(f"<script>{script}</script>" for script in scripts),
    }
    if scripts:
        needs = f"This page needs JavaScript. All scripts are in the page; {parts['asks']}."
        parts["noscript"] = f"<noscript><p>{needs}</p></noscript>"
    first, *pieces = read_web(_TEMPLATE).split("{{")
    named = (piece.partition("}}") for piece in pieces)
    return first + "".join(parts.get(name, "") + rest for name, _, rest in named)


def _policy(scripts: Sequence[str], styles: Sequence[str]) -> str:
    """Return a Content-Security-Policy that allows only these scripts and styles.

    It also forbids all requests. Texts from logs and schedulers are only in a data block, and cannot break out of it.
    """
    return (
        f"default-src 'none'; script-src {' '.join(map(digest, scripts))}; style-src {' '.join(map(digest, styles))};"
        " img-src data:; base-uri 'none'; form-action 'none'"
    )


def digest(text: str) -> str:
    """Return the hash of a script or style for a Content-Security-Policy.

    With this hash, the policy allows the script or style.
    """
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"
