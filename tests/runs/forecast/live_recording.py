"""The queue of a recording of the real slurmctld at one moment, as ``scontrol show job -d`` would print it."""

import csv
import re
from collections.abc import Iterator
from pathlib import Path

#: the date of a recording's time 0 (s since 1970)
ZERO = 1_767_571_200


def table(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file; none if it does not exist."""
    if not path.exists():
        return []
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def runtimes(folder: Path) -> dict[str, float]:
    """Return {job id: run time (s)}, by the ids of jobs without arrays."""
    return {row["id"]: float(row["run_s"]) for row in table(folder / "jobs.csv")}


def starts_after(folder: Path, at: int) -> dict[str, tuple[int, str]]:
    """Return {job id: (start, nodes)} of the starts after a moment."""
    return {
        row["id"]: (int(float(row["time"])), row["nodes"])
        for row in table(folder / "starts.csv")
        if float(row["time"]) > at
    }


def last_moment(folder: Path) -> int:
    """Return the time of the first backfill pass after the last submission (s)."""
    last = max(float(row["submit"]) for row in table(folder / "result.csv"))
    passes = (float(row["time"]) for row in table(folder / "passes.csv") if row["kind"] == "backfill")
    return int(next(time for time in passes if time > last))


def show_jobs(folder: Path, at: int, *, priorities: bool = True) -> str:
    """Return the jobs that wait or run at a moment (s) as records."""
    text = "".join(_records(folder, at))
    return text if priorities else re.sub(r"Priority=\d+ ", "", text)


def _records(folder: Path, at: int) -> Iterator[str]:
    asked = {row["id"]: row for row in table(folder / "jobs.csv")}
    parts = {}
    for row in table(folder / "alloc.csv"):
        parts.setdefault(row["id"], []).append(row)
    for row in table(folder / "result.csv"):
        job = asked[row["array_job"] or row["id"]]
        if float(row["submit"]) > at or (row["start"] and float(row["end"] or at + 1) <= at):
            continue
        runs = bool(row["start"]) and float(row["start"]) <= at
        start, limit = int(float(row["start"] or 0)), 60 * int(float(job["limit_min"]))
        held = parts.get(row["id"], []) if runs else []
        yield "\n   ".join(
            [
                f"JobId={row['id']} JobName={job['name'] or 'job'}",
                f"UserId={job['user'] or 'u'}(1000) GroupId=users(100) MCS_label=N/A",
                f"Priority={row['priority']} Nice=0 Account={job['account'] or '(null)'} QOS={job['qos'] or 'normal'}",
                f"JobState={'RUNNING' if runs else 'PENDING'} Reason={'None' if runs else 'Priority'}",
                f"Dependency={(_eligible(job, row, at) == 'Unknown' and job['after']) or '(null)'}",
                f"RunTime={_length(at - start if runs else 0)} TimeLimit={_length(limit)} TimeMin=N/A",
                f"SubmitTime={ZERO + int(float(row['submit']))} EligibleTime={_eligible(job, row, at)}",
                f"StartTime={ZERO + start if runs else 'Unknown'} EndTime=Unknown Deadline=N/A",
                f"Partition={job['partition']} AllocNode:Sid=localhost:1",
                "ReqNodeList=(null) ExcNodeList=(null)",
                f"NodeList={row['nodes'] if runs else '(null)'}",
                f"NumNodes={_nodes(job, runs)} NumCPUs={_cpus(job, row)} NumTasks={job['tasks'] or job['nodes'] or 1}"
                f" CPUs/Task={job['cpus_per_task'] or 1} ReqB:S:C:T=0:0:*:*",
                f"TRES={row['tres']}",
                *(
                    f"  Nodes={one['node']} CPU_IDs=0-{int(one['cpus']) - 1} Mem={one['mem']}{_gpus(one)}"
                    for one in held
                ),
                f"MinCPUsNode=1 {_memory(job)} MinTmpDiskNode=0",
                f"Features={job['constraint'] or '(null)'} DelayBoot=00:00:00",
                f"OverSubscribe={'NO' if job['exclusive'] else 'OK'} Contiguous=0 Licenses=(null) Network=(null)",
                *([f"TresPerNode=gres:{job['gres']}"] if job["gres"] else []),
                "\n",
            ]
        )


def _nodes(job: dict[str, str], runs: bool) -> str:
    nodes = job["nodes"]
    return nodes if runs or not nodes else f"{nodes}-{nodes}"


def _memory(job: dict[str, str]) -> str:
    return f"MinMemory{'CPU' if job['mem_per'] == 'cpu' else 'Node'}={job['mem'] or 0}M"


def _gpus(one: dict[str, str]) -> str:
    return f" GRES=gpu:{one['gpus']}(IDX:0)" if one["gpus"] not in ("", "0") else " GRES="


def _length(seconds: int) -> str:
    return f"{seconds // 86400}-{seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _cpus(job: dict[str, str], row: dict[str, str]) -> str:
    told = row["tres"].partition(",")[0].removeprefix("cpu=")
    return told or job["tasks"] or "1"


def _eligible(job: dict[str, str], row: dict[str, str], at: int) -> str:
    """Return the date from which a job may run; Unknown while a dependency holds it."""
    time = float(row["eligible"] or at + 1)
    return "Unknown" if job["after"] and time > at else str(ZERO + int(time))
