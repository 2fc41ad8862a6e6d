"""Simulate recordings of the real slurmctld with our decisions, and compare every start.

    python benchmarks/slurm_runs.py [FOLDER ...] [--model | --engine | --spread N] [--verbose N]

Submissions and runtimes come from the recording. Without ``--model``, four details are also taken from the recording,
because they depend on polling inside slurmctld and on the recording's clock:

- when completions requested a pass of the main loop;
- whether a completion came before a pass at the same time;
- whether a completion came during a recalculation of priorities;
- at which fraction of a second the main loop runs.

With ``--model``, a completion requests a pass after the delay of `AnswerDelay`. With ``--engine``, the simulation is
``pipistrelle run --scheduler slurm`` with the recording's files and the same delays.

Prints the number of starts at the same second on the same nodes, and the mean wait of each partition, account and QOS.

With ``--spread N``, N runs differ in two details only: which job has which of the recorded delays, and at which
fraction of a second the main loop runs (0, 0.02 or 0.04 s, drawn every 300 s). The runs are compared with each other
and with the recording. So ``--spread`` shows how equal two runs can be if these details are unknown.
"""

import argparse
import heapq
import os
import random
import tempfile
from collections import defaultdict
from itertools import combinations
from pathlib import Path
from statistics import mean, median

from slurm_recordings import commands, expand, label, read_config, rows, steps, submissions

from pipistrelle.api.runs import run
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.runs.slurm.files import read_slurm_files
from pipistrelle.schedulers.slurm.cluster.jobs import COMPLETED, RUNNING, SlurmJob
from pipistrelle.schedulers.slurm.daemon import Daemon
from pipistrelle.schedulers.slurm.passes.controller import Controller

HERE = Path(__file__).resolve()
RECORDINGS = Path(os.environ.get("PIPISTRELLE_SLURM22", HERE.parents[2] / "shared" / "slurm22"))
#: id of a job or task, start (s), names of its nodes
Start = tuple[str, float, tuple[str, ...]]
#: simulated time at which a simulation ends (s)
LATEST = 1e6
#: phases of the main loop in recordings with slurmdbd (s), time between two changes (s), and number of changes drawn
SLIPS = (0.0, 0.02, 0.04)
PERIOD, SAVES = 300, 100


def request_times(folder: Path) -> dict[str, float]:
    """Return {id: time from the end of the job to its request for a pass (s)} of a recording."""
    runtimes = {job: runtime for job, (_, _, runtime) in submissions(folder).items()}
    begun = {label(row["label"] or row["id"]): float(row["time"]) for row in rows(folder / "starts.csv")}
    names = {row["id"]: name_of(row) for row in rows(folder / "result.csv")}
    found = {}
    for row in rows(folder / "events.csv"):
        name = names.get(row["id"], row["id"])
        if row["event"] == "request" and name in begun:
            found[name] = max(0.0, float(row["time"]) - begun[name] - runtimes[name.split("_")[0]])
    return found


def counted_twice(folder: Path) -> set[str]:
    """Return the ids of jobs that completed during a recalculation.

    Slurm counts the usage of their last period twice.
    """
    found: set[str] = set()
    inside = False
    for step in steps(folder):
        if step.kind == "usage":
            inside = True
        elif step.kind == "recalculate":
            inside = False
        elif inside and step.kind == "complete":
            found.add(step.job)
    return found


def early_ends(folder: Path) -> set[str]:
    """Return the ids of jobs whose completion the log has before a pass at the same time."""
    found: set[str] = set()
    waiting: list[str] = []
    time = 0.0
    for step in steps(folder):
        if step.time != time:
            waiting, time = [], step.time
        if step.kind == "complete":
            waiting.append(step.job)
        elif step.kind in ("main", "backfill"):
            found.update(waiting)
    return found


def phases(folder: Path) -> list[tuple[float, float]]:
    """Return the phases of the recorded main loop: [(time (s), phase (s))].

    From that time on, the loop runs at that fraction of a second. The phase is an artefact of the recording's clock,
    which sometimes slips by 0.02 to 0.9 s.
    """
    found: list[tuple[float, float]] = []
    for row in rows(folder / "passes.csv"):
        if row["kind"] == "main-full":
            time = float(row["time"])
            phase = round(time % 1, 3)
            if phase != (found[-1][1] if found else 0.0):
                found.append((time - 59, phase))
    return found


def name_of(row: dict[str, str]) -> str:
    """Return the id of a row's job, or of its array task, such as ``34_0``."""
    return f"{row['array_job']}_{row['array_task']}" if row["array_task"] else row["id"]


def drawn(folder: Path, start: float, chance: random.Random) -> tuple[dict[str, float], list[tuple[float, float]]]:
    """Return random delays and phases as `request_times` and `phases` do, the phases from the last to the first."""
    delays = request_times(folder)
    values = chance.sample(list(delays.values()), len(delays))
    slips = [(start + at, chance.choice(SLIPS)) for at in range(SAVES * PERIOD, 0, -PERIOD)]
    return dict(zip(delays, values, strict=True)), slips


