"""The page's section on estimates for waiting jobs: figures, texts and choices."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.reports.page.conftest import EVIL

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.reports.estimates.queue_estimates import error_figures, queue_then
from pipistrelle.reports.page.page import page_of
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.run import RunOptions, run
from pipistrelle.runs.folders.files import ExplainError

MOMENTS = 8
ROWS = """
return [...document.querySelectorAll(`${arguments[0]} tbody tr`)].map((row) => [...row.children].map((cell) => {
  const {value} = cell.dataset;
  return value === undefined || value === "" || Number.isNaN(Number(value)) ? value ?? cell.textContent : Number(value);
}));
"""
CHOOSE = """
const one = document.getElementById(arguments[0]);
one.value = arguments[1];
one.dispatchEvent(new Event("change"));
"""


@pytest.fixture(scope="module")
def waiting_runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the outputs of 120 jobs, one of them and every fifth user named by markup, under easy and fcfs."""
    folder = tmp_path_factory.mktemp("waiting")
    draw = np.random.default_rng(8)
    jobs, profiles = [], {}
    for number in range(120):
        runtime, asked = int(draw.integers(60, 4000)), int(draw.integers(1, 4))
        profiles[f"d{runtime}"] = {"type": "delay", "delay": runtime}
        jobs.append(
            {
                "id": f"{EVIL} {number}" if number == 60 else str(number),
                "subtime": number * 200,
                "res": int(draw.integers(1, 9)),
                "walltime": runtime * asked,
                "profile": f"d{runtime}",
                "user": EVIL if number % 5 == 0 else f"user {number % 3}",
            }
        )
    path = folder / "jobs.json"
    path.write_text(json.dumps({"nb_res": 16, "jobs": jobs, "profiles": profiles}), encoding="utf-8")
    for name in ("easy", "fcfs"):
        run(RunSpec(workload=(str(path),), scheduler=name), RunOptions(out=folder / name))
    return folder / "easy", folder / "fcfs"


@pytest.fixture
def page(show: Any, waiting_runs: tuple[Path, Path]) -> Any:
    """Return the page of both, with estimates."""
    return show(*waiting_runs, estimates_at=MOMENTS)


def moments(folder: Path) -> list[float]:
    """Return the moments that the page checks, computed from the outputs."""
    config = json.loads((folder / "out_summary.json").read_text(encoding="utf-8"))
    return [(number + 0.5) / MOMENTS * config["makespan"] for number in range(MOMENTS)]


def errors(folder: Path, user: str | None = None) -> list[float]:
    """Return the errors of the estimates at these moments, each asked for by itself."""
    found = []
    for at in moments(folder):
        try:
            queue = queue_then(folder, at, {} if user is None else {"user": user})
        except ExplainError:  # no job waited
            continue
        found += [one.error for one in queue.jobs if one.error is not None]
    return found


def test_figures_are_those_of_each_moment(page: Any, waiting_runs: tuple[Path, Path]) -> None:
    """For all jobs and for one user's: as `explain queue --at` computes them, for each run."""
    for user in (None, "user 1"):
        if user is not None:
            option = "[...document.getElementById('filter-user').options].find((one) => one.textContent === 'user 1')"
            page.run(CHOOSE, "filter-user", page.run(f"return {option}.value"))
        for row, folder in zip(page.run(ROWS, "#estimates-figures"), waiting_runs, strict=True):
            found = errors(folder, user)
            figures = error_figures(found)
            assert len(found) > 10
            assert row[1:3] == [MOMENTS, figures.jobs]
            told = [row[3], row[6], row[9], row[10], row[11]]
            shares = [figures.earlier / figures.jobs, figures.later / figures.jobs]
            assert told == pytest.approx([figures.mean, figures.median, figures.mean_absolute, *shares], abs=1e-4)
            assert row[12:] == [0, 0]


def test_queued_jobs_at_a_moment(page: Any, waiting_runs: tuple[Path, Path]) -> None:
    """A chosen moment has a table of the queued jobs, with expected and actual starts."""
    at = moments(waiting_runs[1])[5]
    page.run(CHOOSE, "estimates-moment", "1 5")
    page.run("document.querySelector('#estimates button.more')?.click()")
    rows = page.run(ROWS, "#estimates-then")
    expected = {one.job: (one.expected, one.happened) for one in queue_then(waiting_runs[1], at, {}).jobs}

    assert {row[0]: (row[3], row[4]) for row in rows} == {
        job: (pytest.approx(begin, abs=1e-4), pytest.approx(start, abs=1e-4))
        for job, (begin, start) in expected.items()
    }


def test_markup_in_names_is_text(page: Any, waiting_runs: tuple[Path, Path]) -> None:
    """Users and ids that would like to be markup are shown as they are, at every moment."""
    texts = []
    for number in range(2 * MOMENTS):
        page.run(CHOOSE, "estimates-moment", f"{number // MOMENTS} {number % MOMENTS}")
        texts.append(page.text("#estimates-then"))

    assert any(EVIL in text for text in texts)
    assert page.run("return window.hacked ?? null") is None
    assert page.run("return document.querySelectorAll('#estimates img, #estimates script').length") == 0
    assert [one for one in page.driver.get_log("browser") if one["level"] != "INFO"] == []


def test_its_drawings_have_names_and_tables(page: Any) -> None:
    """No drawing is blank; each has a description, and its data is also in a table."""
    found = page.run(
        """
        return [...document.querySelectorAll("#estimates [role=img]")].map((one) => {
          const canvas = one.matches("canvas") ? one : one.querySelector("canvas");
          const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          return [one.getAttribute("aria-label"), new Set(new Uint32Array(data.buffer)).size];
        });
        """
    )
    assert len(found) == 4
    assert all(label and seen > 3 for label, seen in found), found
    page.run("document.querySelector('#estimates details').open = true")
    page.driver.execute_async_script("setTimeout(arguments[0], 50)")
    rows = page.run(ROWS, "#estimates details")
    assert MOMENTS <= len(rows) <= 2 * MOMENTS  # each run's own
    assert sum(row[1] for row in rows if row[1] != "") > 10
    nodes = page.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    wanted = {"button", "combobox", "image", "table", "region"}
    assert all(
        node.get("name", {}).get("value")
        for node in nodes
        if not node.get("ignored") and node["role"]["value"] in wanted
    )


def test_without_the_option_there_is_no_such_part(show: Any, waiting_runs: tuple[Path, Path]) -> None:
    """Estimates cost another run, so they are made only on request."""
    page = show(waiting_runs[0])

    assert page.run("return document.getElementById('estimates')") is None


def test_a_run_that_cannot_be_repeated_is_one_message(failing_run: Path) -> None:
    """Outputs without their command have no estimates, and the page says so."""
    with pytest.raises(PipistrelleError, match="out_command"):
        page_of([failing_run], estimates_at=3)
