"""Turn the jobs of a workload into submissions with sbatch."""

import shlex
from collections import Counter
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import fields

from pipistrelle.protocol.base.errors import InputError
from pipistrelle.protocol.events import JobDescription
from pipistrelle.runs.recordings.csv_files import read_rows
from pipistrelle.schedulers.slurm.config.submission import Submission
from pipistrelle.schedulers.slurm.files.submission import submission_of
from pipistrelle.traces.slurm.options import options_of
from pipistrelle.traces.workload import Workload

#: time of the first submission (s): the daemons have started, and no pass of the whole queue is due
BEGIN: Final = 121
_LABELS: Final = {"user": "user", "account": "account", "queue": "queue", "qos": "qos", "constraint": "constraint"}
#: fields of a submission that are recorded
_RECORDED: Final = frozenset(
    {
        *("number", "submit", "name", "user", "account", "partitions", "qos", "time_limit", "nodes", "tasks"),
        *("cpus_per_task", "mem_per_cpu", "mem_per_node", "gres", "exclusive", "constraint", "begin", "dependency"),
        *("array_task", "array_limit", "groups", "max_nodes", "switches", "switch_wait"),
        *("tasks_per_node", "licenses", "reservation", "required", "excluded", "nice", "hold", "oversubscribe"),
    }
)


class TimedCommand(Struct, frozen=True):
    """A command of scontrol as words, and the virtual time at which to run it (s)."""

    time: float
    words: list[str]


def timed_commands(path: Path) -> list[TimedCommand]:
    """Return the commands of a CSV file, by time.

    The file has the columns ``t`` (s) and ``command``.

    Raises:
        InputError: the file cannot be read, or a line is not such a command.
    """
    found = []
    for row in read_rows(path.parent, path.name, ("t", "command")):
        try:
            words = shlex.split(row["command"])
        except ValueError:
            words = []
        words = words[1:] if words[:1] == ["scontrol"] else words
        if words[:2] != ["create", "reservation"]:
            raise row.wrong("command", "scontrol create reservation ...")
        found.append(TimedCommand(row.number("t"), words))
    return sorted(found, key=lambda one: one.time)


class PlannedJob(Struct):
    """A job to submit: its time (s), the options of sbatch, and the cells of jobs.csv.

    Attributes:
        name: the job's name in the workload.
        depends: the text of ``--dependency``, in which jobs have their names in the workload; "" if none.
    """

    time: int
    name: str
    runtime: float
    depends: str
    cells: dict[str, str]
    options: list[str]


def planned_jobs(workload: Workload, default_partition: str) -> tuple[list[PlannedJob], list[str]]:
    """Return the jobs in the order of submission, and warnings.

    The warnings are about what a recording cannot include. All tasks of an array are one job. Submit times are shifted
    so that the first is 121 s, the earliest possible time. If the workload is a file of Slurm events with no earlier
    submission, its times are kept.

    Raises:
        InputError: no job has a runtime.
    """
    options, ignored = options_of(workload) or [None] * len(workload), Counter[str]()
    planned: dict[str, PlannedJob] = {}
    tasks: dict[str, list[int]] = {}
    first = float(workload.submit.min()) if len(workload) else 0.0
    shift = 0.0 if workload.format == "Slurm events" and first >= BEGIN else BEGIN - first
    for row, name in enumerate(workload.ids):
        runtime = float(workload.runtime[row])
        if not isfinite(runtime) or runtime <= 0:
            ignored["jobs without a runtime"] += 1
            continue
        told = options[row] or {}
        array = told.get("array-job")
        if array is not None:
            tasks.setdefault(array, []).append(int(told["array-task"]))
            if array in planned:
                continue
        sub = _submission(workload, row, name, told, float(workload.submit[row]) + shift)
        for field in fields(sub):
            value = getattr(sub, field.name)
            if value and value != field.default and field.name not in _RECORDED:
                ignored[f"the option {field.name.replace('_', '-')}"] += 1
        planned[array or name] = _planned(sub, array or name, runtime, default_partition)
    if not planned:
        raise InputError("the workload has no job with a runtime", where=workload.source)
    for array, indices in tasks.items():
        job = planned[array]
        most = job.cells["array"]
        job.cells["array"] = ",".join(map(str, indices)) + most
        job.options.append(f"--array={job.cells['array']}")
    said = [f"not recorded: {what} ({count:,} times)" for what, count in ignored.items()]
    return sorted(planned.values(), key=lambda job: job.time), said