def play(folder: Path, *, model: bool, chance: random.Random | None = None) -> list[Start]:
    """Simulate the submissions of a recording and return (id, start (s), nodes) of every start.

    Args:
        folder: the recording.
        model: take no details from the recording; see the module.
        chance: draws delays and the phases of the main loop.
    """
    config = read_config(folder)
    controller = Controller(config)
    daemon = Daemon(controller)
    jobs = submissions(folder)
    delays = {} if model else request_times(folder)
    runtimes = {job: runtime for job, (_, _, runtime) in jobs.items()}
    ends: list[tuple[float, int, SlurmJob, int]] = []
    arrivals = sorted(((sub.submit, int(job)) for job, (sub, _, _) in jobs.items()), reverse=True)
    slips = [] if model else phases(folder)[::-1]
    if chance is not None:
        delays, slips = drawn(folder, config.start, chance)
    early = set() if model else early_ends(folder)
    twice = set() if model else counted_twice(folder)
    starts: list[Start] = []
    names = controller.machine.names_of
    while True:
        arrival = arrivals[-1][0] + 0.049 if arrivals else LATEST
        end = ends[0][0] if ends else LATEST
        due = daemon.next_time()
        now = min(arrival, end, due)
        if slips and now >= slips[-1][0]:
            daemon.phase = slips.pop()[1]
            continue
        if now >= LATEST:
            return starts
        if due <= now:
            actions = daemon.advance(now)
            for job in actions.started:
                runtime = runtimes[str(job.number)]
                before = 0.001 if job.ids[0] in early else 0.0
                heapq.heappush(ends, (round(now + runtime - before, 3), job.serial, job, job.restarts))
                starts.append((job.ids[0], float(int(now)), tuple(names(job.nodes))))
        elif end <= now:
            _, _, job, incarnation = heapq.heappop(ends)
            if job.state == RUNNING and job.restarts == incarnation:
                daemon.catch_up(now)
                nodes = job.nodes.bit_count()
                delay = delays.get(job.ids[0], config.answers.delay(nodes))
                if job.ids[0] in twice:
                    usage = controller.usage
                    last, usage.last = usage.last, usage.last - int(config.priority.calc_period)
                    usage.add(job, int(now))
                    usage.last = last
                daemon.ended(job, COMPLETED, now, now + delay)
        else:
            submit, number = arrivals.pop()
            sub, tasks, _ = jobs[str(number)]
            daemon.catch_up(now)
            ids = [f"{number}_{task}" for task in tasks] or [str(number)]
            controller.submit(ids, sub, int(submit), tasks)
            daemon.submitted(now)


def play_on_engine(folder: Path) -> list[Start]:
    """Simulate a recording's files as ``pipistrelle run`` does, and return every start."""
    accounting = [str(folder / name) for name in ("sacctmgr.dump", "qos.txt") if (folder / name).exists()]
    conf = str(folder / "slurm.conf")
    with tempfile.TemporaryDirectory() as name:
        told = commands(folder)
        made = Path(name) / "reservations.txt"
        made.write_text("".join(f"{time},{text}\n" for time, text in told))
        out = Path(name) / "out"
        run(
            str(folder / "jobs.events"),
            conf,
            "slurm",
            config=conf,
            accounting=accounting,
            reservations=[f"{made},zero=2026-01-05T00:00:00"] if told else [],
            out=out,
            progress=False,
        )
        names = [node for pool in read_slurm_files(conf).platform.pools for node in expand(str(pool.names))]
        return [
            (
                row["job_id"].partition("!")[2].partition("#")[0],
                float(int(float(row["time"]))),
                tuple(names[unit] for unit in NodeSet.parse(row["alloc"])),
            )
            for row in rows(out / "out_decisions.csv")
            if row["decision"] == "EXECUTE_JOB"
        ]


def recorded(folder: Path) -> list[Start]:
    """Return the recorded starts."""
    return [
        (label(row["label"] or row["id"]), float(int(float(row["time"]))), expand(row["nodes"]))
        for row in rows(folder / "starts.csv")
    ]


def by_name(starts: list[Start]) -> dict[str, list[tuple[float, tuple[str, ...]]]]:
    """Return {id: (time (s), nodes) of each of its starts}."""
    found: dict[str, list[tuple[float, tuple[str, ...]]]] = defaultdict(list)
    for name, time, nodes in starts:
        found[name].append((time, nodes))
    return found


