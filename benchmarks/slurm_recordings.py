"""Read recordings of the real slurmctld: configuration, submissions and log.

A recording is a folder; its README describes the files. `slurm_passes.py` and `slurm_runs.py` use this module.
"""

import csv
import lzma
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from pipistrelle.platforms.slurm.conf import read_slurm_conf
from pipistrelle.platforms.slurm.gres import read_gres_conf
from pipistrelle.schedulers.slurm.config.machine import ReservationSettings
from pipistrelle.schedulers.slurm.config.settings import SlurmConfig
from pipistrelle.schedulers.slurm.config.submission import Submission
from pipistrelle.schedulers.slurm.files.accounting import Accounting, read_accounting
from pipistrelle.schedulers.slurm.files.config import FilesBeside, slurm_config

EPOCH = datetime(2026, 1, 5, tzinfo=UTC)


@dataclass
class Step:
    """One step of the controller's log.

    Attributes:
        time: time of the step (s).
        kind: such as ``submit``, ``main`` (a pass of the main loop), ``backfill`` or ``complete``.
        job: id of the job, if the step concerns one.
        data: priority, name of a node, or `PassLog`, depending on the kind.
    """

    time: float
    kind: str
    job: str = ""
    data: Any = None


@dataclass
class PassLog:
    """The log's record of one scheduling pass.

    Attributes:
        full: whether the main loop considers the whole queue.
        started: (job, nodes) of each start.
        outcomes: [job, kind, start (s), end (s), nodes] of each job that backfill tested; the kind is ``reserve``,
            ``window``, ``start`` or empty.
        preempted: (victim, job that preempts it).
    """

    full: bool = False
    started: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    outcomes: list[list[Any]] = field(default_factory=list)
    preempted: list[tuple[str, str]] = field(default_factory=list)
    ended: bool = True


def rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file; an empty list if it does not exist."""
    if not path.exists():
        return []
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def expand(text: str) -> tuple[str, ...]:
    """Return the names of a Slurm node list such as ``g01,n[01-03,05]``."""
    found: list[str] = []
    for part in re.findall(r"[^,\[]+(?:\[[^\]]*\])?", text):
        match = re.fullmatch(r"([^\[]+)\[(.*)\]", part)
        if match is None:
            found.append(part)
            continue
        for item in match[2].split(","):
            low, _, high = item.partition("-")
            found += [match[1] + str(at).zfill(len(low)) for at in range(int(low), int(high or low) + 1)]
    return tuple(found)


def clock(text: str) -> int:
    """Convert a date or clock time to seconds since the recording's time 0.

    A clock time without a date is on the first day.
    """
    if "T" in text:
        return int((datetime.fromisoformat(text).replace(tzinfo=UTC) - EPOCH).total_seconds())
    hours, minutes, seconds = text.split(":")
    return int(hours) * 3600 + int(minutes) * 60 + int(seconds)


def read_config(folder: Path) -> SlurmConfig:
    """Return the Slurm configuration of a recording, including its reservations."""
    conf = read_slurm_conf((folder / "slurm.conf").read_text(), "slurm.conf")
    gres = read_gres_conf((folder / "gres.conf").read_text(), "gres.conf")[0] if (folder / "gres.conf").exists() else []
    files = [(name, (folder / name).read_text()) for name in ("qos.txt", "sacctmgr.dump") if (folder / name).exists()]
    accounting = read_accounting(files) if files else Accounting()
    reservations = tuple(_reservations(folder))
    config, _ = slurm_config(conf, FilesBeside(gres=gres, accounting=accounting, reservations=reservations))
    return replace(config, start=float(4 if config.accounting_storage else 0))


def commands(folder: Path) -> list[tuple[float, str]]:
    """Return (time (s), text) of each command that creates a reservation."""
    texts = [row["command"] for row in rows(folder / "commands.csv") if "create reservation" in row["command"]]
    made: dict[str, float] = {}
    if not texts:
        return []
    now = 0.0
    for line in log_lines(folder):
        if line[0] is not None:
            now = line[0]
        if match := re.search(r"_slurm_rpc_resv_create complete for (\S+)", line[1]):
            made[match[1]] = now
    found = [re.search(r"reservationname=(\S+)", text) for text in texts]
    return [(made[name[1]], text) for name, text in zip(found, texts, strict=True) if name is not None]


def _reservations(folder: Path) -> Iterator[ReservationSettings]:
    names = re.findall(r"NodeName=(\S+)", (folder / "slurm.conf").read_text())
    for announced, command in commands(folder):
        options = dict(word.partition("=")[::2] for word in command.split() if "=" in word)
        start = clock(options["starttime"])
        nodes = tuple(node for name in names for node in expand(name))
        yield ReservationSettings(
            name=options["reservationname"],
            start=float(start),
            end=float(start + clock(options["duration"])),
            announced=announced,
            nodes=nodes if options["nodes"] == "ALL" else expand(options["nodes"]),
            users=tuple(options.get("users", "").split(",")),
            flags=tuple(flag.upper() for flag in options.get("flags", "").split(",") if flag),
        )


def log_lines(folder: Path) -> Iterator[tuple[float | None, str]]:
    """Yield (time (s), text) of each log line; the time is None if it has not changed."""
    with lzma.open(folder / "decisions.log.xz", "rt") as stream:
        for line in stream:
            head, _, text = line.rstrip("\n").partition(" ")
            yield (float(head) if head else None), text.strip()


def submissions(folder: Path) -> dict[str, tuple[Submission, list[int], float]]:
    """Return {id: (submission, array indices, runtime (s))} from jobs.csv."""
    found = {}
    for row in rows(folder / "jobs.csv"):
        submit = int(row["submit"])
        array, _, limit = row["array"].partition("%")
        tasks = [
            at
            for part in array.split(",")
            if part
            for low, _, high in [part.partition("-")]
            for at in range(int(low), int(high or low) + 1)
        ]
        memory = int(row["mem"]) if row["mem"] else None
        kind, _, count = row["gres"].rpartition(":")
        gres = {kind: int(count)} if kind else {}
        found[row["id"]] = (
            Submission(
                number=int(row["id"]),
                submit=submit,
                name=row["name"] or "job",
                user=row["user"],
                account=row["account"],
                partitions=(row["partition"],),
                qos=row["qos"],
                time_limit=60.0 * int(row["limit_min"]),
                nodes=int(row["nodes"]) if row["nodes"] else None,
                tasks=int(row["tasks"]) if row["tasks"] else None,
                cpus_per_task=int(row["cpus_per_task"] or 1),
                mem_per_cpu=memory if row["mem_per"] == "cpu" else None,
                mem_per_node=memory if row["mem_per"] == "node" else None,
                gres=gres,
                exclusive=bool(row["exclusive"]),
                constraint=row["constraint"],
                begin=submit + float(row["begin_s"]) if row["begin_s"] else None,
                dependency=row["after"],
                array_limit=int(limit or 0),
            ),
            tasks,
            float(row["run_s"]),
        )
    return found


def label(text: str) -> str:
    """Shorten a job id of the log.

    ``34_0(38)`` becomes ``34_0``, ``34_*`` becomes ``34``, and ``34`` is unchanged.
    """
    if match := re.match(r"(\d+)_(\d+)\(", text):
        return f"{match[1]}_{match[2]}"
    match = re.match(r"\d+", text)
    return match[0] if match else text


_SUBMIT = re.compile(r"_slurm_rpc_submit_batch_job: JobId=(\d+) InitPrio=(\d+)")
_ALLOCATE = re.compile(r"sched: Allocate JobId=(\S+) NodeList=(\S+)")
_RESERVE = re.compile(r"bf: reserve JobId=(\S+) to start at (\S+), end at (\S+) on nodes (\S+)")
_STARTED = re.compile(r"bf: _start_job: Started JobId=(\S+) in \S+ on (\S+)")
_PREEMPTED = re.compile(r"preempted JobId=(\S+) has been (?:requeued|killed) to reclaim resources for JobId=(\S+)")


def steps(folder: Path) -> list[Step]:  # noqa: PLR0915 - one branch per kind of line
    """Return the steps of the log.

    Steps are submissions, passes, ends, requeues, usage and priorities.
    """
    found: list[Step] = []
    now = 0.0
    current: PassLog | None = None
    backfill = False
    decays = False
    for time, text in log_lines(folder):
        if time is not None:
            if decays:
                decays = False
                found.append(Step(now, "recalculate"))
            now = time
            current = None if not backfill else current
        if text.startswith("bf: "):
            if text.startswith("bf: beginning"):
                current, backfill = PassLog(), True
                found.append(Step(now, "backfill", data=current))
            elif current is None:
                pass
            elif match := re.match(r"bf: test for JobId=(\S+) ", text):
                current.outcomes.append([label(match[1]), "", 0, 0, ()])
            elif match := _RESERVE.match(text):
                current.outcomes[-1][1:] = ["reserve", clock(match[2]), clock(match[3]), expand(match[4])]
            elif "StartTime set to time after current backfill window" in text:
                current.outcomes[-1][1] = "window"
            elif match := _STARTED.match(text):
                current.outcomes[-1][1:] = ["start", 0, 0, expand(match[2])]
                current.outcomes[-1][0] = label(match[1])
                current.started.append((label(match[1]), expand(match[2])))
            elif text.startswith("bf: completed") or "no jobs to backfill" in text:
                current, backfill = None, False
            continue
        if "no jobs to backfill" in text:
            current, backfill = None, False
        elif match := re.search(r"Running job scheduler for (full queue|default depth)", text):
            current, backfill = PassLog(full=match[1] == "full queue"), False
            found.append(Step(now, "main", data=current))
        elif match := _ALLOCATE.search(text):
            if current is not None:
                current.started.append((label(match[1]), expand(match[2])))
        elif match := _PREEMPTED.search(text):
            if current is not None:
                current.preempted.append((label(match[1]), label(match[2])))
        elif match := _SUBMIT.search(text):
            found.append(Step(now, "submit", match[1], int(match[2])))
        elif match := re.search(r"_job_complete: JobId=(\S+) done", text):
            found.append(Step(now, "complete", label(match[1])))
        elif match := re.search(r"Time limit exhausted for JobId=(\S+)", text):
            found.append(Step(now, "timeout", label(match[1])))
        elif match := re.search(r"_slurm_rpc_epilog_complete: JobId=(\S+) Node=(\S+)", text):
            found.append(Step(now, "epilog", label(match[1]), match[2]))
        elif match := re.match(r"Requeuing JobId=(\S+)", text):
            found.append(Step(now, "requeue", label(match[1])))
        elif "PRIO: Decay factor over" in text:
            decays = True
            found.append(Step(now, "usage"))
        elif match := re.search(r"priority for job (\d+) is now (\d+)$", text):
            if decays:  # other threads run between the decay and the first priority
                decays = False
                found.append(Step(now, "recalculate"))
            found.append(Step(now, "priority", match[1], int(match[2])))
    return found
