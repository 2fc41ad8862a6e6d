"""A month of Titan under the policies of the paper on GPUs' age: what must come out (docs/reference/placing.md)."""

from pathlib import Path

import numpy as np
import pytest

from pipistrelle.models.workloads.class_jobs import generate_jobs
from pipistrelle.models.workloads.classes import load_classes
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.reports.placement import titan_month

LIVES = "Titan-GPU-lives-2013-2019.csv.xz"


def test_the_closed_form_of_the_papers_figures() -> None:
    """55 % of the hours, a third more stable ones: 44.4 %, and 41.7 % where old GPUs fail 15 times as often."""
    assert round(titan_month.paper_share(8500 / 18688, titan_month.TABLE_II), 3) == 0.444
    assert round(titan_month.paper_share(8434 / 18688, (1.0, 15.0)), 3) == 0.417
    assert titan_month.paper_share(0.5, (1.0, 1.0)) == pytest.approx(0.55)
    assert titan_month.failure_share((1.0, 2.0), (4.0, 4.0), (1.0, 3.0)) == pytest.approx(7 / 16)


def test_the_month_is_as_large_as_the_papers() -> None:
    """About 4,000 jobs within table I's bins, less than the machine can do, some of them of accounts without GPUs."""
    classes = load_classes("titan-month")
    jobs = generate_jobs(classes, 1)
    bins = ((11250, 24.0), (3750, 24.0), (125, 6.0), (1, 2.0))
    longest = np.array([next(hours for least, hours in bins if size >= least) for size in jobs.size.tolist()])

    assert 3900 <= len(jobs) <= 4100
    assert 0.9 < classes.offered_load < 1.0
    assert (jobs.walltime <= longest * 3600).all()
    assert (jobs.runtime <= jobs.walltime).all()
    assert {one.name for one in classes.accounts if not one.gpu} == {"climate", "engineering"}


@pytest.mark.slow
def test_stable_hours_and_hops_rise_where_stable_nodes_go_first(traces_dir: Path) -> None:
    """With each point where the ends part, and with CPU-only accounts: utilisation stays."""
    platform = titan_month.machine_of(str(traces_dir / LIVES), "2017-05-01")
    machine = Machine(platform.units, platform.info)
    jobs = generate_jobs(load_classes("titan-month"), 1)
    months = {case: titan_month.month(platform, jobs, case) for case in titan_month.CASES}
    base, cpu = months["DE16, base"], months["DE16 + CPU-only, reordered"]

    assert int(machine.nodes.stable.sum()) == 8434  # type: ignore[union-attr]
    assert base.utilisation > 0.9
    for case, one in months.items():
        assert abs(one.utilisation - base.utilisation) < 0.01
        if "reordered" in case:
            before = months[case.replace("reordered", "base")]
            assert one.stable_hours > before.stable_hours
            assert one.mean_hops > before.mean_hops
    assert cpu.gpu_stable_hours > months["DE16, reordered"].gpu_stable_hours


@pytest.mark.slow
def test_the_share_of_failures_is_that_of_the_closed_form(traces_dir: Path) -> None:
    """Failures hit leadership jobs as often as the form predicts from the run's own hours."""
    platform = titan_month.machine_of(str(traces_dir / LIVES), "2017-05-01")
    stable = Machine(platform.units, platform.info).nodes.stable
    jobs = generate_jobs(load_classes("titan-month"), 1)
    simulated, count, form = titan_month.failures(
        platform, jobs, "Bin20Bin60, reordered", stable, titan_month.DRAWS[:2]
    )
    low, high = titan_month.interval(form, count)

    assert count > 300
    assert low <= simulated <= high
