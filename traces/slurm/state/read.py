"""Read the files that describe a live cluster, and merge their content."""

import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from msgspec.structs import replace

from pipistrelle.protocol.base.errors import quoted
from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.files import PathText, open_trace
from pipistrelle.traces.logs.job_table import LogOptions, numbered_lines
from pipistrelle.traces.logs.times import Clock
from pipistrelle.traces.slurm.state.jobs import JobTexts, job_of
from pipistrelle.traces.slurm.state.names import PRIORITY, SACCT, SCONTROL, SQUEUE
from pipistrelle.traces.slurm.state.others import node_is_out, reservation_of, share_of
from pipistrelle.traces.slurm.state.records import ClusterState, LiveJob, LiveNode
from pipistrelle.traces.slurm.state.rows_json import json_rows
from pipistrelle.traces.slurm.state.show import is_record, records_of
from pipistrelle.traces.slurm.state.tables import LiveRow, rows_of
from pipistrelle.traces.workload import is_number

#: largest JSON file (bytes): that of about 100,000 jobs
LARGEST_JSON: Final = 512 << 20
#: a line before the table with the time at which it was made
_MADE: Final = re.compile(r"#?\s*(\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d)?\S*)\s*")
#: the first line of ``squeue -l`` and ``sinfo -l``
_LONG_MADE: Final = re.compile(r"[A-Z][a-z]{2} ([A-Z][a-z]{2}) +(\d\d?) (\d\d:\d\d:\d\d) (\d{4})\s*")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
#: what scontrol prints if there are no jobs, nodes or reservations
_NOTHING: Final = re.compile(r"No (?:jobs|nodes|reservations) in the system\s*")
_WHAT: Final = "output of squeue, scontrol, sinfo, sshare or sacct"
_COMMANDS: Final = "output of squeue, scontrol show, sinfo, sshare -l or sacct -P"
_NODE_COLUMNS: Final = frozenset({"NODELIST", "HOSTNAMES"})
_STATE_COLUMNS: Final = ("STATE", "STATE_COMPACT", "STATECOMPLETE")


def read_state(files: Sequence[PathText], timezone: str | None = None) -> ClusterState:
    """Read files that squeue, scontrol, sinfo, sshare or sacct printed.

    The content of a file shows which command printed it. A row that cannot be read is skipped and listed in ``faults``.
    If several files have a job, the last file counts, and fields that it lacks come from earlier files. However, a
    record of scontrol takes precedence over a row of squeue.

    Args:
        timezone: time zone of dates without an offset; None: UTC.

    Raises:
        TraceError: a file is unreadable or of another kind, or the time zone is unknown.
    """
    reading = _Reading(Clock(LogOptions(timezone=timezone).zone()))
    for file in files:
        with open_trace(file, what=_WHAT) as stream:
            reading.file(stream, str(file))
    return reading.result()


def _date_of(line: str) -> str:
    """Return the date of a line that has nothing else, in ISO form.

    The text is empty for any other line.
    """
    if (found := _MADE.fullmatch(line)) is not None:
        return found[1]
    found = _LONG_MADE.fullmatch(line)
    if found is None or found[1] not in _MONTHS:
        return ""
    return f"{found[4]}-{_MONTHS.index(found[1]) + 1:02}-{int(found[2]):02}T{found[3]}"


