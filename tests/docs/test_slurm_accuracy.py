"""The page on how close the scheduler slurm is to the real slurmctld has the figures of the code."""

import runpy
from pathlib import Path

import pytest

MAKE = Path(__file__).resolve().parents[2] / "docs" / "make_slurm_accuracy.py"


@pytest.mark.slow
def test_figures_of_the_page_are_those_of_the_recordings(slurm22_dir: Path) -> None:
    """The table that the script makes from the recordings is the one on the page."""
    made = runpy.run_path(str(MAKE))
    text = made["PAGE"].read_text()
    folders = [slurm22_dir / name for name in "abcdf"]
    assert made["written"](text, made["table"](folders)) == text
