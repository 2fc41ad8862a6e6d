"""Simulate a month of Titan under a paper's policies.

The results are compared with the paper's. The paper is Zimmer et al., GPU Age-Aware Scheduling to Improve the
Reliability of Leadership Jobs on Titan, 2018; see docs/reference/placing.md. Jobs are drawn from the model
``titan-month``, the platform is ``titan``, and the scheduler is ``titan-bins`` (the bins of the paper's table I, two
reservations). Which GPUs are stable is read from the published lifetimes of Titan's GPUs.

    python benchmarks/titan_month.py Titan-GPU-lives-2013-2019.csv.xz [--at 2017-05-01] [--seed 1] [--months 1]
"""

import argparse
from collections.abc import Callable
from functools import partial

import numpy as np
from started import started

from pipistrelle.models.workloads.class_jobs import generate_jobs
from pipistrelle.models.workloads.classes import load_classes
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.reports.placement.titan_month import (
    BUCKETS,
    CASES,
    HOUR,
    MONTH,
    TABLE_II,
    WEEK,
    Month,
    failure_share,
    failures,
    interval,
    machine_of,
    month,
    paper_share,
)

__all__ = ["CASES", "failure_share", "paper_share"]  # used by tests


def lines(months: dict[str, list[Month]], machine: int) -> list[str]:
    """Return a table of the simulated metrics: means over all months.

    It has one line per policy.

    Args:
        months: {policy: its months}.
        machine: number of nodes.
    """

    def mean(case: str, of: Callable[[Month], float]) -> float:
        return float(np.mean([of(one) for one in months[case]]))

    head = f"{'policy':28} {'util.':>6} {'leadership':>10} {'stable h/week':>13} {'of GPU jobs':>12} {'hops':>6}"
    found = [head + "".join(f" {bucket + ' mean (least, most)':>27}" for bucket in BUCKETS)]
    for case, runs in months.items():
        delivered = mean(case, lambda one: sum(one.delivered))
        text = f"{case:28} {mean(case, lambda one: one.utilisation):6.2%}"
        text += f" {mean(case, lambda one: one.leadership_hours) / delivered:10.1%}"
        for of in (lambda one: one.stable_hours, lambda one: one.gpu_stable_hours):
            text += f" {mean(case, of) / (MONTH / HOUR / WEEK):12,.0f}"
        text += f" {mean(case, lambda one: one.mean_hops):8.3f}"
        for bucket in BUCKETS:
            each = [one.stable_nodes(bucket, machine) for one in runs]
            average, least, most = np.mean([x[0] for x in each]), min(x[1] for x in each), max(x[2] for x in each)
            text += f" {average:12,.0f} ({least:,} to {most:,})".rjust(28)
        found.append(text)
    return found


def compared(months: dict[str, list[Month]], machine: int) -> list[str]:
    """Return a table of the gains from sorting the node list by GPU age.

    One column has the gains that the paper reports. Each further column has the simulated gains of one dual-ended
    policy.
    """

    def more(case: str, base: str, of: Callable[[Month], float]) -> float:
        return float(np.mean([of(one) for one in months[case]])) - float(np.mean([of(one) for one in months[base]]))

    def gpus(bucket: str, case: str, base: str) -> str:
        return f"{more(case, base, lambda one: one.stable_nodes(bucket, machine)[0]):+,.0f}"

    def both(text: Callable[[str, str], str]) -> tuple[str, ...]:
        return tuple(text(f"{point}, reordered", f"{point}, base") for point in ("DE16", "Bin20Bin60"))

    def share(case: str, base: str) -> str:
        before = float(np.mean([one.stable_hours for one in months[base]]))
        return f"{more(case, base, lambda one: one.stable_hours) / before:+.1%}"

    weeks = MONTH / HOUR / WEEK
    cpu, aged, base = "DE16 + CPU-only, reordered", "DE16, reordered", "DE16, base"
    own = more(cpu, aged, lambda one: one.gpu_stable_hours)
    rows = [
        ("stable leadership hours", "+33 %", *both(share)),
        (
            "the same, hours a week",
            "+200,000",
            *both(lambda case, base: f"{more(case, base, lambda one: one.stable_hours) / weeks:+,.0f}"),
        ),
    ]
    for bucket, said in (("Bin20", "almost +500"), ("Bin60", "over +1,000")):
        here = both(partial(gpus, bucket))
        rows.append((f"stable GPUs of the mean {bucket} job", said, *here))
    rows += [
        ("hops of the mean leadership job", "rise", *both(lambda case, base: f"{more(case, base, _hops):+.3f}")),
        ("CPU-only accounts from the other end, too:", "", "", ""),
        ("  stable hours of GPU-using leadership jobs", "+100,000", f"{own:+,.0f}", f"({own / weeks:+,.0f} a week)"),
        ("  hops of the mean leadership job over DE16, base", "rise", f"{more(cpu, base, _hops):+.3f}", ""),
    ]
    head = ("reordered over base", "paper", "DE16", "Bin20Bin60")
    return [f"{what:50} {said:>12} {one:>12} {two:>20}".rstrip() for what, said, one, two in [head, *rows]]


def _hops(one: Month) -> float:
    return one.mean_hops


def main() -> None:
    """Simulate all policies and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("lives")
    parser.add_argument("--at", default="2017-05-01")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--months", type=int, default=1, help="months, with consecutive seeds")
    arguments = parser.parse_args()
    platform = machine_of(arguments.lives, arguments.at)
    machine = Machine(platform.units, platform.info)
    stable = machine.nodes.stable
    assert stable is not None
    seeds = range(arguments.seed, arguments.seed + arguments.months)
    workloads = [generate_jobs(load_classes("titan-month"), seed) for seed in seeds]
    print(f"{int(stable.sum()):,} of {platform.units:,} GPUs are stable on {arguments.at}")
    print(f"{', '.join(f'{len(jobs):,}' for jobs in workloads)} jobs\n")
    months = {case: [month(platform, jobs, case) for jobs in workloads] for case in CASES}
    print("\n".join(lines(months, platform.units)))
    print("\n" + "\n".join(compared(months, platform.units)))
    print("\nshare of failures that strike leadership jobs (paper: from 55 % to less than 45 %)")
    for name, rates in (("table II's rates", TABLE_II), ("an old GPU fails 15 times as often", (1.0, 15.0))):
        share = paper_share(float(stable.mean()), rates)
        print(f"  {name}: {share:.1%} with 55 % of the hours and a third more stable ones")
    for case in ("DE16, base", "DE16, reordered", "Bin20Bin60, base", "Bin20Bin60, reordered"):
        simulated, count, form = failures(platform, workloads[0], case, stable)
        low, high = interval(form, count)
        print(
            f"  {case}: {simulated:.1%} of {count}; by the form with its own hours {form:.1%} ({low:.1%} to {high:.1%})"
        )


if __name__ == "__main__":
    started(main)