def mean_waits(folder: Path, starts: list[Start]) -> dict[str, float]:
    """Return the mean wait (s) of each partition, account and QOS, up to the first start of each job."""
    jobs = {row["id"]: row for row in rows(folder / "jobs.csv")}
    waits: dict[str, list[float]] = defaultdict(list)
    for name, some in by_name(starts).items():
        row = jobs[name.split("_")[0]]
        for kind in ("partition", "account", "qos"):
            if row[kind]:
                waits[f"{kind} {row[kind]}"].append(some[0][0] - float(row["submit"]))
    return {kind: mean(some) for kind, some in waits.items()}


def largest_error(waits: dict[str, float], others: dict[str, float]) -> float:
    """Return the largest relative error of the mean waits ``others``."""
    return max((abs(others[kind] / wait - 1) for kind, wait in waits.items() if wait and kind in others), default=0.0)


def equal_starts(starts: list[Start], others: list[Start]) -> float:
    """Return the share of starts that are at the same second on the same nodes."""
    mine, theirs = by_name(starts), by_name(others)
    same = sum(
        one[0] == other[0] and set(one[1]) == set(other[1])
        for name, some in mine.items()
        for one, other in zip(some, theirs[name], strict=False)
    )
    return same / max(1, len(starts))


def spread(folder: Path, count: int) -> tuple[float, float]:
    """Simulate a recording several times with random delays and phases, and print how equal the runs are.

    Returns:
        The median share of equal starts of two runs, and the median of their largest error of a mean wait.
    """
    runs = [play(folder, model=True, chance=random.Random(seed)) for seed in range(count)]
    waits = [mean_waits(folder, run) for run in runs]
    pairs = [equal_starts(one, other) for one, other in combinations(runs, 2)]
    errors = [largest_error(one, other) for one, other in combinations(waits, 2)]
    theirs = recorded(folder)
    to_recording = [equal_starts(theirs, run) for run in runs]
    print(
        f"{folder.name}: {count} runs; of two runs, {100 * median(pairs):.1f} % of the starts are equal"
        f" ({100 * min(pairs):.1f} to {100 * max(pairs):.1f} %), largest error of a mean wait"
        f" {100 * median(errors):.2f} % ({100 * min(errors):.2f} to {100 * max(errors):.2f} %);"
        f" equal to the recording {100 * median(to_recording):.1f} %"
        f" ({100 * min(to_recording):.1f} to {100 * max(to_recording):.1f} %)"
    )
    for kind, wait in sorted(mean_waits(folder, theirs).items()):
        some = [one[kind] for one in waits]
        print(f"    {kind}: recorded {wait:.1f} s, runs {mean(some):.1f} s ({min(some):.1f} to {max(some):.1f} s)")
    return median(pairs), median(errors)


def compare(folder: Path, ours: list[Start], verbose: int) -> tuple[int, int, float]:
    """Print the comparison of our starts with a recording's.

    Returns:
        The number of equal starts, the number of recorded starts, and the largest relative error of a mean wait.
    """
    theirs = recorded(folder)
    mine = by_name(ours)
    first: list[str] = []
    same_time = 0
    seen: dict[str, int] = defaultdict(int)
    for name, time, nodes in theirs:
        at = seen[name]
        seen[name] += 1
        got = mine[name][at] if at < len(mine[name]) else None
        same_time += got is not None and got[0] == time
        if got is None or got[0] != time or set(got[1]) != set(nodes):
            first.append(f"{name} starts at {time:g} on {','.join(nodes)}, ours {got}")
    same = len(theirs) - len(first)
    real, own = mean_waits(folder, theirs), mean_waits(folder, ours)
    worst = largest_error(real, own)
    texts = [
        f"{kind} {real[kind]:.0f} s, ours {own[kind]:.0f} s ({100 * (own[kind] / real[kind] - 1):+.2f} %)"
        for kind in sorted(own)
        if real[kind]
    ]
    print(
        f"{folder.name}: {same}/{len(theirs)} starts at the same second on the same nodes ({same_time} at the same"
        f" second), ours {len(ours)} starts, largest error of a mean wait {100 * worst:.2f} %"
    )
    for text in first[:verbose]:
        print("    first:", text)
    if verbose:
        print("    waits:", "; ".join(texts))
    return same, len(theirs), worst


def main() -> None:
    """Simulate the chosen recordings and print the comparisons."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--model", action="store_true", help="model the delay of requests after completions")
    how.add_argument("--engine", action="store_true", help="run the simulator, with the same model")
    how.add_argument("--spread", type=int, metavar="N", help="compare N runs with random delays and phases")
    parser.add_argument("--verbose", type=int, default=2, help="differences to print per recording")
    options = parser.parse_args()
    for folder in options.folders or sorted(path.parent for path in RECORDINGS.glob("*/decisions.log.xz")):
        if options.spread:
            spread(folder, options.spread)
            continue
        starts = play_on_engine(folder) if options.engine else play(folder, model=options.model)
        compare(folder, starts, options.verbose)


if __name__ == "__main__":
    main()
