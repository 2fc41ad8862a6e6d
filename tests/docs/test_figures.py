"""The table of figures on the page of guarantees is reproduced from the real logs, if they are present."""

import re
from pathlib import Path

import pytest

from pipistrelle.runs.execution.run import run_in_process

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "explanation" / "guarantees.md"
ROWS = re.findall(
    r"^\| (\S+) \| (\S+) \| ([\d,]+) \| (\S+) \| ([\d.]+) \| ([\d.]+) \| (\d+) \|$",
    PAGE.read_text(encoding="utf-8"),
    flags=re.MULTILINE,
)


def test_the_table_has_every_row() -> None:
    """The table has a row for each measured log and scheduler."""
    assert len(ROWS) == 7


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=[f"{row[0]}-{row[3]}" for row in ROWS])
def test_a_row_is_reproduced(row: tuple[str, ...], traces_dir: Path) -> None:
    """Jobs, mean wait, mean bounded slowdown and makespan are reproduced to the last digit shown."""
    log, platform, _, scheduler, _, _, _ = row
    summary = run_in_process(str(traces_dir / log), scheduler, platform=platform).summary

    measured = (
        f"{summary.jobs - summary.rejected:,}",
        scheduler,
        f"{summary.mean_wait:.3f}",
        f"{summary.mean_bounded_slowdown:.4f}",
        f"{summary.makespan:.0f}",
    )
    assert measured == row[2:]
