"""Simulate recordings of slurmctld with our decisions, and compare every start.

    python benchmarks/slurm_runs.py [FOLDER ...] [--model | --engine] [--verbose N]

Submissions and runtimes come from the recording. Without ``--model``, four details are also taken from the recording,
because they depend on polling inside slurmctld and on the recording's clock:

- when completions requested a pass of the main loop;
- whether a completion came before a pass at the same time;
- whether a completion came during a recalculation of priorities;
- at which fraction of a second the main loop runs.

With ``--model``, a completion requests a pass after the delay of `AnswerDelay`. With ``--engine``, the simulation is
``pipistrelle run --scheduler slurm`` with the recording's files and the same delays.

Prints the number of starts at the same second on the same nodes, and the mean wait of each partition, account and QOS.
"""

import argparse
import heapq
import os
import tempfile
from collections import defaultdict
from pathlib import Path

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


def request_times(folder: Path) -> dict[str, float]:
    """Return how long after its end each job requested a pass.

    Returns {id: time (s)} for a recording.
    """
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
    """Return the ids of jobs that completed before a pass at the same time.

    The order is that of the log.
    """
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


def play(folder: Path, *, model: bool, complete: bool = True) -> list[Start]:
    """Simulate the submissions of a recording and return (id, start (s), nodes) of every start.

    Args:
        folder: the recording.
        model: take no details from the recording; see the module.
        complete: also run backfill passes that cannot start a job.
    """
    config = read_config(folder)
    controller = Controller(config)
    daemon = Daemon(controller, complete=complete)
    jobs = submissions(folder)
    delays = {} if model else request_times(folder)
    runtimes = {job: runtime for job, (_, _, runtime) in jobs.items()}
    ends: list[tuple[float, int, SlurmJob, int]] = []
    arrivals = sorted(((sub.submit, int(job)) for job, (sub, _, _) in jobs.items()), reverse=True)
    slips = [] if model else phases(folder)[::-1]
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
    """Simulate a recording as ``pipistrelle run`` does, and return every start."""
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


def compare(folder: Path, ours: list[Start], verbose: int) -> tuple[int, int, float]:
    """Print the comparison of our starts with a recording's.

    Returns:
        The number of equal starts, the number of recorded starts, and the largest relative error of a mean wait.
    """
    jobs = {row["id"]: row for row in rows(folder / "jobs.csv")}
    theirs = []
    for row in rows(folder / "starts.csv"):
        theirs.append((label(row["label"] or row["id"]), float(int(float(row["time"]))), expand(row["nodes"])))
    mine: dict[str, list[tuple[float, tuple[str, ...]]]] = defaultdict(list)
    for name, time, nodes in ours:
        mine[name].append((time, nodes))
    seen: dict[str, int] = defaultdict(int)
    same = same_time = 0
    first: list[str] = []
    for name, time, nodes in theirs:
        at = seen[name]
        seen[name] += 1
        got = mine[name][at] if at < len(mine[name]) else None
        equal = got is not None and got[0] == time and set(got[1]) == set(nodes)
        same += equal
        same_time += got is not None and got[0] == time
        if not equal:
            first.append(f"{name} starts at {time:g} on {','.join(nodes)}, ours {got}")
    waits: dict[tuple[str, str], list[list[float]]] = defaultdict(lambda: [[], []])
    begun: dict[str, float] = {}
    for name, time, _ in theirs:
        begun.setdefault(name, time)
    for name, time in begun.items():
        if mine[name]:
            row = jobs[name.split("_")[0]]
            for kind in ("partition", "account", "qos"):
                if row[kind]:
                    one = waits[kind, row[kind]]
                    one[0].append(time - float(row["submit"]))
                    one[1].append(mine[name][0][0] - float(row["submit"]))
    worst = 0.0
    texts = []
    for (kind, value), (real, own) in sorted(waits.items()):
        mean, mean_own = sum(real) / len(real), sum(own) / len(own)
        error = abs(mean_own - mean) / mean if mean else 0.0
        worst = max(worst, error)
        texts.append(f"{kind} {value} {mean:.0f} s, ours {mean_own:.0f} s ({100 * (mean_own / mean - 1):+.2f} %)")
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
    parser.add_argument("--verbose", type=int, default=2, help="differences to print per recording")
    options = parser.parse_args()
    for folder in options.folders or sorted(path.parent for path in RECORDINGS.glob("*/decisions.log.xz")):
        starts = play_on_engine(folder) if options.engine else play(folder, model=options.model)
        compare(folder, starts, options.verbose)


if __name__ == "__main__":
    main()
