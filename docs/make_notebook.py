"""Write the notebook of a tutorial from its page.

Run it with: python docs/make_notebook.py > docs/tutorials/compare-schedulers.ipynb. A Python block of the page becomes
a cell. A block that shows a file becomes a cell that writes the file. Outputs are left out: Jupyter shows its own.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parent / "tutorials" / "compare-schedulers.md"
#: a link to the notebook itself, which it does not need
_SELF = re.compile(r"This page is also a \[notebook\].*?\. ", re.DOTALL)
_BLOCK = re.compile(
    r"(?:<!-- file: (?P<file>\S+) -->\n)?```python\n(?P<code>.*?)```\n(?:\n<!-- output -->\n```text\n.*?```\n)?",
    re.DOTALL,
)


def cell(kind: str, number: int, text: str) -> dict[str, Any]:
    """Return a cell of a notebook."""
    lines = text.strip().splitlines(keepends=True)
    code = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": lines, **code}


def notebook(text: str) -> dict[str, Any]:
    """Return the notebook of a page's text."""
    text = _SELF.sub("", text)
    cells: list[dict[str, Any]] = []
    at = 0

    def words(part: str) -> None:
        if part.strip():
            cells.append(cell("markdown", len(cells), part))

    for found in _BLOCK.finditer(text):
        words(text[at : found.start()])
        code = found["code"]
        if found["file"]:
            code = f"%%writefile {Path(found['file']).name}\n{code}"
        cells.append(cell("code", len(cells), code))
        at = found.end()
    words(text[at:])
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


if __name__ == "__main__":
    json.dump(notebook(PAGE.read_text(encoding="utf-8")), sys.stdout, indent=1, ensure_ascii=False)
    sys.stdout.write("\n")
