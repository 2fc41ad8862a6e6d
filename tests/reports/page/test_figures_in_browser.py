"""Each number on the page, as shown in a browser, against the summary and against DuckDB on the files."""

# ruff: noqa: S608 - queries over files of our own
import json

import duckdb
import pytest

HOUR = 3600.0
BINS = 240
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
STATISTICS = {
    "mean": "avg({})",
    "median": "quantile_cont({}, 0.5)",
    "p95": "quantile_cont({}, 0.95)",
    "most": "max({})",
}
#: lines of out_jobs.csv, and jobs over all their attempts
TABLES = """
create temp table rows as
select workload_name || '!' || regexp_replace(job_id, '#\\d+$', '') as job,
       coalesce(try_cast(regexp_extract(job_id, '#(\\d+)$', 1) as int), 0) as attempt, submission_time as submit,
       requested_number_of_resources as size, final_state as state, starting_time as start, finish_time as finish
from read_csv('{folder}/out_jobs.csv', header = true, types = {{'job_id': 'varchar'}});
create temp table labels as
select workload_name || '!' || job_id as job, "user" as owner, queue
from read_csv('{folder}/out_labels.csv', header = true, all_varchar = true);
create temp table jobs as
select *, wait + execution as turnaround, if(execution > 0, (wait + execution) / execution, 1) as slowdown,
       greatest(1, (wait + execution) / greatest(execution, 10)) as bounded
from (select job, min(submit) as submit, sum(start - submit) as wait, sum(finish - start) as execution,
             arg_min(size, attempt) as size, arg_max(state, attempt) as state, sum((finish - start) * size) as work
      from rows group by job) join labels using (job);
"""


@pytest.fixture(scope="module")
def db(failing_run):
    """Return a connection to the run's files."""
    connection = duckdb.connect()
    connection.execute(TABLES.format(folder=failing_run))
    return connection


@pytest.fixture(scope="module")
def page(show, failing_run):
    """Return the page of the run with failures; tests leave it as it opens."""
    return show(failing_run)


def cells(page, css):
    """Return the body of a table: for each row the heading's text, then each cell's number, else its text."""
    return page.run(
        """
        const value = ({dataset, textContent}) => {
          if (dataset.value === undefined) return textContent;
          return Number.isNaN(Number(dataset.value)) ? dataset.value : Number(dataset.value);
        };
        return [...document.querySelectorAll(`${arguments[0]} tbody tr`)].map((row) => [...row.children].map(value));
        """,
        css,
    )


def choose(page, css, value):
    """Choose a value of a list."""
    page.run(
        """
        const one = document.querySelector(arguments[0]);
        one.value = arguments[1];
        one.dispatchEvent(new Event("change"));
        """,
        css,
        value,
    )


def close(found, wanted):
    """Tell that numbers, or nothings, are the same up to what six decimals of the files cost."""
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        if other is None:
            assert one in (None, "–")
        else:
            assert one == pytest.approx(other, rel=1e-9, abs=2e-6)


def summary_by(db, where):
    """Return the figures of the summary, by DuckDB."""
    counts = """count(*) jobs, count(*) filter (state in ('COMPLETED_SUCCESSFULLY', 'COMPLETED_FAILED')) completed,
        count(*) filter (state = 'COMPLETED_WALLTIME_REACHED') killed_at_walltime,
        count(*) filter (state = 'COMPLETED_KILLED') killed"""
    waits = """avg(wait) mean_wait, quantile_cont(wait, 0.5) median_wait, quantile_cont(wait, 0.95) p95_wait,
        max(wait) max_wait, avg(turnaround) mean_turnaround, max(turnaround) max_turnaround,
        avg(slowdown) mean_slowdown, max(slowdown) max_slowdown, avg(bounded) mean_bounded_slowdown,
        max(bounded) max_bounded_slowdown, sum(work) computing"""
    span = "(select max(finish) - min(submit) from rows)"
    query = f"""select {counts}, {waits}, sum(work) / 64 / {span} utilisation,
        (select max(finish) from rows join jobs using (job) where {where.replace("size", "jobs.size")}) makespan
        from jobs where {where}"""
    row = db.execute(query).fetchone()
    return dict(zip([one[0] for one in db.description], row, strict=True))


def summary_on(page, place):
    """Return the figures of the summary, as the page has them in a column."""
    script = """
    const rows = [...document.querySelectorAll("#summary tr[data-figure]")];
    const value = (row) => row.children[arguments[0]].dataset.value;
    return Object.fromEntries(rows.map((row) => [row.dataset.figure, value(row) ?? null]));
    """
    return {name: None if value is None else float(value) for name, value in page.run(script, place).items()}


def test_the_summary_is_that_of_the_run(page, db, failing_run):
    """All figures equal those of out_summary.json and of the files to the last digit."""
    told = json.loads((failing_run / "out_summary.json").read_text())
    found = summary_on(page, 1)

    assert found == {name: told[name] for name in found}
    assert len(found) == 19
    by_hand = summary_by(db, "true")
    close([found[name] for name in by_hand], list(by_hand.values()))


