"""Simulate a log under EASY with the loop of a textbook, without the package.

The benchmark in_process.py compares a run with it. Reads an SWF log and writes the id and the start of each job. Units
are only counted.

    python benchmarks/textbook_easy.py LOG.swf.gz UNITS STARTS.csv
"""

import gzip
import sys
from heapq import heappop, heappush
from math import inf
from typing import NamedTuple


class Job(NamedTuple):
    """A job of the log; times in seconds.

    It runs for ``runtime``, at most ``walltime``.
    """

    id: str
    submit: float
    size: int
    walltime: float
    runtime: float


def read(path: str) -> list[Job]:
    """Read the jobs of an SWF log; jobs without a size or run time are left out."""
    jobs = []
    with gzip.open(path, "rt") as file:
        for line in file:
            if line.startswith(";"):
                continue
            fields = line.split()
            size = int(fields[7]) if int(fields[7]) > 0 else int(fields[4])
            runtime, walltime = float(fields[3]), float(fields[8])
            if size > 0 and runtime > 0:
                limit = walltime if walltime > 0 else inf
                jobs.append(Job(fields[0], float(fields[1]), size, limit, min(runtime, limit)))
    return jobs


def simulate(jobs: list[Job], units: int) -> dict[str, float]:
    """Return {job id: start (s)} under EASY."""
    free, at = units, 0
    queue: list[Job] = []
    ends: list[tuple[float, str, int]] = []
    running: dict[str, tuple[float, int]] = {}
    starts: dict[str, float] = {}

    def start(job: Job) -> None:
        nonlocal free
        free -= job.size
        starts[job.id] = now
        running[job.id] = (now + job.walltime, job.size)
        heappush(ends, (now + job.runtime, job.id, job.size))

    while at < len(jobs) or ends:
        now = min(jobs[at].submit if at < len(jobs) else inf, ends[0][0] if ends else inf)
        while ends and ends[0][0] == now:
            _, ended, size = heappop(ends)
            free += size
            del running[ended]
        while at < len(jobs) and jobs[at].submit == now:
            queue.append(jobs[at])
            at += 1
        while queue and queue[0].size <= free:
            start(queue.pop(0))
        if not queue or not free:
            continue
        first, left, shadow = queue[0], free, inf
        for end, size in sorted(running.values()):
            if end > shadow:
                break
            left += size
            if left >= first.size:
                shadow = end
        extra, kept = max(left - first.size, 0), [first]
        for job in queue[1:]:
            late = now + job.walltime > shadow
            if job.size <= free and (not late or job.size <= extra):
                extra -= job.size if late else 0
                start(job)
            else:
                kept.append(job)
        queue = kept
    return starts


def main() -> None:
    """Read the log, simulate it and write the starts."""
    log, units, path = sys.argv[1:]
    starts = simulate(read(log), int(units))
    with open(path, "w", encoding="utf-8") as out:
        out.write("job_id,starting_time\n")
        for job, start in starts.items():
            out.write(f"{job},{start:.6f}\n")


if __name__ == "__main__":
    main()
