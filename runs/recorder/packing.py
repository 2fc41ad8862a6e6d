"""Write what was recorded: slurmctld's decisions, starts, passes and events."""

import bisect
import csv
import io
import lzma
import re
import shlex
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pipistrelle.platforms.naming.hostlists import expanded
from pipistrelle.protocol.base.whole import read_whole, write_whole
from pipistrelle.runs.recorder.jobs import PlannedJob, TimedCommand
from pipistrelle.runs.recordings.names import LOG, ZERO

_DAY: Final = f"{ZERO[:10]}T"
_EPOCH: Final = datetime.fromisoformat(ZERO).replace(tzinfo=UTC)
_COLUMNS: Final = (
    *("id", "submit", "user", "account", "partition", "qos", "nodes", "tasks", "cpus_per_task", "mem", "mem_per"),
    *("gres", "exclusive", "limit_min", "run_s", "begin_s", "after", "constraint", "array", "name"),
    *("switches", "options"),
)
_LINE: Final = re.compile(r"\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3})\] (.*)")
#: lines of the log that say what was decided, and why
_KEPT: Final = re.compile(
    r"sched/backfill: (?!.*BACKFILL: ={3})|sched: |no jobs to backfill|_slurm_rpc_submit_batch_job: JobId"
    r"|_job_complete: .* done|Time limit exhausted|_slurm_rpc_epilog_complete|Requeuing|preempted|PRIO: Decay"
    r"|priority for job|Priority|Weighted|_slurm_rpc_resv_create|Testing job time limits|slurmctld version|being held"
    r"|acct_policy_job_runnable|Replacing scheduling error"
)
_SHORTER: Final = (
    ("sched/backfill: _attempt_backfill: BACKFILL: ", "bf: "),
    ("sched/backfill: _attempt_backfill: ", "bf: "),
    ("sched/backfill: _dump_job_sched: ", "bf: reserve "),
    ("sched/backfill: _dump_node_space_table: ", "bf: space "),
    ("sched/backfill: ", "bf: "),
    (_DAY, ""),
)
_PASS: Final = re.compile(r"Running job scheduler for (full queue|default depth)")
_ALLOCATED: Final = re.compile(r"^sched: Allocate JobId=(\S+) NodeList=(\S+)")
_STARTED: Final = re.compile(r"_start_job: Started JobId=(\S+) in \S+ on (\S+)")
_TESTED: Final = re.compile(r"BACKFILL: test for JobId=(\S+) |sched: JobId=([^.\s]+)[. ](?!.*allocated resources)")
_NOTE: Final = re.compile(r"already tested|job limit|reached maximum|completed testing")
_RESPONDED: Final = re.compile(r"node_did_resp (\S+)")
_NUMBER: Final = re.compile(r"\d+_\d+\((\d+)\)|\d+_\*?\[?.*\((\d+)\)|(\d+)")
_EVENTS: Final = {
    "submit": re.compile(r"_slurm_rpc_submit_batch_job: JobId=(\d+)()"),
    "complete": re.compile(r"_job_complete: JobId=(\S+) done()"),
    "timeout": re.compile(r"Time limit exhausted for JobId=(\S+)()"),
    "epilog": re.compile(r"_slurm_rpc_epilog_complete: JobId=(\S+) Node=(\S+)"),
    "preempted": re.compile(r"preempted JobId=(\S+) has been requeued to reclaim resources for JobId=(\S+)"),
    "requeued": re.compile(r"Requeuing JobId=(\S+)()"),
    "limit_check": re.compile(r"Testing job time limits()()"),
}
#: a node's answer belongs to an end that was at most so long before (s)
_ANSWER: Final = 5.0
_RESULT: Final = (
    *("id", "array_job", "array_task", "submit", "eligible", "start", "end", "state", "nodes", "tres", "priority"),
    *("restarts", "reason"),
)
_FIELD: Final = re.compile(r"(\S+?)=(\S*)")
_ALLOCATION: Final = re.compile(r"Nodes=(\S+) CPU_IDs=(\S+) Mem=(\d+) GRES=(\S*)")