def test_figures_of_chosen_jobs(page, db):
    """With a filter, figures of the matching jobs are added; without one, computed figures equal the run's."""
    choose(page, "#filter-least", 1)
    whole, again = summary_on(page, 1), summary_on(page, 2)
    close(list(again.values()), list(whole.values()))
    choose(page, "#filter-least", 8)
    chosen, by_hand = summary_on(page, 2), summary_by(db, "size >= 8")
    page.run("document.getElementById('filter-clear').click()")

    close([chosen[name] for name in by_hand], list(by_hand.values()))


def curve(page, name):
    """Return the bins' width, their beginnings and values of a curve, from the table behind it."""
    page.run("document.querySelector(arguments[0]).open = true", f"#chart-{name} + details")
    page.driver.execute_async_script("setTimeout(arguments[0], 0)")
    found = cells(page, f"#chart-{name} + details")
    page.run("document.querySelector(arguments[0]).open = false", f"#chart-{name} + details")
    middles = [row[0] for row in found]
    width = (middles[-1] - middles[0]) / (len(middles) - 1)
    return width, middles[0] - width / 2, [None if row[1] == "–" else row[1] for row in found]


@pytest.mark.parametrize(
    ("name", "begin", "end", "amount"),
    [
        ("utilisation", "start", "finish", "100.0 * size / 64"),
        ("queue", "submit", "start", "1.0"),
        ("backlog", "submit", "start", "size * (finish - start) / 64 / 3600"),
    ],
)
def test_curves_of_levels(page, db, name, begin, end, amount):
    """Units in use, jobs that wait and their work: the mean over each stretch of time."""
    width, first, found = curve(page, name)
    wanted = db.execute(
        f"""select coalesce(sum(greatest(0, least({end}, upper) - greatest({begin}, lower)) * {amount}), 0) / {width}
        from (select bin, {first} + bin * {width} lower, {first} + (bin + 1) * {width} upper from range({BINS}) r(bin)),
        rows group by bin order by bin"""
    ).fetchall()

    assert len(found) == BINS
    for one, (other,) in zip(found, wanted, strict=True):
        assert one == pytest.approx(other, rel=1e-6, abs=1e-6)


def test_curves_of_failures(page, db, failing_run):
    """Nodes out of service by failures and in maintenance, and lost work by when attempts ended."""
    width, first, down = curve(page, "down-0")
    wanted = db.execute(
        f"""select coalesce(sum(greatest(0, least(up, upper) - greatest(down, lower))), 0) / {width}
        from (select bin, {first} + bin * {width} lower, {first} + (bin + 1) * {width} upper from range({BINS}) r(bin)),
        read_csv('{failing_run}/out_outages.csv', header = true) where planned = 0 group by bin order by bin"""
    ).fetchall()
    close(down, [one for (one,) in wanted])
    width, first, lost = curve(page, "lost-0")
    attempts = f"read_csv('{failing_run}/out_attempts.csv', header = true, types = {{'job_id': 'varchar'}})"
    query = f"select floor((finish_time - {first}) / {width}), sum(unit_seconds_lost) / 3600 from {attempts} group by 1"
    by_bin = dict(db.execute(query).fetchall())
    close(lost, [by_bin.get(bin_, 0.0) for bin_ in range(BINS)])
    assert max(lost) > 1


@pytest.mark.parametrize("statistic", STATISTICS)
def test_curves_of_jobs(page, db, statistic):
    """Waits and slowdowns by submission: each statistic over the jobs of each stretch of time; gaps without any."""
    choose(page, "#time select", statistic)
    for name, column in (("waits", "wait / 3600"), ("slowdowns", "bounded")):
        width, first, found = curve(page, name)
        place = f"least({BINS - 1}, floor((submit - {first}) / {width} + 1e-9))"
        query = f"select {place}, {STATISTICS[statistic].format(column)} from jobs group by 1"
        wanted = dict(db.execute(query).fetchall())
        close(found, [wanted.get(bin_) for bin_ in range(BINS)])
    choose(page, "#time select", "mean")


@pytest.mark.parametrize(
    ("name", "column"), [("wait", "wait"), ("bounded", "bounded"), ("execution", "execution"), ("size", "size")]
)
def test_quantiles(page, db, name, column):
    """The quantiles below each distribution."""
    found = cells(page, f"#chart-ecdf-{name} + div")[0][1:]

    close(
        found,
        db.execute(
            f"select {', '.join(f'quantile_cont({column}, {share})' for share in QUANTILES)} from jobs"
        ).fetchone(),
    )


