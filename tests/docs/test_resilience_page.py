"""docs/how-to/resilience.md: options and members are the code's, and the figures follow from its formulas."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipistrelle.platforms.failures.yield_model import SHAPES, SLIDES, YieldModel
from pipistrelle.traces.resilience import MEMBERS, Kind, parse_resilience, resilience_of

PAGE = "docs/how-to/resilience.md"
ROOT = Path(__file__).resolve().parent.parent.parent
#: examples for the placeholders in the options
EXAMPLES = {"daly|young|TIME": "daly", "TIME": "2min", "N|SHARE%": "1%"}

HOUR, YEAR = 3600.0, 365.25 * 86400.0


def estimate(cell: str) -> tuple[float, float, float]:
    """Return the value and the ends of its interval from a cell such as ``0.50 [0.48, 0.52]``."""
    value, low, high = (float(number) for number in re.findall(r"[\d.]+", cell))
    assert low < value < high
    return value, low, high


def options_of(cell: str) -> dict[str, str]:
    """Return {option: value} for the first column, with an example for each placeholder."""
    words = cell.strip("`").split()
    names = (word.removeprefix("--") for word in words[::2])
    return dict(zip(names, (EXAMPLES.get(word, word) for word in words[1::2]), strict=True))


def test_each_row_of_options_is_a_kind_of_resilience(
    section: Callable[[str, str], str], table: Callable[[str], list[list[str]]]
) -> None:
    """In the table's order: every way, each given by the options of its row."""
    rows = [row[0] for row in table(section(PAGE, "Resilience"))]
    kinds = [parse_resilience(**({} if row == "none" else options_of(row))).kind for row in rows]

    assert kinds == list(Kind.__args__)  # type: ignore[attr-defined]
    named = {name for row in rows if row != "none" for name in options_of(row)}
    assert named == set(MEMBERS)


def test_the_job_of_the_example_can_be_read(
    section: Callable[[str, str], str], json_values: Callable[[str], list[Any]]
) -> None:
    """Its resilience has the names and values of the options."""
    block = re.search(r"```json\n(.*?)```", section(PAGE, "Resilience"), flags=re.DOTALL)
    assert block is not None
    (workload,) = json_values(block[1])
    (job,) = workload["jobs"]

    assert resilience_of(job["resilience"], "the page").kind == "spares"


@pytest.mark.parametrize(
    ("nodes", "failures"), [(400, 4), (250, 2), (60, 1)], ids=["exact", "rounded down", "at least one"]
)
def test_how_a_share_is_rounded(nodes: int, failures: int) -> None:
    """As the page says: rounded down, but at least 1."""
    text = " ".join((ROOT / PAGE).read_text(encoding="utf-8").split())

    assert "A share is rounded down, but gives at least 1" in text
    assert parse_resilience(checkpoint="daly", spares="1%").tolerated(nodes) == failures


def test_the_claim_of_the_slides(section: Callable[[str, str], str], table: Callable[[str], list[list[str]]]) -> None:
    """The yields of 1 % of spares with a day's wait are as shown for each setting."""
    text = section(PAGE, "1 % of spares and a day's wait")
    settings = [
        (SLIDES, "paper"),
        (SLIDES, "exact"),
        (replace(SLIDES, optimum="daly"), "paper"),
        (replace(SLIDES, read=0.0), "paper"),
        (replace(SLIDES, mtbf=24 * YEAR), "paper"),
        (replace(SLIDES, nodes=18_688), "paper"),
    ]
    expected = []
    for one, form in settings:
        models = [YieldModel(shape, one, form=form) for shape in SHAPES]
        shares = [model.yields(24 * HOUR)[one.nodes // 100] for model in models]
        expected.append([f"{100 * share:.2f}" for share in (*shares, models[0].yields(0.0)[0])])

    assert [row[1:] for row in table(text)] == expected
    simulated = re.findall(r"(?:rigid|moldable|grid) ([\d.]+ \[[\d., ]+\])", text)
    for cell, exact in zip(simulated, expected[1], strict=False):
        _, low, high = estimate(cell)
        assert low < float(exact) < high
    assert len(simulated) == len(SHAPES)
    enough = [
        min(YieldModel(s, replace(SLIDES, mtbf=years * YEAR)).yields(24 * HOUR)[225] for s in SHAPES)
        for years in (21.3, 21.35)
    ]
    assert enough[0] < 0.89 < enough[1]
