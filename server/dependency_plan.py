"""What the jobs of a run wait for, read from their workloads."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from pipistrelle.server.errors import SetupError
from pipistrelle.traces.dependencies import parse_dependency
from pipistrelle.traces.workload import Workload

#: {kind: what of the other job fulfils it}
KINDS: Final = {
    "after": "its start",
    "afterok": "its success",
    "afterany": "its end",
    "afternotok": "its end without success",
}


class Condition(NamedTuple):
    """What a job waits for: ``delay`` seconds after another's start or end, as ``kind`` says (`KINDS`)."""

    kind: str
    job_id: str
    delay: float = 0.0


def conditions_of(workloads: Mapping[str, Workload]) -> dict[str, tuple[Condition, ...]]:
    """Return {job id: what it waits for} for the jobs that do.

    A job of the trace that it waits for and that is not there counts as ended: before the trace begins, or dropped. So
    do kinds other than `KINDS`, such as ``singleton``. In SWF a job waits for its preceding one's end, and thinks.

    Raises
    ------
    SetupError
        when jobs wait for each other in a circle.
    """
    found: dict[str, tuple[Condition, ...]] = {}
    for prefix, workload in workloads.items():
        known = set(workload.ids)
        texts = workload.labels.get("dependency")
        preceding = workload.columns.get("preceding")
        if texts is None and preceding is None:
            continue
        think = workload.measures.get("think_time")
        for row, name in enumerate(workload.ids):
            text = "" if texts is None else texts[row]
            some: list[Condition] = []
            if text:
                some = _conditions(text, known)
            elif preceding is not None and preceding[row] > 0 and str(preceding[row]) in known:
                delay = 0.0 if think is None else max(0.0, float(think[row]))
                some = [Condition("afterany", str(preceding[row]), delay)]
            _add(found, prefix, name, [condition for condition in some if condition.job_id != name])
    _refuse_circles(found)
    return found


def _conditions(text: str, known: set[str]) -> list[Condition]:
    return [
        Condition(kind, job) for kind, jobs in parse_dependency(text) if kind in KINDS for job in jobs if job in known
    ]


def _add(found: dict[str, tuple[Condition, ...]], prefix: str, name: str, some: list[Condition]) -> None:
    if some:
        found[f"{prefix}!{name}"] = tuple(Condition(c.kind, f"{prefix}!{c.job_id}", c.delay) for c in some)


def _refuse_circles(conditions: Mapping[str, tuple[Condition, ...]]) -> None:
    """Raise SetupError if jobs wait for each other."""
    done: set[str] = set()
    for first in conditions:
        path: dict[str, None] = {}  # in order
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
                    hint="None of them could ever start: take one of the dependencies out.",
                )
            if job_id in done or job_id not in conditions:
                continue
            path[job_id] = None
            stack.append((job_id, True))
            stack += [(condition.job_id, False) for condition in conditions[job_id]]


_SHOWN: Final = 6