@pytest.mark.parametrize("statistic", STATISTICS)
def test_waits_by_size_and_run_time(page, db, statistic):
    """Each cell's wait and number of jobs."""
    choose(page, "#heat select", statistic)
    found = page.run(
        """
        const rows = [...document.querySelectorAll("#heat-0 tbody tr")];
        return rows.flatMap((row, size) => [...row.querySelectorAll("td")].flatMap(({dataset}, time) =>
          dataset.jobs ? [[size, time, Number(dataset.jobs), Number(dataset.value)]] : []));
        """
    )
    bounds = " + ".join(f"(execution >= {bound})::int" for bound in (60, 600, 3600, 21600, 86400))
    wanted = db.execute(
        f"""select ceil(log2(size) / 2 - 1e-12)::int, {bounds}, count(*), {STATISTICS[statistic].format("wait")}
        from jobs group by 1, 2 order by 1, 2"""
    ).fetchall()
    choose(page, "#heat select", "mean")

    assert len(found) == len(wanted) > 5
    for one, other in zip(found, wanted, strict=True):
        close(one, other)


@pytest.mark.parametrize(("label", "column"), [("user", "owner"), ("queue", "queue")])
def test_jobs_by_whom(page, db, label, column):
    """Jobs, unit-hours, shares, waits and slowdowns of each user and queue, those with most work first."""
    choose(page, "#groups-by", label)
    found = cells(page, "#groups-table")
    wanted = db.execute(
        f"""select {column}, count(*), sum(work) / 3600, sum(work) / (select sum(work) from jobs), avg(wait),
        quantile_cont(wait, 0.5), quantile_cont(wait, 0.95), avg(bounded) from jobs group by 1 order by 3 desc"""
    ).fetchall()
    choose(page, "#groups-by", "user")

    assert [row[0] for row in found] == [row[0] for row in wanted]
    for one, other in zip(found, wanted, strict=True):
        close(one[1:], other[1:])


def test_failure_figures(page, db, failing_run):
    """Failures, the use of the units' time, and the nodes with most failures."""
    told = json.loads((failing_run / "out_summary.json").read_text())["reliability"]
    figures = {row[0]: row[1] for row in cells(page, "#failures .grid > .scroll:nth-child(1)")}
    outages = f"read_csv('{failing_run}/out_outages.csv', header = true)"
    attempts = f"read_csv('{failing_run}/out_attempts.csv', header = true, types = {{'job_id': 'varchar'}})"
    down = db.execute(
        f"""select count(*) filter (planned = 0), sum(up - down) filter (planned = 0) / 3600,
        count(*) filter (planned = 1), sum(up - down) filter (planned = 1) / 3600 from {outages}"""
    ).fetchone()
    dumps = db.execute(f"select sum(dumps), sum(reads) from {attempts}").fetchone()
    names = ["node_failures", "availability", "attempts", "interrupted_attempts", "survived_failures", "given_up"]

    close(list(figures.values()), [*(told[name] for name in names), *down, *dumps])
    assert told["interrupted_attempts"] > 5
    assert dumps[0] > 5
    spent = cells(page, "#failures .grid > .scroll:nth-child(2)")
    wanted = [told["unit_seconds"][name] / HOUR for name in told["unit_seconds"]]
    assert sorted(row[1] for row in spent) == pytest.approx(sorted(wanted), rel=1e-9, abs=1e-6)
    columns = ", ".join(
        f"sum(unit_seconds_{name})"
        for name in ("useful", "unsaved", "lost", "dumping", "reading", "spare", "down", "waiting", "overhead")
    )
    sums = db.execute(f"select {columns} from {attempts}").fetchone()
    close([row[1] for row in spent], [one / HOUR for one in sums])
    close([row[2] for row in spent], [one / sum(sums) for one in sums])
    nodes = cells(page, "#nodes-0")
    most = db.execute(
        f"""select node, pool, failures, time_down, time_in_maintenance, time_busy
        from read_csv('{failing_run}/out_nodes.csv', header = true)
        order by failures desc, round(time_down, 6) desc, node limit 10"""
    ).fetchall()
    for one, other in zip(nodes, most, strict=True):
        assert one[1] == other[1]
        close([one[0], *one[2:]], [other[0], *other[2:]])


@pytest.mark.parametrize(("place", "column"), [(0, "wait"), (1, "bounded")])
def test_worst_served_jobs(page, db, place, column):
    """The jobs that waited longest and those that were slowed down most, with their figures and their user."""
    tables = page.run(
        """
        const values = (row) => [...row.children].map((cell) => cell.dataset.value ?? cell.textContent);
        return [...document.querySelectorAll("#worst .answers")].map((table) =>
          [...table.querySelectorAll("tbody tr")].map(values));
        """
    )
    wanted = db.execute(
        f"select job, wait, bounded, size, execution, owner from jobs order by {column} desc, submit limit 10"
    ).fetchall()

    assert [row[0] for row in tables[place]] == [row[0] for row in wanted]
    assert [row[5] for row in tables[place]] == [row[5] for row in wanted]
    for one, other in zip(tables[place], wanted, strict=True):
        close([float(value) for value in one[1:5]], other[1:5])
