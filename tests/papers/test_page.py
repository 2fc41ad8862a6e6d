"""The page of a paper: the file is self-contained, and no text becomes markup."""

from collections.abc import Iterator
from html.parser import HTMLParser

import pytest

from pipistrelle.papers.bench import SIZES, Bench
from pipistrelle.papers.charts import chart_svg
from pipistrelle.papers.collection import chosen_entries, get_paper, make_entries
from pipistrelle.papers.entry import Chart, FigureRow, Finding, Series
from pipistrelle.papers.page import paper_page
from pipistrelle.papers.printed import Entry, EntryResult, Paper

NASTY = "</p><script>alert('&1')</script>\"'"


class Reader(HTMLParser):
    """Keeps tags with their attributes, and the text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep it."""
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        """Keep it."""
        self.text += data


def read(page: str) -> Reader:
    """Return the parts of a page."""
    reader = Reader()
    reader.feed(page)
    return reader


def addresses(reader: Reader) -> Iterator[str]:
    """Yield all that a page refers to."""
    for _, attributes in reader.tags:
        for name in ("src", "href", "srcset", "action", "data"):
            if attributes.get(name) is not None:
                yield attributes[name] or ""


def test_nothing_that_is_told_is_markup():
    """Text in entries, figures and charts is escaped on the page."""
    entry = Entry(id=NASTY, title=NASTY, place=NASTY, shows=NASTY, command=NASTY, reason=NASTY)
    paper = Paper(id="009", name=NASTY, citation=NASTY, entries=(entry,), page=NASTY)
    chart = Chart(NASTY, NASTY, NASTY, [Series(NASTY, [0, 1], [1, 2]), Series("b", [0, 1], [1, 2])], names=[NASTY, "b"])
    finding = Finding([FigureRow(NASTY, NASTY, NASTY, NASTY, agrees=False)], [chart], [NASTY])
    reader = read(paper_page(paper, [EntryResult(paper, entry, "differs", NASTY, finding)], NASTY))

    assert "script" not in {tag for tag, _ in reader.tags}
    assert reader.text.count(NASTY) >= 12


def test_a_page_asks_for_nothing_from_elsewhere():
    """Its pictures are in it, links stay on it, and a policy forbids all else."""
    paper = get_paper("003")
    results = list(make_entries(Bench(SIZES["small"]), chosen_entries([paper], ["grids", "yields", "wait-times"])))
    reader = read(paper_page(paper, results, "small"))

    assert all(one.startswith(("#", "data:image/svg+xml;base64,")) for one in addresses(reader))
    policies = [told["content"] for tag, told in reader.tags if tag == "meta" and "http-equiv" in told]
    assert policies[0].startswith("default-src 'none'; style-src 'sha256-")
    assert [told["alt"] for tag, told in reader.tags if tag == "img"] == [
        "working nodes of a 6 x 6 grid: grid, spares",
        "optimal yield by wait: no spares, rigid, moldable, grid",
    ]
    ids = [told["id"] for tag, told in reader.tags if tag == "section"]
    assert ids == ["wait-times", "grids", "yields"]
    assert [one.removeprefix("#") for one in addresses(reader) if one.startswith("#")][1:] == ids


def test_a_long_table_is_folded():
    """99 figures are collapsed; the page states how many differ."""
    paper = get_paper("001")
    results = list(make_entries(Bench(SIZES["small"]), chosen_entries([paper], ["table-4.5"])))
    reader = read(paper_page(paper, results, "small"))

    assert "details" in {tag for tag, _ in reader.tags}
    assert "55 figures, 9 of which differ" in reader.text


@pytest.mark.parametrize("kind", ["lines", "steps", "points", "bars"])
def test_charts_are_drawn(kind):
    """Each kind, with intervals and without, over logarithms where there is nothing above 0, too."""
    series = [Series("ours", [0, 1], [1, 2], [0.5, 1.5], [1.5, 2.5]), Series("paper", [0, 1], [2, 3], paper=True)]
    chart = Chart("a chart", "x", "y", series, kind=kind, names=["one", "the other"])
    empty = Chart("none", "x", "y", [Series("ours", [], [])], kind=kind, log_y=True)

    assert ">a chart<" in chart_svg(chart)
    assert chart_svg(chart) == chart_svg(chart)
    assert ">none<" in chart_svg(empty)