def _submission(workload: Workload, row: int, name: str, told: dict[str, str], submit: float) -> Submission:
    labels: dict[str, Any] = {
        ours: workload.labels[label][row] or None for ours, label in _LABELS.items() if label in workload.labels
    }
    if "user" not in labels and "user" in workload.columns:
        labels["user"] = str(workload.columns["user"][row])
    limit = float(workload.walltime[row])
    request = workload.requests[row] if workload.requests is not None else None
    return submission_of(
        JobDescription(
            id=f"w0!{name}",
            res=int(workload.size[row]),
            walltime=limit if isfinite(limit) and limit > 0 else None,
            subtime=submit,
            options=told,
            request=request,
            **labels,
        ),
        submit,
    )


def _planned(sub: Submission, name: str, runtime: float, default_partition: str) -> PlannedJob:
    time = int(sub.submit)
    limit = max(1, -(-int(sub.time_limit or runtime) // 60))
    memory = sub.mem_per_cpu if sub.mem_per_cpu is not None else sub.mem_per_node
    gres = next(iter(sub.gres.items()), None)
    cells = {
        "submit": str(time),
        "user": sub.user,
        "account": sub.account,
        "partition": ",".join(sub.partitions) or default_partition,
        "qos": sub.qos,
        "nodes": "" if sub.nodes is None else str(sub.nodes),
        "tasks": "" if sub.tasks is None else str(sub.tasks),
        "cpus_per_task": str(sub.cpus_per_task) if sub.cpus_per_task > 1 or sub.tasks is not None else "",
        "mem": "" if memory is None else str(memory),
        "mem_per": "" if memory is None else "cpu" if sub.mem_per_cpu is not None else "node",
        "gres": "" if gres is None else f"{gres[0]}:{gres[1]}",
        "exclusive": "1" if sub.exclusive else "",
        "limit_min": str(limit),
        "run_s": f"{runtime:g}",
        "begin_s": "" if sub.begin is None else f"{sub.begin - sub.submit:g}",
        "after": sub.dependency,
        "constraint": sub.constraint,
        "array": f"%{sub.array_limit}" if sub.array_limit else "",
        "name": sub.name,
        "switches": _switches(sub),
        "options": " ".join(_further(sub)),
    }
    options = [f"--partition={cells['partition']}", f"--time={limit}"]
    for option, column in (
        ("--account", "account"),
        ("--nodes", "nodes"),
        ("--ntasks", "tasks"),
        ("--cpus-per-task", "cpus_per_task"),
        ("--gres", "gres"),
        ("--constraint", "constraint"),
        ("--job-name", "name"),
        ("--switches", "switches"),
    ):
        if cells[column]:
            options.append(f"{option}={cells[column]}")
    if memory is not None:
        options.append(f"--mem{'-per-cpu' if cells['mem_per'] == 'cpu' else ''}={memory}")
    if sub.exclusive:
        options.append("--exclusive")
    if cells["begin_s"]:
        options.append(f"--begin=now+{cells['begin_s']}")
    options += _further(sub)
    return PlannedJob(time, name, runtime, sub.dependency, cells, options)


def _further(sub: Submission) -> list[str]:
    """Return the options of sbatch that have no column of their own in jobs.csv."""
    values: Mapping[str, object] = {
        "ntasks-per-node": sub.tasks_per_node,
        "licenses": ",".join(f"{name}:{count}" for name, count in sub.licenses.items()),
        "reservation": sub.reservation,
        "nodelist": ",".join(sub.required),
        "exclude": ",".join(sub.excluded),
        "nice": sub.nice,
    }
    return [f"--{name}={value}" for name, value in values.items() if value] + [
        *["--hold"] * sub.hold,
        *["--oversubscribe"] * sub.oversubscribe,
    ]


def _switches(sub: Submission) -> str:
    """Return the text of ``--switches``; "" if the job has no such option."""
    if not sub.switches or sub.switch_wait is None:
        return str(sub.switches or "")
    minutes, seconds = divmod(int(sub.switch_wait), 60)
    return f"{sub.switches}@{minutes // 60}:{minutes % 60:02}:{seconds:02}"
