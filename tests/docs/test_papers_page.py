"""docs/explanation/papers.md: entries and outcomes are those of the papers' files; slow tests compute them."""

import re
from pathlib import Path

from pipistrelle.papers.collection import get_paper, paper_ids

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "explanation" / "papers.md"


def test_each_entry_of_each_paper_has_its_line():
    """In the papers' order, with the expected outcome without real logs."""
    *sections, logs = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]

    assert logs.startswith("With real logs\n")
    named = [f"{number} `{one.id}`" for number in paper_ids() for one in get_paper(number).entries if one.needs]
    assert re.findall(r"^\| (\d{3} `[\w.-]+`) \|", logs, flags=re.MULTILINE) == named
    assert [section[:3] for section in sections] == paper_ids()
    for section in sections:
        paper = get_paper(section[:3])
        rows = re.findall(r"^\| `([\w.-]+)` \| (.+?) \| \*\*([\w ]+)\*\* \|", section, flags=re.MULTILINE)
        assert rows == [
            (
                entry.id,
                entry.title,
                "not computable" if not entry.command else "left out" if entry.needs else entry.expects,
            )
            for entry in paper.entries
        ]
        assert paper.citation in section
        assert f"](../{paper.page})" in section
        assert (PAGE.parent.parent / paper.page).is_file()