class Packing:
    """A reader of slurmctld's log that writes the files of a recording."""

    def __init__(self, log: Path, state: str) -> None:
        self._state = state
        self.starts: list[tuple[str, float, str, str, str]] = []
        self.passes: list[tuple[float, str, list[str], list[str], list[str]]] = []
        self.events: list[tuple[float, str, str, str]] = []
        self._answers: list[tuple[float, str]] = []
        self._lines: list[str] = []
        self._head = ""
        self._open = False
        for raw in read_whole(log).decode("utf-8", "replace").splitlines():
            if found := _LINE.match(raw):
                self._read(_seconds(found[1]), found[2])
        self._add_requests()

    def _read(self, time: float, text: str) -> None:
        if _KEPT.search(text):
            self._keep(time, text)
        self._read_pass(time, text)
        if found := _RESPONDED.search(text):
            self._answers.append((time, found[1]))
        for kind, line in _EVENTS.items():
            if found := line.search(text):
                self._open = self._open and kind != "submit"
                other = _number(found[2]) if kind == "preempted" else found[2]
                self.events.append((time, kind, _number(found[1]), other))
                break

    def _keep(self, time: float, text: str) -> None:
        text = text.replace(self._state, "@STATE@")
        for long, short in _SHORTER:
            text = text.replace(long, short)
        head = f"{time:.1f}" if abs(time * 10 - round(time * 10)) < 1e-6 else f"{time:.3f}"
        self._lines.append(f"{'' if head == self._head else head} {text}\n")
        self._head = head

    def _read_pass(self, time: float, text: str) -> None:
        if found := _PASS.search(text):
            self._begin(time, "main-full" if found[1] == "full queue" else "main")
        elif "_attempt_backfill: beginning" in text:
            self._begin(time, "backfill")
        elif "no jobs to backfill" in text:
            self._open = False
        if found := _ALLOCATED.match(text):
            self._start(time, "main", found[1], found[2])
        elif found := _STARTED.search(text):
            self._start(time, "backfill", found[1], found[2])
        if self._open:
            _, _, tested, _, notes = self.passes[-1]
            if found := _TESTED.search(text):
                job = found[1] or found[2]
                if tested[-1:] != [job]:
                    tested.append(job)
            elif _NOTE.search(text):
                notes.append(text.rpartition(": ")[2][:80])
        if "completed testing" in text:
            self._open = False

    def _begin(self, time: float, kind: str) -> None:
        self.passes.append((time, kind, [], [], []))
        self._open = True

    def _start(self, time: float, by: str, job: str, nodes: str) -> None:
        number = _number(job)
        self.starts.append((number, time, by, nodes, "" if job == number else job))
        if self._open:
            self.passes[-1][3].append(job)

    def _add_requests(self) -> None:
        """Add an event for each ended job: the first answer of one of its nodes.

        This answer requests a scheduling pass.
        """
        held: dict[str, set[str]] = {}
        starts = iter([*self.starts, ("", float("inf"), "", "", "")])
        following = next(starts)
        found = []
        for time, kind, job, _ in self.events:
            while following[1] <= time:
                held[following[0]] = set(expanded(following[3], LOG))
                following = next(starts)
            if kind != "complete":
                continue
            nodes = held.get(job, set())
            for at in range(bisect.bisect_left(self._answers, (time, "")), len(self._answers)):
                answered, node = self._answers[at]
                if answered - time >= _ANSWER:
                    break
                if node in nodes:
                    found.append((answered, "request", job, "complete"))
                    break
        self.events = sorted([*self.events, *found], key=lambda event: event[0])

    def write(self, folder: Path, jobs: Sequence[PlannedJob], commands: Sequence[TimedCommand], shown: str) -> None:
        """Write the files of a recording.

        Args:
            shown: the output of ``scontrol -o -d show job``.
        """
        _write_csv(folder / "jobs.csv", _COLUMNS, ([job.cells[name] for name in _COLUMNS] for job in jobs))
        write_whole(folder / "jobs.events", (f"{_event(job)}\n".encode() for job in jobs))
        if commands:
            told = ([f"{one.time:g}", shlex.join(["scontrol", *one.words])] for one in commands)
            _write_csv(folder / "commands.csv", ("t", "command"), told)
        starts = ([a, f"{b:g}", c, d, e] for a, b, c, d, e in self.starts)
        _write_csv(folder / "starts.csv", ("id", "time", "by", "nodes", "label"), starts)
        passes = (
            [f"{time:.3f}", kind, len(tested), len(started), " ".join(tested), " ".join(started), "; ".join(notes)]
            for time, kind, tested, started, notes in self.passes
        )
        head = ("time", "kind", "n_tested", "n_started", "tested", "started", "note")
        _write_csv(folder / "passes.csv", head, passes)
        events = ([f"{time:.3f}", *rest] for time, *rest in self.events)
        _write_csv(folder / "events.csv", ("time", "event", "id", "detail"), events)
        write_whole(folder / LOG, [lzma.compress("".join(self._lines).encode())])
        records = [dict(_FIELD.findall(line)) | {"": line} for line in shown.splitlines() if line.startswith("JobId=")]
        records.sort(key=lambda record: int(record["JobId"]))
        _write_csv(folder / "result.csv", _RESULT, map(_result, records))
        _write_csv(folder / "alloc.csv", ("id", "node", "cpus", "mem", "gpus"), _allocations(records))


