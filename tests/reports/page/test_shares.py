"""Fairshare: the targets given to a run's scheduler against the jobs' usage."""

import duckdb
import pytest

from pipistrelle.reports.page.shares import fairshare_targets
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.run import RunOptions, run


def test_shares_of_pbs_are_relative():
    """Shares sum to all usage; targets are missing without a configuration or without the run's command."""
    told = fairshare_targets({"fairshare-shares": {"ada": 30.0, "bob": 10.0, "eve": 0.0}, "fairshare-entity": "group"})

    assert told == [{"label": "group", "targets": {"ada": 0.75, "bob": 0.25}, "how": "--fairshare-shares"}]
    assert fairshare_targets({"fairshare-shares": {}, "config": None}) == []
    assert fairshare_targets(None) == []


def test_targets_of_a_maui_cfg(tmp_path):
    """FSTARGET is in percent, for each kind of name; a file changed since the run gives no targets."""
    config = tmp_path / "maui.cfg"
    config.write_text("FSPOLICY DEDICATEDPS\nUSERCFG[ada] FSTARGET=25.0\nCLASSCFG[long] FSTARGET=40.0-\n")
    told = fairshare_targets({"config": str(config), "files": {}})

    assert {one["label"]: one["targets"] for one in told} == {"user": {"ada": 0.25}, "queue": {"long": 0.4}}
    assert fairshare_targets({"config": str(config), "files": {str(config): "0" * 64}}) == []
    assert fairshare_targets({"config": str(tmp_path / "gone")}) == []


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """Return the outputs of the demo under pbs with shares for some users, up to its tenth day."""
    folder = tmp_path_factory.mktemp("shared") / "pbs"
    spec = RunSpec(workload=("demo",), scheduler="pbs", fairshare_shares={"1": 50.0, "2": 30.0, "3": 20.0}, until="10d")
    run(spec, RunOptions(out=folder))
    return folder


def test_targets_against_delivered(show, shared):
    """Each target, and the share of all unit-hours that the jobs of the user had, with those that still ran."""
    page = show(shared)
    found = page.run(
        """
        return [...document.querySelectorAll(".fairshare tbody tr")].map((row) =>
          [row.children[0].textContent, ...[1, 2, 3].map((at) => Number(row.children[at].dataset.value))]);
        """
    )
    query = """
    with units as (select job_id as job, time::double as start, split_part('0-' || part, '-', -1)::int
                          - split_part(part, '-', 1)::int + 1 as size
                   from (select *, unnest(string_split(alloc, ' ')) as part
                         from read_csv('{0}/out_decisions.csv', all_varchar = true)
                         where decision = 'EXECUTE_JOB' and verdict = 'carried_out')),
    ends as (select workload_name || '!' || job_id as job, finish_time::double as finish
             from read_csv('{0}/out_jobs.csv', all_varchar = true)),
    labels as (select workload_name || '!' || job_id as job, "user" as owner
               from read_csv('{0}/out_labels.csv', all_varchar = true)),
    work as (select owner, sum((coalesce(finish, 864000) - start) * size) as work
             from units left join ends using (job) join labels using (job) group by owner)
    select owner, work / (select sum(work) from work) from work
    """
    whole = dict(duckdb.sql(query.format(shared)).fetchall())

    assert [row[:2] for row in found] == [["1", 0.5], ["2", 0.3], ["3", 0.2]]
    for name, target, delivered, apart in found:
        assert delivered == pytest.approx(whole[name], rel=1e-9)
        assert apart == pytest.approx(delivered - target, abs=1e-9)
