"""Paper entries as data: agreement, results, and the fields that each entry must have."""

import pytest

from pipistrelle.papers.bench import SIZES, Bench
from pipistrelle.papers.collection import chosen_entries, computations, get_paper, make_entries, paper_ids
from pipistrelle.papers.entry import (
    VERDICTS,
    FigureRow,
    Finding,
    PapersError,
    Tolerance,
    agreement,
    number_text,
    verdict_of,
)
from pipistrelle.papers.printed import parse_paper
from pipistrelle.papers.telling import csv_text, plain

#: entries that are formulas and tables alone: computed in a moment
QUICK = {
    "000": ["figure-1", "figure-2", "figure-5", "counts"],
    "001": [
        *("table-4.1", "table-4.2", "table-4.3", "table-4.4", "figure-4.2", "figure-4.3", "figure-4.4", "table-4.5"),
        *("table-4.6", "table-4.7", "table-4.8", "table-4.9", "table-4.10", "table-5.1", "figure-5.1", "table-a.1"),
        *("p-values", "table-a.3", "figure-b.2"),
    ],
    "002": ["equations", "table-1"],
    "003": ["example", "setting", "grids", "time", "yields", "failures", "lengths", "targets"],
    "004": ["specification", "table-1", "figure-4", "figure-5", "table-2", "figure-7"],
}


@pytest.mark.parametrize(
    ("paper", "ours", "interval", "agrees"),
    [
        (10.0, 10.5, None, True),
        (10.0, 10.6, None, False),
        (10.0, 10.6, (9.9, 11.3), True),
        (10.0, 10.6, (10.1, 11.1), False),
        (10.0, 12.0, (5.0, 19.0), None),
        (10.0, 10.2, (5.0, 15.4), True),
        (10.0, None, None, None),
        (None, 3.0, None, None),
    ],
)
def test_what_agrees(paper, ours, interval, agrees):
    """Within the tolerance, or in an interval that is not too wide to tell."""
    assert agreement(paper, ours, Tolerance(absolute=0.5), *(interval or ())) is agrees


def test_a_tolerance_is_the_larger_of_both():
    """An absolute one, and one as a share of the paper's number; the last bit makes no difference."""
    assert Tolerance(absolute=1, relative=0.5).holds(10, 15)
    assert not Tolerance(absolute=1, relative=0.05).holds(10, 11.1)
    assert Tolerance().holds(0.3, 0.1 + 0.2)


def test_how_an_entry_ends():
    """By the figures that are compared: all, not all, or none."""
    yes, no, open_ = (FigureRow("a", "b", "c", agrees=agrees) for agrees in (True, False, None))

    assert verdict_of(Finding([yes, open_])) == "reproduced"
    assert verdict_of(Finding([yes, no])) == "differs"
    assert verdict_of(Finding([open_])) == "made anew"


@pytest.mark.parametrize("number", paper_ids())
def test_what_each_entry_tells(number):
    """Each entry has an id of its own, code if it has a command, and a reason if it differs or has none."""
    paper = get_paper(number)

    assert paper.id == number
    assert len({entry.id for entry in paper.entries}) == len(paper.entries)
    for entry in paper.entries:
        assert entry.title, entry.id
        assert entry.place, entry.id
        assert entry.shows, entry.id
        assert entry.expects in VERDICTS[:3]
        assert entry.reason or (entry.command and entry.expects == "reproduced"), entry.id
    assert list(computations(number)) == [entry.id for entry in paper.entries if entry.command]


@pytest.mark.parametrize("number", paper_ids())
def test_quick_entries_end_as_they_should(number):
    """Closed forms, tables and arithmetic agree with the paper, or the entry states the difference."""
    chosen = chosen_entries([get_paper(number)], QUICK[number])
    results = list(make_entries(Bench(SIZES["small"]), chosen))

    assert [one.entry.id for one in results if one.verdict != one.entry.expects] == []
    assert {one.entry.id for one in results} == set(QUICK[number])


def test_entries_are_found_by_name():
    """Entries follow the paper's order; unknown entries and entries of several papers are rejected."""
    first, second = get_paper("001"), get_paper("003")

    assert [entry.id for _, entry in chosen_entries([first], ["table-4.8", "table-4.1"])] == ["table-4.1", "table-4.8"]
    with pytest.raises(PapersError, match=r"paper 001 has no entry 'table-4'.*Did you mean"):
        chosen_entries([first], ["table-4"])
    with pytest.raises(PapersError, match="entries are chosen of one paper"):
        chosen_entries([first, second], ["table-4.8"])
    with pytest.raises(PapersError, match="there is no paper '005'"):
        get_paper("005")


HEAD = 'id = "009"\nname = "n"\ncitation = "c"\npage = "p.md"\n'
ENTRY = '[[entries]]\nid = "table-1"\ntitle = "t"\nplace = "p"\nshows = "s"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD, "nine.toml.*the key 'entries' is missing"),
        (HEAD + ENTRY + 'comand = "x"\n', r"nine.toml: entries\[0\].*unknown key 'comand'.*Did you mean 'command'"),
        (HEAD + ENTRY + ENTRY, "nine.toml.*two entries have the id 'table-1'"),
        (HEAD + ENTRY + 'reason = "{why}"\n', "entry table-1: a shared text does not exist: 'why'"),
        (HEAD + ENTRY + '[entries.figures]\na = { what = "a", paper = [1] }\n', r"figures\.a\.paper"),
        ("id = 9", "expected text in quotes"),
        ("id = ", "this is not TOML"),
    ],
)
def test_a_file_of_a_paper_that_cannot_be(text, message):
    """The message names the file and the place."""
    with pytest.raises(PapersError, match=f"(?s){message}"):
        parse_paper(text, "nine.toml")


def test_an_entry_without_its_log_is_left_out(tmp_path):
    """The message names the missing log and the searched folder."""
    chosen = chosen_entries([get_paper("004")], ["figure-1"])

    for folder, told in ((None, "no folder of real logs is named"), (tmp_path, f"is not in {tmp_path}")):
        (result,) = make_entries(Bench(SIZES["small"], traces=folder), chosen)
        assert result.verdict == "left out"
        assert "Titan-GPU-lives-2013-2019.csv.xz" in result.reason
        assert told in result.reason


def test_json_and_csv_have_all_figures():
    """A line for each figure, the paper's and ours unrounded; an entry without figures has a line, too."""
    chosen = chosen_entries([get_paper("004")], ["table-2", "figure-13"])
    results = list(make_entries(Bench(SIZES["small"]), chosen))
    document = plain(results, "small")
    lines = csv_text(results).splitlines()

    first, second = document["papers"][0]["entries"]
    assert (first["verdict"], second["verdict"]) == ("reproduced", "not computable")
    assert [row["paper"] for row in first["figures"]] == [11.0, 13.8, 18.5, 27.9, 57.0]
    assert len(lines) == 1 + 5 + 1
    assert lines[1].split(",")[:3] == ["004", "table-2", "reproduced"]
    assert lines[-1] == "004,figure-13,not computable,,,,,,,"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        ("a few", "a few"),
        (132, "132"),
        (68936.0, "68,936"),
        (0.571428, "0.57143"),
        (12345.678, "12,345.7"),
    ],
)
def test_numbers_as_they_are_shown(value, text):
    """Five digits that count, one place of a large number, words as they are."""
    assert number_text(value) == text
