"""The outputs' tables as columns: the quick way and Python's own reader agree, whatever the cells hold."""

import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.runs.folders.files import ExplainError
from pipistrelle.runs.folders.tables import OutputTables, numbers
from pipistrelle.server.outputs.csv_file import csv_text

CELLS = st.text('ab0," \n\ré', max_size=4)


@settings(max_examples=60)
@given(st.lists(st.tuples(CELLS, CELLS, st.sampled_from(["", "x", 'say "a"'])), max_size=6), st.booleans())
def test_cells_are_those_of_the_csv_reader(tmp_path_factory, rows, quoted):
    """Quotes, commas and line ends in cells; a last column that is always quoted; no rows at all."""
    text = io.StringIO()
    text.write("a,b,c\n")
    for one, other, last in rows:
        shown = f'"{last}"' if quoted and '"' not in last else csv_text(last)
        text.write(f"{csv_text(one)},{csv_text(other)},{shown}\n")
    folder = tmp_path_factory.mktemp("tables")
    (folder / "out_jobs.csv").write_bytes(text.getvalue().encode())
    wanted = list(csv.reader(io.StringIO(text.getvalue(), newline=""), strict=True))[1:]
    found = OutputTables(folder).columns("jobs", "a", "b", "c")

    assert [list(row) for row in zip(*found.values(), strict=True)] == wanted


@pytest.mark.parametrize("end", ["3,4", "3", '3,"x', "3,4\n5"])
def test_a_line_that_was_cut_off_is_left_out(tmp_path, end):
    """Where a run was killed while it wrote."""
    (tmp_path / "out_jobs.csv").write_text(f"a,b\n1,2\n{end}")
    found = OutputTables(tmp_path).columns("jobs")

    assert found["a"][0] == "1"
    assert len(found["a"]) == (2 if "\n" in end else 1)


def test_numbers_are_finite():
    """Empty cells have a value of their own; other non-finite numbers are an error."""
    assert numbers(["1.5", "", "-2"], empty=7.0).tolist() == [1.5, 7.0, -2.0]
    for wrong in ("x", "inf", "nan"):
        with pytest.raises(ExplainError, match=f"is not a number: found '{wrong}'"):
            numbers(["1", wrong])
