"""Several runs on one page: each number of the comparison against DuckDB's; gains, losses, shared jobs."""

# ruff: noqa: S608 - queries over files of our own

import duckdb
import numpy as np
import pytest
from tests.reports.page.conftest import EVIL, hostile_workload
from tests.reports.page.test_figures_in_browser import cells, choose, close

from pipistrelle.runs.execution.run import RunOptions, run_in_process
from pipistrelle.traces.generator import generate

RUN = """
select workload_name || '!' || job_id as job, submission_time as submit, starting_time - submission_time as wait,
       finish_time - submission_time as turnaround, requested_number_of_resources as size, execution_time as execution,
       greatest(1, (finish_time - submission_time) / greatest(execution_time, 10)) as bounded_slowdown
from read_csv('{folder}/out_jobs.csv', header = true, types = {{'job_id': 'varchar'}})
"""
LABELS = """
select workload_name || '!' || job_id as job, "user" as owner, queue
from read_csv('{folder}/out_labels.csv', header = true, all_varchar = true)
"""


@pytest.fixture(scope="module")
def db(two_runs):
    """Return a connection to the jobs of both runs, side by side: first.wait, other.wait."""
    first, second = two_runs
    connection = duckdb.connect()
    for name, query in (
        ("one", RUN.format(folder=first)),
        ("two", RUN.format(folder=second)),
        ("labels", LABELS.format(folder=first)),
    ):
        connection.execute(f"create temp table {name} as {query}")
    return connection


@pytest.fixture(scope="module")
def page(show, two_runs):
    """Return the page of both runs; tests leave it as it opens."""
    return show(*two_runs)


def test_both_runs_are_everywhere(page):
    """Each part has both: figures, curves, machines, distributions, waits, groups, worst-served jobs, what ran."""
    heads = page.run("return [...document.querySelectorAll('#summary thead th')].map((one) => one.textContent)")
    assert heads[:3] == ["Jobs", "fcfs", "easy"]
    assert page.text("h1") == "fcfs and easy"
    assert page.run("return document.querySelectorAll('canvas.gantt').length") == 2
    assert page.run("return document.querySelectorAll('#heat table').length") == 2
    assert page.run("return document.querySelectorAll('#worst .answers').length") == 4
    assert page.run("return document.querySelectorAll('#chart-queue .u-series').length") == 3
    assert page.run("return window.hacked ?? null") is None
    assert [one for one in page.driver.get_log("browser") if one["level"] != "INFO"] == []


def test_figures_of_the_jobs_in_common(page, db):
    """Means, quantiles, differences and the number of jobs that do better and worse."""
    found = cells(page, "#paired-figures")

    assert len(found) == 6
    for at, metric in enumerate(("wait", "turnaround", "bounded_slowdown")):
        for run, name in enumerate(("one", "two")):
            column = f"{name}.{metric}"
            query = f"select avg({column}), quantile_cont({column}, 0.5), quantile_cont({column}, 0.95), max({column})"
            close(found[2 * at + run][2:6], db.execute(f"{query} from one join two using (job)").fetchone())
        change = f"two.{metric} - one.{metric}"
        query = f"select avg({change}), count(*) filter ({change} < -2e-6), count(*) filter ({change} > 2e-6)"
        close(found[2 * at + 1][6:], db.execute(f"{query} from one join two using (job)").fetchone())


def split_of(page):
    """Return the figures of the tiles above the changes."""
    script = """
    const tiles = [...document.querySelectorAll("#compare [data-split]")];
    return Object.fromEntries(tiles.map(({dataset}) => [dataset.split, Number(dataset.value)]));
    """
    return page.run(script)


@pytest.mark.parametrize(("least", "where"), [("", "true"), (8, "one.size >= 8")])
def test_changes_of_chosen_jobs(page, db, least, where):
    """Of all jobs, and of those that a filter leaves."""
    choose(page, "#filter-least", least)
    found = split_of(page)
    rows = cells(page, "#change-table")
    page.run("document.getElementById('filter-clear').click()")
    change = "two.wait - one.wait"
    mean, better, worse, median = db.execute(
        f"""select avg({change}), count(*) filter ({change} < -2e-6), count(*) filter ({change} > 2e-6),
        quantile_cont({change}, 0.5) from one join two using (job) where {where}"""
    ).fetchone()
    groups = db.execute(
        f"""select owner, count(*), avg({change}), sum({change}) / 3600, count(*) filter ({change} < -2e-6),
        count(*) filter ({change} > 2e-6) from one join two using (job) join labels using (job) where {where}
        group by 1 order by 4"""
    ).fetchall()

    close([found[name] for name in ("mean", "better", "worse", "median")], [mean, better, worse, median])
    assert [row[0] for row in rows] == [row[0] for row in groups]
    assert EVIL in {row[0] for row in rows}
    for one, other in zip(rows, groups, strict=True):
        close(one[1:], other[1:])


