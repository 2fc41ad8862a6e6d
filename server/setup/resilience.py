"""Resilience options of jobs: read from workloads and validated."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from pipistrelle.platforms.description import Platform
from pipistrelle.server.errors import SetupError
from pipistrelle.server.outages.reliability import Reliability
from pipistrelle.traces.resilience import NONE, Resilience, resilience_of
from pipistrelle.traces.workload import Workload

_MEMBER = b'"resilience"'


def resiliences_of(workloads: Mapping[str, Workload]) -> dict[str, Resilience]:
    """Read {job id: resilience options} from the jobs' JSON.

    Raise ResilienceError if the options are invalid.
    """
    found: dict[str, Resilience] = {}
    for prefix, workload in workloads.items():
        for name, raw in zip(workload.ids, workload.job_json or (), strict=False):
            if _MEMBER in raw:
                members: dict[str, Any] = msgspec.json.decode(raw)
                if "resilience" in members:
                    where = f"{workload.source}, job {name}"
                    found[f"{prefix}!{name}"] = resilience_of(members["resilience"], where)
    return found


def check_resilience(
    reliability: Reliability, own: Mapping[str, Resilience], platform: Platform, workloads: Mapping[str, Workload]
) -> list[str]:
    """Return warnings about jobs whose checkpoints or spare nodes will not help.

    Raises:
        SetupError: checkpoint intervals depend on failures but nothing fails; all units of a job are spares; or a job's
            id looks like that of an attempt.
    """
    happens = (reliability.failures, reliability.outages, reliability.maintenance)
    if reliability.requeue != "never" and happens != (None, None, None):
        refuse_attempts(workloads)
    rates = reliability.rates(platform)
    mean = float(rates.mean())
    kinds = {reliability.resilience, *own.values()}
    if not mean and any(kind.rates_matter for kind in kinds):
        raise SetupError(
            "the time between dumps cannot be derived: nothing fails",
            expected="--failures or --outages, or --checkpoint SECONDS",
        )
    if kinds == {NONE}:
        return []
    from pipistrelle.server.attempts.progress import AttemptProgress

    each = max(pool.units_per_node for pool in platform.pools)
    complaints: dict[str, list[str]] = {}
    for kind, workload, prefix, rows in _alike(reliability.resilience, own, workloads):
        if kind.kind == "none":
            continue
        nodes = -(-int(workload.size[rows[0]]) // each)
        names = [f"{prefix}!{workload.ids[row]}" for row in rows.tolist()]
        if kind.kind == "spares" and kind.spares is not None and kind.spares >= nodes:
            raise SetupError(
                f"job {names[0]} has no node to work beside its spares",
                expected=f"fewer spares than its {nodes} nodes" if nodes > 1 else "no spares, as it has one node only",
                found=f"{kind.spares} spares",
                hint="Give spares as a share of the allocation, such as 1%.",
            )
        walltime, runtime = workload.walltime[rows], workload.runtime[rows]
        whole = AttemptProgress(kind, start=0.0, work=0.0, saved=0.0, nodes=range(nodes), rates=[mean] * nodes)
        early = np.zeros(rows.size, dtype=np.bool_)
        if isinstance(kind.interval, float):
            if reliability.walltime == "asked":
                early = kind.interval + kind.dump * whole.slower > walltime
            else:  # the walltime grows with each dump; work shorter than an interval needs none
                early = walltime * whole.slower <= kind.interval
        _note(complaints, "with a walltime that ends before the first dump", names, early)
        if reliability.walltime == "asked":
            late = (runtime <= walltime) & (whole.duration(runtime) > walltime) & ~early
            what = "that will reach the walltime because of dumps or spares (--checkpoint-walltime extended avoids it)"
            _note(complaints, what, names, late)
    return [
        f"{len(names):,} job{'s' * (len(names) > 1)} {what}: {', '.join(names[:3])}"
        f"{' and others' if len(names) > 3 else ''}"
        for what, names in complaints.items()
    ]


def refuse_attempts(workloads: Mapping[str, Workload]) -> None:
    """Raise SetupError if a job has the name of another job's attempt, such as 7#1."""
    for prefix, workload in workloads.items():
        marked = [name for name in workload.ids if "#" in name]
        names = frozenset(workload.ids) if marked else frozenset()
        for name in marked:
            root, _, number = name.rpartition("#")
            if root in names and number.isdecimal():
                raise SetupError(
                    f"job {prefix}!{name} has the name of an attempt of job {prefix}!{root}",
                    where=workload.source,
                    hint="Rename it, or use --requeue never.",
                )


def _note(complaints: dict[str, list[str]], what: str, names: list[str], which: NDArray[np.bool_]) -> None:
    if which.any():
        complaints.setdefault(what, []).extend(names[at] for at in np.flatnonzero(which).tolist())


def _alike(
    common: Resilience, own: Mapping[str, Resilience], workloads: Mapping[str, Workload]
) -> Iterator[tuple[Resilience, Workload, str, NDArray[np.intp]]]:
    """Group jobs by resilience options and size.

    Yield (resilience, workload, prefix, rows) of each group.
    """
    for prefix, workload in workloads.items():
        kinds: dict[Resilience, list[int]] = {}
        if own:
            for row, name in enumerate(workload.ids):
                kinds.setdefault(own.get(f"{prefix}!{name}", common), []).append(row)
        elif len(workload):
            kinds[common] = list(range(len(workload)))
        for kind, numbers in kinds.items():
            rows = np.array(numbers, dtype=np.intp)
            sizes = workload.size[rows]
            for size in np.unique(sizes).tolist():
                yield kind, workload, prefix, rows[sizes == size]
