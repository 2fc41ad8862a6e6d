"""Turn the jobs of a live queue, and further jobs to try, into submissions."""

import io
import shlex
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from math import isfinite
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from pipistrelle.platforms.naming.hostlists import expanded
from pipistrelle.protocol.base.errors import InputError, PipistrelleError, quoted
from pipistrelle.protocol.events import JobDescription
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.slurm.config.submission import Submission
from pipistrelle.schedulers.slurm.files.submission import submission_of
from pipistrelle.traces.logs.job_table import LogOptions
from pipistrelle.traces.slurm.events import EventsLog
from pipistrelle.traces.slurm.options import options_of
from pipistrelle.traces.slurm.sbatch import parse_sbatch, unknown_hint
from pipistrelle.traces.slurm.state.records import LiveJob

_OPTION: Final = "--what-if"


class QueuedJob(Struct, kw_only=True):
    """An entry of the queue, in the form that the controller accepts.

    Times are in seconds of simulated time.

    Attributes:
        ids: the job's id, or the ids of the waiting tasks of its array.
        live: what the files say about the job; None: the job comes from ``what_if``.
        shown: the id that squeue shows.
    """

    ids: list[str]
    sub: Submission
    tasks: list[int]
    live: LiveJob | None
    shown: str


def entry_of(job: LiveJob, zero: float, now: float, known: Mapping[str, int], ignored: Counter[str]) -> QueuedJob:
    """Return the entry of a job in the queue.

    Args:
        zero: the date of time 0 (s since 1970).
        now: the moment of the forecast (s of simulated time).
        known: names of the cluster's nodes.
        ignored: {warning: count}; the function adds what it ignores or replaces in the job.

    Raises:
        PlatformError: a list of nodes is malformed.
    """
    tasks = job.tasks_of_array or []
    shown = f"{job.number}" if not tasks else f"{job.number}_{tasks[0]}" if len(tasks) == 1 else _array(job)
    if job.component >= 0:
        shown = f"{job.number}+{job.component}"
    told = job.max_nodes > 0 or not job.ranged or job.tasks <= job.nodes
    least, most = job.nodes, job.max_nodes or job.nodes
    if job.holds:
        least = most = max(1, len(expanded(job.node_list, job.place))) if job.node_list else job.nodes
        told = True
    if job.submit is None:
        ignored["jobs without a time of submission, taken as submitted now"] += 1
    if job.limit is None:
        ignored["jobs without a time limit, which get the default of their partition"] += 1
    begin = None
    if job.waits and job.eligible is not None and job.eligible - zero > now and not job.dependency:
        begin = job.eligible - zero
    elif job.waits and job.reason == "BeginTime" and job.start is not None and job.start - zero > now:
        begin = job.start - zero
    memory = job.memory or None
    sub = Submission(
        number=job.number,
        submit=now if job.submit is None else job.submit - zero,
        name=job.name,
        user=job.user,
        groups=(job.group,) if job.group else (),
        account=job.account,
        partitions=job.partitions,
        qos=job.qos.lower(),
        reservation=job.reservation,
        time_limit=job.limit,
        nodes=least if told else None,
        max_nodes=most if told else None,
        tasks=max(1, job.tasks, least if told else 1),
        tasks_per_node=job.tasks_per_node or None,
        cpus_per_task=job.cpus_per_task,
        mem_per_node=memory if job.memory_kind == "node" else None,
        mem_per_cpu=memory if job.memory_kind == "cpu" else None,
        gres=job.gres,
        gpus=job.gpus,
        constraint=job.features,
        required=_nodes(job.required, job.place, known, ignored) if job.waits else (),
        excluded=_nodes(job.excluded, job.place, known, ignored) if job.waits else (),
        licenses=_licenses(job.licenses),
        exclusive=job.exclusive,
        begin=begin,
        dependency="" if job.failed or job.holds else job.dependency,
        array_task=tasks[0] if len(tasks) == 1 else None,
        array_limit=job.array_limit,
        nice=job.nice,
        hold=job.waits and (job.priority == 0 or job.failed or job.reason.startswith("JobHeld")),
    )
    ids = [f"{job.number}_{task}" for task in tasks] or [shown]
    return QueuedJob(ids=ids, sub=sub, tasks=list(tasks), live=job, shown=shown)


