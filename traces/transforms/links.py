"""Dependencies between jobs when jobs go: what waited for them waits for them no longer."""

import re
from collections.abc import Set
from dataclasses import replace

import numpy as np

from pipistrelle.traces.logs.dependencies import parse_dependency
from pipistrelle.traces.workload import Workload


def forget_jobs(workload: Workload, gone: Set[str]) -> Workload:
    """Return the workload without dependencies on the jobs whose ids are in `gone`.

    Otherwise another job that gets such an id later would be waited for. A preceding job becomes -1.
    """
    if not gone:
        return workload
    columns, labels = dict(workload.columns), dict(workload.labels)
    if "preceding" in columns:
        lost = [str(job) in gone for job in columns["preceding"].tolist()]
        columns["preceding"] = np.where(np.array(lost, dtype=np.bool_), -1, columns["preceding"]).astype(np.int64)
    if "dependency" in labels:
        labels["dependency"] = [forget_in(text, gone) if text else text for text in labels["dependency"]]
    return replace(workload, columns=columns, labels=labels)


def forget_in(text: str, gone: Set[str]) -> str:
    """Return a job's dependencies, such as ``afterok:3:4,afterany:7``, without those on the jobs in `gone`.

    With 4 and 7 gone this is ``afterok:3``. Parts that name no jobs stay as they are.
    """
    first, *others = re.split("([,?])", text)
    parts = [("", first), *zip(others[::2], others[1::2], strict=True)]
    kept = [(mark, left) for mark, part in parts if (left := _left(part, gone)) is not None]
    return "".join(part if at == 0 else mark + part for at, (mark, part) in enumerate(kept))


def _left(part: str, gone: Set[str]) -> str | None:
    """Return what is left of one part, None if nothing is."""
    kind, colon, listed = part.partition(":")
    jobs = listed.split(":")
    plain = [names[0] if names else None for job in jobs for _, names in parse_dependency(f"{kind}:{job}")]
    if not colon or len(plain) != len(jobs) or None in plain:
        return part
    left = [job for job, name in zip(jobs, plain, strict=True) if name not in gone]
    return f"{kind}:{':'.join(left)}" if left else None
