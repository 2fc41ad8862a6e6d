"""docs/reference/slurm.md: its tables are those of the code."""

from pathlib import Path

from tests.conftest import load_program

from pipistrelle.platforms.slurm.keys import KEYS

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "reference" / "slurm.md"


def test_the_tables_are_those_of_the_code():
    """If this fails, run `python docs/make_slurm.py`."""
    assert load_program("docs/make_slurm.py").page() == PAGE.read_text(encoding="utf-8")


def test_every_key_is_on_the_page():
    """Each key of each section is in a table or a list."""
    text = PAGE.read_text(encoding="utf-8")

    assert [key.name for section in KEYS.values() for key in section.values() if f"`{key.name}`" not in text] == []