def _seconds(text: str) -> float:
    return round((datetime.fromisoformat(text).replace(tzinfo=UTC) - _EPOCH).total_seconds(), 3)


def _number(text: str) -> str:
    """Return the job number in Slurm's text for a job or task: 38 for ``34_0(38)``."""
    found = _NUMBER.match(text)
    return text if found is None else found[found.lastindex or 0]


def _result(record: dict[str, str]) -> list[str]:
    def time(name: str) -> str:
        text = record.get(name, "")
        return f"{_seconds(text):.0f}" if text[:1].isdigit() else ""

    state = record["JobState"]
    tres = re.search(r" TRES=(\S*)", record[""])
    nodes = record.get("NodeList", "")
    return [
        *(record["JobId"], record.get("ArrayJobId", ""), record.get("ArrayTaskId", "")),
        *(time("SubmitTime"), time("EligibleTime")),
        "" if state == "PENDING" else time("StartTime"),
        "" if state in ("PENDING", "RUNNING") else time("EndTime"),
        state,
        "" if nodes == "(null)" else nodes,
        "" if tres is None else tres[1],
        *(record.get("Priority", ""), record.get("Restarts", ""), record.get("Reason", "")),
    ]


def _allocations(records: Iterable[dict[str, str]]) -> Iterable[list[str]]:
    for record in records:
        for nodes, cpus, memory, gres in _ALLOCATION.findall(record[""]):
            count = sum(
                int(high or low) - int(low) + 1 for low, _, high in (part.partition("-") for part in cpus.split(","))
            )
            gpus = sum(int(number) for number in re.findall(r"gpu(?::[^:(,]+)?:(\d+)", gres))
            for node in expanded(nodes, LOG):
                yield [record["JobId"], node, str(count), memory, str(gpus)]


def _event(job: PlannedJob) -> str:
    """Return the submission of a job as a line of the recording's file of events."""
    cells = job.cells
    hours, minutes = divmod(int(cells["limit_min"]), 60)
    options = [option for option in job.options if not option.startswith(("--time=", "--job-name="))]
    depends = f" --dependency={cells['after']}" if cells["after"] else ""
    name = f" --job-name={cells['name']}" if cells["name"] else ""
    return (
        f"-dt {cells['submit']} -e submit_batch_job | -J jobid_{cells['id']} -sim-walltime {cells['run_s']}"
        f" --uid={cells['user'] or 'root'} -t {hours:02}:{minutes:02}:00{depends}{name} {' '.join(options)} pseudo.job"
    )


def _write_csv(path: Path, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    made = io.StringIO()
    writer = csv.writer(made, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    write_whole(path, [made.getvalue().encode()])
