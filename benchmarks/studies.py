"""Measure the trials per hour of a study.

The study runs on one process, on two processes and on a local Dask cluster.

    python benchmarks/studies.py [--jobs 130000] [--trials 40] [--engine auto] [--log FILE] [--no-dask]

A trial simulates a year of a machine of 1490 nodes under EASY. The machine has a failure every 12 h on average,
repairs take a day, and jobs write checkpoints at Daly's interval. Times are measured from the end of the first quarter
of the trials, so starting workers, compiling and reading the workload are not counted. Also printed are the peak
memory of a worker and the extrapolated time of a paper's 138,000 trials. For the comparison with Dask, the generated
workload is extended until a trial takes about one second. Everything takes about three minutes on an idle machine.
"""

import argparse
import json
import os
import re
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

from pipistrelle.studies import Results, Study, run
from pipistrelle.traces.generator import generate
from pipistrelle.traces.load import save

NODES = 1490
GRID = 138_000
MEGABYTE = 1024


def children() -> list[int]:
    """Return the ids of this process's children."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent = re.search(r"^PPid:\s*(\d+)", (entry / "status").read_text(), re.MULTILINE)
        except OSError:
            continue
        if parent is not None and int(parent[1]) == os.getpid():
            found.append(int(entry.name))
    return found


class Watch:
    """A progress callback that records when trials end.

    Attributes:
        times: (number of trials done, wall-clock time (s)) at each change.
        memory: peak memory of a worker (MB).
    """

    def __init__(self) -> None:
        self.times: list[tuple[int, float]] = []
        self.memory = 0.0

    def __call__(self, progress: Any) -> None:
        """Record the number of trials done, and the peak memory of the worker processes."""
        if not self.times or self.times[-1][0] < progress.done:
            self.times.append((progress.done, perf_counter()))
        for pid in children():
            try:
                peak = re.search(r"^VmHWM:\s*(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
            except OSError:
                continue
            self.memory = max(self.memory, int(peak[1]) / MEGABYTE if peak is not None else 0.0)

    def rate(self) -> float:
        """Return the trials per hour, measured from the end of the first quarter."""
        first = next(at for at in self.times if at[0] >= self.times[-1][0] // 4)
        last = self.times[-1]
        return 3600.0 * (last[0] - first[0]) / (last[1] - first[1])


def written(home: Path, jobs: int) -> str:
    """Write a generated workload and return its path.

    It has ``jobs`` jobs at an offered load of 0.85.
    """
    path = home / f"jobs-{jobs}.swf.gz"
    save(generate(jobs=jobs, units=NODES, seed=1, load=0.85), path)
    return str(path)


def study_of(log: str, told: argparse.Namespace) -> Study:
    """Return a study that repeats one simulation of a log.

    The simulation has failures and checkpoints.
    """
    options = {
        "workload": log,
        "failures": "exponential,smtbf=12h",
        "repair": "1d",
        "checkpoint": "daly",
        "dump": "5min",
    }
    return Study(options, replicas=told.trials, engine=told.engine)


def against_dask(study: Study, home: Path) -> dict[str, float]:
    """Compare the time per trial (s) on two processes and on two Dask workers."""
    from distributed import LocalCluster

    two, _, results = measure(study, home / "second", jobs=2)
    local: Any = LocalCluster  # the package has no type annotations
    with local(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        dask, _, again = measure(study, home / "dask", dask=cluster.scheduler_address)
    assert results.table.equals(again.table)
    return {
        "seconds a trial, two processes": 7200 / two,
        "seconds a trial, local Dask, two workers": 7200 / dask,
        "Dask over two processes": dask / two,
    }


def measure(study: Study, folder: Path, **how: Any) -> tuple[float, float, Results]:
    """Run a study; return trials per hour, peak memory of a worker (MB), and results."""
    watch = Watch()
    results = run(study, folder, watch=watch, **how)
    return watch.rate(), watch.memory, results


def main() -> None:
    """Run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--jobs", type=int, default=130_000)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--log", help="a workload instead of a generated one")
    parser.add_argument("--no-dask", action="store_true")
    told = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        log = told.log
        if log is None:
            log = written(home, told.jobs)
        study = study_of(log, told)
        found: dict[str, float] = {}
        one, memory, results = measure(study, home / "one", jobs=1)
        found |= {"trials an hour, one process": one, "hours of the grid, one process": GRID / one}
        two, more, again = measure(study, home / "two", jobs=2)
        found |= {"trials an hour, two processes": two, "hours of the grid, two processes": GRID / two}
        found |= {"two over one": two / one, "a worker's memory, MB": max(memory, more)}
        assert results.table.equals(again.table)
        if not told.no_dask:
            longer = log if told.log is not None else written(home, round(told.jobs * one / 3600))
            found |= against_dask(study_of(longer, told), home)
        engine = results.table.column("engine")[0].as_py()
        print(json.dumps({"engine": engine, **{what: round(value, 3) for what, value in found.items()}}, indent=2))


if __name__ == "__main__":
    main()