def _array(job: LiveJob) -> str:
    """Return the id by which squeue shows an array's waiting tasks.

    An example is ``34_[1-5%2]``.
    """
    tasks = job.tasks_of_array or []
    text = str(NodeSet.of(tasks)).replace(" ", ",")
    return f"{job.number}_[{text}{f'%{job.array_limit}' if job.array_limit else ''}]"


def _nodes(text: str, place: str, known: Mapping[str, int], ignored: Counter[str]) -> tuple[str, ...]:
    names = expanded(text, place) if text else []
    missing = [name for name in names if name not in known]
    if missing:
        ignored["nodes named by jobs that slurm.conf does not have"] += len(missing)
    return tuple(name for name in names if name in known)


def _licenses(text: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in filter(None, text.split(",")):
        name, _, count = part.partition("@")[0].partition(":")
        found[name] = found.get(name, 0) + (int(count) if count.isdecimal() and len(count) < 10 else 1)
    return found


def _buffered(text: str) -> io.BufferedReader:
    raw: Any = io.BytesIO(text.encode())
    return io.BufferedReader(raw)


def tried_jobs(
    texts: list[str], zero: float, now: float, first: int, timezone: str | None
) -> tuple[list[QueuedJob], list[str]]:
    """Return the jobs that some sbatch commands would submit, and warnings.

    A command is such as ``sbatch -N 4 -t 2:00:00``. The warnings are about options that are ignored.

    Args:
        first: Slurm's id for the first of these jobs.

    Raises:
        PipistrelleError: a command is malformed.
    """
    entries: list[QueuedJob] = []
    remarks: list[str] = []
    for at, text in enumerate(texts):
        try:
            words = shlex.split(text.replace("\n", " "))
        except ValueError as error:
            raise InputError(
                f"the sbatch command cannot be split into words ({error})", where=_OPTION, found=quoted(text)
            ) from None
        if words and words[0].rpartition("/")[2] in ("sbatch", "salloc", "srun"):
            words = words[1:]
        shown = "what-if" if len(texts) == 1 else f"what-if-{at + 1}"
        date = datetime.fromtimestamp(zero + now, UTC).isoformat()
        call = f"# start: {date}\n-dt 0 -e submit_batch_job | {shlex.join(words)}\n"
        stream = _buffered(call)
        try:
            unknown = parse_sbatch(words, _OPTION).unknown
            if unknown:
                raise InputError(f"sbatch has no option {unknown[0]}", hint=unknown_hint(unknown[0]))
            workload = EventsLog.parse(stream, _OPTION, LogOptions(timezone=timezone))
            options = options_of(workload) or [None] * len(workload)
            remarks += workload.remarks
            subs = []
            for row, job in enumerate(workload.ids):
                labels: dict[str, Any] = {
                    ours: workload.labels[label][row] or None
                    for ours, label in _LABELS.items()
                    if label in workload.labels
                }
                limit = float(workload.walltime[row])
                described = JobDescription(
                    id=f"w0!{job}",
                    res=int(workload.size[row]),
                    walltime=limit if isfinite(limit) else None,
                    subtime=now,
                    options=options[row] or {},
                    **labels,
                )
                subs.append(submission_of(described, now))
        except PipistrelleError as error:
            raise InputError(
                f"{error.what} in {quoted(text)}", where=_OPTION, expected=error.expected, hint=error.hint
            ) from None
        tasks = [sub.array_task for sub in subs if sub.array_task is not None]
        ids = [f"{shown}_{task}" for task in tasks] or [shown]
        sub = replace(subs[0], number=first + at, array_task=tasks[0] if len(tasks) == 1 else None)
        entries.append(QueuedJob(ids=ids, sub=sub, tasks=tasks, live=None, shown=shown))
    return entries, remarks


_LABELS: Final = {"user": "user", "account": "account", "queue": "queue", "qos": "qos", "constraint": "constraint"}