class _Reading:
    """The state collected from the files read so far."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._state = ClusterState()
        self._jobs: dict[tuple[int, tuple[int, ...], int], LiveJob] = {}
        self._moments: list[float] = []
        #: when Slurm last tested each job
        self._tests: list[float] = []
        self._skipped: Counter[str] = Counter()

    def file(self, stream: io.BufferedReader, where: str) -> None:
        """Read a file: JSON, records of scontrol, or a table."""
        if stream.peek(1).lstrip()[:1] == b"{":
            data = stream.read(LARGEST_JSON + 1)
            if len(data) > LARGEST_JSON:
                raise TraceError("the file is too large", where=where, expected=f"at most {LARGEST_JSON >> 20} MiB")
            made, rows = json_rows(data, where)
            self._moments += [] if made is None else [made]
            tests = [row.cells.get("tested", "") for _, row in rows]
            self._tests += [float(text) for text in tests if is_number(text) and int(text)]
            self._rows(rows)
            return
        lines = numbered_lines(stream, where)
        for place, line in lines:
            made = self._clock.iso(_date_of(line))
            if made is not None:
                self._moments.append(made)
            elif _NOTHING.fullmatch(line):
                return
            elif is_record(line):
                self._rows(_named(records_of(chain([(place, line)], lines))))
                return
            elif not line.startswith("#"):
                self._table(place, line, lines)
                return

    def _table(self, place: str, header: str, lines: Iterator[tuple[str, str]]) -> None:
        """Read a table; the names in its header show which command printed it."""
        bars = "|" in header
        names = {name.strip() for name in (header.split("|") if bars else header.split())}
        if "RawUsage" in names and "Account" in names:
            kind = "share"
        elif "JobID" in names or "JobIDRaw" in names:
            if not bars:
                raise TraceError("the columns of sacct have no bars between them", where=place, hint="Use sacct -P.")
            kind = "sacct"
        elif "JOBID" in names:
            if not names & {"ST", "STATE"} or "PARTITION" not in names:
                raise TraceError(
                    "the table lacks the state or the partition of jobs",
                    where=place,
                    expected="columns JOBID, PARTITION and STATE",
                    found=quoted(header.strip()),
                )
            kind = "squeue"
        elif names & _NODE_COLUMNS and names & set(_STATE_COLUMNS):
            kind = "sinfo"
        else:
            raise TraceError(
                "the first line is neither a record nor a header that is known",
                where=place,
                expected=_COMMANDS,
                found=quoted(header.strip()),
                hint="Do not use --noheader.",
            )
        self._rows((kind, row) for row in rows_of(lines, header))

    def _rows(self, rows: Iterable[tuple[str, LiveRow | TraceError]]) -> None:
        """Add rows, given as (kind, row), to the state; list the messages of faulty rows."""
        for kind, row in rows:
            if isinstance(row, TraceError):
                self._state.faults.append(str(row))
                continue
            try:
                self._add(kind, row)
            except TraceError as error:
                self._state.faults.append(str(error))

    def _add(self, kind: str, row: LiveRow) -> None:
        state = self._state
        if kind in ("job", "squeue", "sacct"):
            if kind == "sacct" and "." in row.cells.get("JobID", row.cells.get("JobIDRaw", "")):
                return  # a step
            texts = row.cells
            if kind == "squeue":
                texts = _renamed(row.cells, SQUEUE)
                told = [row.cells.get(f"{PRIORITY}{more}", "") for more in ("", " 2")]
                texts["priority"] = next((text for text in told if text.isdecimal()), "")
            elif kind == "sacct":
                texts = _renamed({"JobID": row.cells.get("JobIDRaw", ""), **row.cells}, SACCT)
            self._job(job_of(JobTexts(row.place, texts, self._clock), ranged=kind == "job"))
        elif kind == "node":
            self._nodes(row.cells, row.place)
        elif kind == "sinfo":
            cells = row.cells
            self._nodes(
                {
                    "name": next(cells[name] for name in ("NODELIST", "HOSTNAMES") if name in cells),
                    "state": next(cells[name] for name in _STATE_COLUMNS if name in cells).upper(),
                    "partition": cells.get("PARTITION", ""),
                    "avail": cells.get("AVAIL", ""),
                },
                row.place,
            )
        elif kind == "reservation":
            state.reservations.append(reservation_of(row.cells, row.place, self._clock))
        elif kind == "share":
            if state.shares is None:
                state.shares = []
            share = share_of(row.cells, row.place)
            if share is not None:
                state.shares.append(share)
        else:
            self._skipped[f"records of a {kind}, which are not needed"] += 1

    def _nodes(self, cells: dict[str, str], place: str) -> None:
        name, partition = cells.get("name", ""), cells.get("partition", "").rstrip("*")
        if partition and cells.get("avail"):
            self._state.partitions[partition] = cells["avail"]
        if name in ("", "n/a"):
            return
        out = node_is_out(cells.get("state", ""), place)
        known = self._state.nodes.get(name)
        if known is None or not known.out:
            self._state.nodes[name] = LiveNode(name, cells["state"], out)

    def _job(self, job: LiveJob) -> None:
        if not (job.waits or job.holds):
            if job.state == "COMPLETING":
                self._skipped["completing jobs, taken as ended"] += 1
            tasks: Sequence[int | None] = job.tasks_of_array or [None]
            for task in tasks:
                self._state.ended[job.number, task] = job.state
            return
        if job.start is not None and job.used is not None and job.state == "RUNNING":
            self._moments.append(job.start + job.used)
        known = self._jobs.get(job.key)
        self._jobs[job.key] = job if known is None else _merged(known, job)

    def result(self) -> ClusterState:
        """Return the state, with the jobs sorted by submit time."""
        state = self._state
        if self._moments:
            state.now = max(self._moments)
        state.tested = max(self._tests, default=None)
        state.jobs = sorted(self._jobs.values(), key=lambda job: (job.submit or 0.0, job.number, job.key))
        state.remarks = [f"{what}: {count:,}" for what, count in sorted(self._skipped.items())]
        return state


def _named(records: Iterable[tuple[str, LiveRow]]) -> Iterator[tuple[str, LiveRow]]:
    """Yield records of scontrol with their keys replaced by Pipistrelle's names."""
    for kind, row in records:
        if kind == "job":
            yield kind, LiveRow(row.place, _renamed(row.cells, SCONTROL))
        elif kind == "node":
            cells = row.cells
            yield kind, LiveRow(row.place, {"name": cells.get("NodeName", ""), "state": cells.get("State", "").upper()})
        else:
            yield kind, row


def _renamed(cells: dict[str, str], names: dict[str, str]) -> dict[str, str]:
    """Return {Pipistrelle's name: text}.

    If several columns have the same meaning, the first one that is not empty counts.
    """
    found: dict[str, str] = {}
    for name, text in cells.items():
        ours = names.get(name)
        if ours is not None and not (found.get(ours, "").strip()):
            found[ours] = text
    return found


def _merged(known: LiveJob, job: LiveJob) -> LiveJob:
    """Return one record of a job, merged from two.

    The result is the later record, with fields that only the earlier record has. A record of scontrol counts as the
    later one, even if a table that is read after it has the job too.
    """
    if known.ranged and not job.ranged:
        known, job = job, known
    usual = LiveJob(place="", number=0)
    more = {
        name: getattr(known, name)
        for name in LiveJob.__struct_fields__
        if name not in ("place", "state", "nodes", "ranged") and getattr(job, name) == getattr(usual, name)
    }
    return replace(job, **more)