def test_curves_of_changes(page, db):
    """Which share of the jobs changed at most so much, and the mean change over time."""
    page.run("document.querySelectorAll('#compare details').forEach((one) => { one.open = true; })")
    page.driver.execute_async_script("setTimeout(arguments[0], 0)")
    shares, means = cells(page, "#chart-changes + details"), cells(page, "#chart-change-time + details")
    change = "two.wait - one.wait"
    for most, share in shares[::25]:
        wanted = db.execute(
            f"select avg(({change} <= {most} + 1e-9)::int) * 100 from one join two using (job)"
        ).fetchone()
        assert share == pytest.approx(wanted[0], abs=0.21)  # a job on the very edge
    width = (means[-1][0] - means[0][0]) / (len(means) - 1)
    first = means[0][0] - width / 2
    query = f"select floor((one.submit - {first}) / {width} + 1e-9), avg({change}) / 3600 from one join two using (job)"
    by_bin = dict(db.execute(f"{query} group by 1").fetchall())
    close([None if row[1] == "–" else row[1] for row in means], [by_bin.get(at) for at in range(len(means))])


def test_changes_by_size_and_run_time(page, db):
    """Each cell's mean change and number of jobs; less wait is blue, more is orange."""
    found = page.run(
        """
        const rows = [...document.querySelectorAll("#heat-change tbody tr")];
        return rows.flatMap((row, size) => [...row.querySelectorAll("td")].flatMap(({dataset, style}, time) =>
          dataset.jobs ? [[size, time, Number(dataset.jobs), Number(dataset.value), style.background]] : []));
        """
    )
    bounds = " + ".join(f"(one.execution >= {bound})::int" for bound in (60, 600, 3600, 21600, 86400))
    wanted = db.execute(
        f"""select ceil(log2(one.size) / 2 - 1e-12)::int, {bounds}, count(*), avg(two.wait - one.wait)
        from one join two using (job) group by 1, 2 order by 1, 2"""
    ).fetchall()

    assert len(found) == len(wanted) > 5
    for (*one, paint), other in zip(found, wanted, strict=True):
        close(one, other)
        red, _, blue = (int(part) for part in paint.removeprefix("rgb(").removesuffix(")").split(","))
        assert other[3] == 0 or (blue > red) == (other[3] < 0)


def test_largest_gains_and_losses(page, db):
    """The jobs with the largest changes either way, with both waits."""
    found = page.run(
        """
        const tables = [...document.querySelectorAll("#compare .grid:last-child table")];
        return tables.map((table) => [...table.querySelectorAll("tbody tr")].map((row) =>
          [...row.children].map((cell) => cell.dataset.value)));
        """
    )
    for table, order, where in ((found[0], "", "<"), (found[1], "desc", ">")):
        wanted = db.execute(
            f"""select two.wait - one.wait change from one join two using (job)
            where change {where} 0 order by change {order} limit 10"""
        ).fetchall()
        close([float(row[4]) for row in table], [row[0] for row in wanted])
        for job, size, before, after, change in table:
            row = db.execute("select one.size, one.wait, two.wait from one join two using (job) where job = ?", [job])
            close([float(size), float(before), float(after)], row.fetchone())
            assert float(change) == pytest.approx(float(after) - float(before), abs=2e-6)


def test_runs_of_different_workloads(show, two_runs, tmp_path):
    """The page says that the runs differ, and joins them by their common jobs."""
    run_in_process(hostile_workload().select(np.arange(300)), "easy", options=RunOptions(out=tmp_path / "some"))
    page = show(two_runs[0], tmp_path / "some")

    assert "The runs have different workloads. The comparison covers the 300 jobs with" in page.text("#compare")
    assert split_of(page)["better"] > 0


def test_runs_without_a_job_in_common(show, two_runs, tmp_path):
    """They are shown side by side, and the page says that nothing is compared."""
    run_in_process(generate(jobs=50, units=64, seed=9), "easy", options=RunOptions(out=tmp_path / "other"))
    page = show(two_runs[0], tmp_path / "other")

    assert "no job in common" in page.text("#compare")
    assert page.run("return document.querySelectorAll('canvas.gantt').length") == 2
    assert [one for one in page.driver.get_log("browser") if one["level"] != "INFO"] == []
