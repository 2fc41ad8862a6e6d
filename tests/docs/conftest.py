"""Reading the documentation's pages: their sections, tables and JSON blocks."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
Section = Callable[[str, str], str]
Table = Callable[[str], list[list[str]]]
JsonValues = Callable[[str], list[Any]]


@pytest.fixture(scope="session")
def section() -> Section:
    """Return a function from a page's path and a heading to the text below that heading."""

    def find(page: str, heading: str) -> str:
        text = (ROOT / page).read_text(encoding="utf-8")
        match = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#+ |\Z)", text, flags=re.MULTILINE | re.DOTALL)
        assert match is not None, f"{page} has no section '{heading}'"
        return match[1]

    return find


@pytest.fixture(scope="session")
def table() -> Table:
    """Return a function from a text to the rows of its tables, cell by cell, without heads."""

    def rows(text: str) -> list[list[str]]:
        found = []
        lines = text.splitlines()
        for number, line in enumerate(lines):
            is_row = line.startswith("|") and not set(line) <= set("|-: ")
            is_head = number + 1 < len(lines) and set(lines[number + 1]) <= set("|-") and lines[number + 1] != ""
            if is_row and not is_head:
                found.append([cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
        return found

    return rows


@pytest.fixture(scope="session")
def json_values() -> JsonValues:
    """Return a function from a text to the JSON values that it contains, in order."""
    decoder = json.JSONDecoder()

    def values(text: str) -> list[Any]:
        found = []
        while text := text.lstrip():
            value, end = decoder.raw_decode(text)
            found.append(value)
            text = text[end:]
        return found

    return values
