"""All papers at the small size: each entry's result, and that docs/explanation/papers.md states the results."""

from pathlib import Path
from types import ModuleType

import pytest
from tests.conftest import load_program

from pipistrelle.papers.bench import SIZES, Bench
from pipistrelle.papers.collection import chosen_entries, get_paper, make_entries, paper_ids
from pipistrelle.papers.printed import EntryResult
from pipistrelle.papers.telling import logged, markdown

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def results() -> dict[str, list[EntryResult]]:
    """Return the result of each paper's entries, without real logs."""
    bench = Bench(SIZES["small"], jobs=2)
    return {number: list(make_entries(bench, chosen_entries([get_paper(number)], []))) for number in paper_ids()}


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    """Return the program that writes the page."""
    return load_program("docs/make_papers.py")


@pytest.mark.parametrize("number", paper_ids())
def test_entries_end_as_they_should(number: str, results: dict[str, list[EntryResult]]) -> None:
    """Entries that should agree with the paper do; the others differ and state why."""
    mine = results[number]

    assert [one.entry.id for one in mine] == [entry.id for entry in get_paper(number).entries]
    for one in mine:
        if not one.entry.command:
            assert one.verdict == "not computable"
        elif one.entry.needs:
            assert one.verdict == "left out"
        else:
            assert one.verdict == one.entry.expects, (one.entry.id, one.finding.rows)
        assert one.verdict == "reproduced" or one.reason


def test_the_page_says_what_comes_out(
    results: dict[str, list[EntryResult]], maker: ModuleType, project_root: Path
) -> None:
    """To rewrite it, run `python docs/make_papers.py $PIPISTRELLE_TRACES`."""
    told = maker.head() + markdown([one for number in paper_ids() for one in results[number]])

    assert (project_root / "docs" / "explanation" / "papers.md").read_text(encoding="utf-8").partition(maker.LOGS)[
        0
    ] == told


def test_entries_of_real_logs_end_as_they_should(traces_dir: Path, maker: ModuleType, project_root: Path) -> None:
    """With the logs of LANL, KTH and Titan's GPUs; the page states the results."""
    bench = Bench(SIZES["small"], traces=traces_dir, jobs=2)
    chosen = [
        (get_paper(number), entry) for number in paper_ids() for entry in get_paper(number).entries if entry.needs
    ]
    results = list(make_entries(bench, chosen))

    assert len(results) >= 6
    assert [one.entry.id for one in results if one.verdict != one.entry.expects] == []
    page = (project_root / "docs" / "explanation" / "papers.md").read_text(encoding="utf-8")
    assert page.partition(maker.LOGS)[2] == logged(results)
