"""Dependencies between jobs, read from workloads."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Final

import numpy as np

from pipistrelle.protocol.base.errors import legible
from pipistrelle.server.engine.dependencies import BEGIN, KINDS, Condition
from pipistrelle.server.errors import SetupError
from pipistrelle.traces.logs.dependencies import parse_dependency
from pipistrelle.traces.slurm.options import begin_delay, options_of
from pipistrelle.traces.workload import OPTIONS, Workload, is_number

#: jobs shown of a dependency cycle, names shown in a remark, and characters shown of a name
_SHOWN: Final = 6
_NAMED: Final = 3
_LONGEST: Final = 40
#: options of submissions that decide something without the scheduler: the request, dependencies and begin times
_TAKEN: Final = frozenset(
    (
        *("array-job", "array-task", "begin", "dependency", "name", "nodes", "ntasks", "ntasks-per-node"),
        *("cpus-per-task", "cpus-per-gpu", "mem", "mem-per-cpu", "mem-per-gpu", "gres", "gpus", "gpus-per-node"),
        *("gpus-per-task", "exclusive", "licenses", "ntasks-per-gpu", "oversubscribe", "requeue"),
    )
)


def conditions_of(workloads: Mapping[str, Workload]) -> dict[str, tuple[Condition, ...]]:
    """Return {job id: its dependencies} of the dependent jobs.

    A dependency on a job that is not in the workload counts as fulfilled: the job ended earlier or was dropped.
    Dependencies of kinds other than `KINDS`, such as ``singleton``, count as fulfilled, too. A dependency on an array
    becomes a dependency on each of its tasks. In SWF, a job waits for the end of its preceding job, and then for its
    think time. A job with the option ``begin`` waits for that time.

    Raises:
        SetupError: jobs wait for each other.
    """
    found: dict[str, tuple[Condition, ...]] = {}
    for prefix, name, wishes, known in _wishes_of(workloads):
        kept = [wish for wish in wishes if wish.kind in KINDS and wish.job_id in known and wish.job_id != name]
        if kept:
            found[f"{prefix}!{name}"] = tuple(wish._replace(job_id=f"{prefix}!{wish.job_id}") for wish in kept)
    for prefix, workload in workloads.items():
        for row, options in enumerate(options_of(workload) or () if OPTIONS in workload.labels else ()):
            if options is not None and (delay := begin_delay(options)) > 0:
                job = f"{prefix}!{workload.ids[row]}"
                begin = Condition(BEGIN, "", float(workload.submit[row]) + delay)
                found[job] = (*found.get(job, ()), begin)
    _refuse_circles(found)
    return found


def dependency_remarks(workloads: Mapping[str, Workload]) -> list[str]:
    """Return warnings about ignored dependencies, each naming at most three jobs."""
    return [*absent_remarks(workloads), *kind_remarks(workloads)]


def absent_remarks(workloads: Mapping[str, Workload]) -> list[str]:
    """Return a warning about dependencies on jobs that are not in the workload.

    The result is empty if there are none.
    """
    absent: list[str] = []
    for prefix, name, wishes, known in _wishes_of(workloads):
        missing = [wish.job_id for wish in wishes if wish.kind in KINDS and wish.job_id not in known]
        if missing:
            absent.append(f"{prefix}!{name} (on {missing[0]})")
    if not absent:
        return []
    verb = "jobs depend" if len(absent) > 1 else "job depends"
    return [
        f"{len(absent):,} {verb} on jobs that are not in the workload, or cannot run, and will not wait for them: "
        f"{first_of(absent)}"
    ]


def kind_remarks(workloads: Mapping[str, Workload]) -> list[str]:
    """Return a warning about dependencies of kinds that the server does not simulate.

    The result is empty if there are none.
    """
    strange: list[str] = []
    kinds: dict[str, None] = {}  # an ordered set
    for prefix, name, wishes, _ in _wishes_of(workloads):
        others = [wish.kind for wish in wishes if wish.kind not in KINDS]
        if others:
            strange.append(f"{prefix}!{name}")
            kinds.update(dict.fromkeys(others))
    if not strange:
        return []
    verb = "jobs have" if len(strange) > 1 else "job has"
    return [
        f"{len(strange):,} {verb} dependencies that are not simulated ({first_of(list(kinds))}), and will "
        f"not wait for them: {first_of(strange)}"
    ]


def options_remarks(workloads: Mapping[str, Workload], used: Collection[str] = _TAKEN) -> list[str]:
    """Return a warning about submission options that the scheduler does not read.

    The result is empty if there are none. The warning counts the jobs with each option.

    Args:
        used: options that the scheduler or the server reads. An entry ``NAME=VALUE`` is read with this value only.
    """
    counts: Counter[str] = Counter()
    for workload in workloads.values():
        if OPTIONS in workload.labels:
            counts.update(
                name
                for options in options_of(workload) or ()
                for name, value in (options or {}).items()
                if name not in used and f"{name}={value}" not in used
            )
    if not counts:
        return []
    told = ", ".join(f"{name} ({counts[name]:,} {'job' if counts[name] == 1 else 'jobs'})" for name in sorted(counts))
    return [f"this scheduler does not read these options of submissions: {told}"]


def _wishes_of(workloads: Mapping[str, Workload]) -> Iterator[tuple[str, str, list[Condition], set[str]]]:
    """Yield (workload prefix, job id, dependencies, ids of all the workload's jobs).

    There is one tuple per dependent job.
    """
    for prefix, workload in workloads.items():
        wishes = list(_wishes(workload))
        known = set(workload.ids if wishes else ())
        tasks = _tasks(workload) if wishes else {}
        for row, some in wishes:
            jobs = [wish._replace(job_id=job) for wish in some for job in tasks.get(wish.job_id, (wish.job_id,))]
            yield prefix, workload.ids[row], jobs, known


def _tasks(workload: Workload) -> dict[str, list[str]]:
    """Return {id of an array: ids of its tasks}."""
    found: dict[str, list[str]] = {}
    for name in workload.ids:
        array, mark, task = name.partition("_")
        if mark and is_number(array) and is_number(task):
            found.setdefault(array, []).append(name)
    return found


def _wishes(workload: Workload) -> Iterator[tuple[int, list[Condition]]]:
    """Yield (row in the workload, dependencies) of each dependent job.

    Dependencies have job ids as in the log.
    """
    texts = workload.labels.get("dependency")
    preceding = workload.columns.get("preceding")
    think = workload.measures.get("think_time")
    follows = np.zeros(len(workload), dtype=np.bool_) if preceding is None else preceding > 0
    if texts is not None:
        follows = follows | np.array([bool(text) for text in texts], dtype=np.bool_)
    for row in np.flatnonzero(follows).tolist():
        if texts is not None and texts[row]:
            yield row, [Condition(kind, job) for kind, jobs in parse_dependency(texts[row]) for job in jobs or [""]]
        elif preceding is not None:
            delay = 0.0 if think is None else max(0.0, float(think[row]))
            yield row, [Condition("afterany", str(preceding[row]), delay)]


def first_of(names: list[str]) -> str:
    """Return at most three of ``names`` as one text, such as ``a, b, c``."""
    shown = ", ".join(legible(name, _LONGEST) for name in names[:_NAMED])
    return shown + (" and others" if len(names) > _NAMED else "")


def _refuse_circles(conditions: Mapping[str, tuple[Condition, ...]]) -> None:
    done: set[str] = set()
    for first in conditions:
        path: dict[str, None] = {}  # an ordered set
        stack = [(first, False)]
        while stack:
            job_id, left = stack.pop()
            if left:
                path.pop(job_id)
                done.add(job_id)
                continue
            if job_id in path:
                circle = [*list(path)[list(path).index(job_id) :], job_id]
                raise SetupError(
                    "jobs wait for each other",
                    found=" after ".join(circle[:_SHOWN]) + (" ..." if len(circle) > _SHOWN else ""),
                    hint="None of them could ever start: remove one of the dependencies.",
                )
            if job_id in done or job_id not in conditions:
                continue
            path[job_id] = None
            stack.append((job_id, True))
            stack += [(condition.job_id, False) for condition in conditions[job_id]]
