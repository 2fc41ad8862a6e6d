"""Convert a job description of the protocol to a submission to Slurm."""

import re
from collections.abc import Mapping
from typing import Any, Final

from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.naming.hostlists import expanded
from pipistrelle.platforms.slurm.conf import SlurmConfigError
from pipistrelle.platforms.slurm.gres import read_gres
from pipistrelle.platforms.slurm.values import SlurmValueError, read_licenses, read_names, read_time
from pipistrelle.protocol.events import JobDescription
from pipistrelle.protocol.resources.amounts import AmountError, parse_memory
from pipistrelle.protocol.resources.request import Request
from pipistrelle.schedulers.slurm.config.submission import Submission

#: options of submissions that the scheduler reads; ``NAME=VALUE``: only with this value
USED_OPTIONS: Final = frozenset(
    (
        *("array", "array-job", "array-task", "begin", "contiguous", "dependency", "exclude", "exclusive=", "hold"),
        *("kill-on-invalid-dep", "mincpus", "name", "nice", "no-requeue", "nodelist", "partition", "requeue"),
        *("oversubscribe", "reservation", "switches", "time-min"),
        *("cpus-per-gpu", "cpus-per-task", "gpus", "gpus-per-node", "gpus-per-task", "gres", "licenses", "mem"),
        *("mem-per-cpu", "mem-per-gpu", "nodes", "ntasks", "ntasks-per-gpu", "ntasks-per-node"),
    )
)
_NUMBER: Final = re.compile(r"(\d{1,15})(?:_(\d{1,9}))?")
_BEGIN: Final = re.compile(r"now\+(\d{1,12}(?:\.\d{1,9})?)")
_NODES: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
_LIMIT: Final = re.compile(r"%(\d{1,9})")
_GPU: Final = "gpu"
#: options without which a job's request or number of nodes decides
_OF_NODES: Final = (
    *("nodes", "ntasks", "ntasks-per-node", "ntasks-per-gpu", "cpus-per-task", "mincpus", "nodelist"),
    *("gres", "gpus", "mem", "mem-per-cpu"),
)
_KILLS: Final = {"yes": True, "no": False}


def submission_of(job: JobDescription, now: float) -> Submission:
    """Return the submission of a job.

    The resources come from the job's sbatch options, or else from its request, or else from its number of nodes. If the
    job's id is not a number, the submission's ``number`` is 0.

    Args:
        now: the time of submission (s).

    Raises:
        SlurmConfigError: an option has a malformed value.
    """
    options, where = job.options, f"job {job.id}"
    found = _NUMBER.fullmatch(job.id.partition("!")[2].partition("#")[0])
    begin = _BEGIN.fullmatch(options.get("begin", ""))
    limit = _LIMIT.search(options.get("array", ""))
    submitted = now if job.subtime is None else job.subtime
    named = options.get("partition") or job.queue or ""
    try:
        taken = _taken(options, where) if _tells_nodes(options) else _requested(job.request, job.res)
        return Submission(
            number=int(options.get("array-job", "") or (found[1] if found else 0)),
            submit=submitted,
            name=options.get("name", ""),
            user=job.user or "",
            groups=(job.group,) if job.group else (),
            account=job.account or "",
            partitions=read_names(named),
            qos=(job.qos or "").lower(),
            reservation=options.get("reservation", ""),
            time_limit=job.walltime,
            time_min=_time(options, "time-min"),
            oversubscribe="oversubscribe" in options,
            contiguous="contiguous" in options,
            constraint=job.constraint or "",
            required=tuple(expanded(options["nodelist"], where)) if options.get("nodelist") else (),
            excluded=tuple(expanded(options["exclude"], where)) if options.get("exclude") else (),
            begin=None if begin is None else submitted + float(begin[1]),
            dependency=options.get("dependency", ""),
            array_task=int(options["array-task"]) if "array-task" in options else None,
            array_limit=int(limit[1]) if limit is not None else 0,
            nice=int(options["nice"] or 100) if "nice" in options else 0,
            hold="hold" in options,
            kill_on_invalid=_KILLS.get(options.get("kill-on-invalid-dep", "").lower()),
            requeue=True if "requeue" in options else False if "no-requeue" in options else None,
            **switches_of(options.get("switches", "")),
            **taken,
        )
    except (ValueError, SlurmValueError, PlatformError, AmountError) as error:
        raise SlurmConfigError(f"an option of the job is malformed ({error})", where=where) from None


def _tells_nodes(options: Mapping[str, str]) -> bool:
    return any(name in options for name in _OF_NODES)


def _taken(options: Mapping[str, str], where: str) -> dict[str, Any]:
    """Return the fields of `Submission` that sbatch options on resources set.

    The result is {field: value}.
    """
    found = _NODES.fullmatch(options.get("nodes", ""))
    gres = read_gres(options["gres"], where) if options.get("gres", "none").lower() != "none" else {}
    for model, count in _typed(options.get("gpus-per-node", "")):
        gres[f"{_GPU}:{model}" if model else _GPU] = count
    return {
        "nodes": int(found[1]) if found else None,
        "max_nodes": int(found[2] or found[1]) if found else None,
        "tasks": _count(options, "ntasks") or _tasks_of_gpus(options, gres),
        "tasks_per_node": _count(options, "ntasks-per-node"),
        "cpus_per_task": _count(options, "cpus-per-task") or 1,
        "cpus_per_gpu": _count(options, "cpus-per-gpu") or 0,
        "min_cpus_per_node": _count(options, "mincpus") or 0,
        "gpus": sum(count for _, count in _typed(options.get("gpus", ""))),
        "gpus_per_task": sum(count for _, count in _typed(options.get("gpus-per-task", ""))),
        "gpu_model": _model(options.get("gpus", "") or options.get("gpus-per-task", "")),
        "mem_per_node": parse_memory(options["mem"]) if "mem" in options else None,
        "mem_per_cpu": parse_memory(options["mem-per-cpu"]) if "mem-per-cpu" in options else None,
        "mem_per_gpu": parse_memory(options["mem-per-gpu"]) if "mem-per-gpu" in options else None,
        "gres": gres,
        "licenses": read_licenses(options.get("licenses", "").replace(";", ",")),
        "exclusive": options.get("exclusive") == "",
    }


def _tasks_of_gpus(options: Mapping[str, str], gres: Mapping[str, int]) -> int | None:
    """Return the number of tasks that ``--ntasks-per-gpu`` implies for the job's GPUs.

    Return None if the option is not given.
    """
    each = _count(options, "ntasks-per-gpu")
    if each is None:
        return None
    nodes = _NODES.fullmatch(options.get("nodes", ""))
    on_node = sum(count for name, count in gres.items() if name.partition(":")[0] == _GPU)
    gpus = sum(count for _, count in _typed(options.get("gpus", "")))
    return each * (gpus or on_node * (int(nodes[1]) if nodes else 1)) or None


def _requested(request: Request | None, nodes: int) -> dict[str, Any]:
    """Return the fields of `Submission` that a job's resource request sets.

    The result is {field: value}. Without a request, the job takes ``nodes`` whole nodes.
    """
    if request is None:
        return {"nodes": nodes, "max_nodes": nodes}
    models = request.gpu_models[:1]
    name = f"{_GPU}:{models[0]}" if models else _GPU
    gres = dict(request.others)
    if request.gpus_per_node:
        gres[name] = request.gpus_per_node
    return {
        "nodes": request.nodes,
        "max_nodes": request.most_nodes,
        "tasks": request.tasks,
        "tasks_per_node": request.tasks_per_node,
        "cpus_per_task": request.cores_of_task,
        "gpus": request.gpus,
        "gpus_per_task": request.gpus_per_task,
        "gpu_model": models[0] if len(request.gpu_models) == 1 else "",
        "mem_per_node": request.memory_per_node,
        "mem_per_cpu": request.memory_per_core,
        "mem_per_gpu": request.memory_per_gpu,
        "gres": gres,
        "licenses": dict(request.licenses),
        "exclusive": request.exclusive,
    }


def _count(options: Mapping[str, str], name: str) -> int | None:
    return int(options[name]) if options.get(name) else None


def _typed(text: str) -> list[tuple[str, int]]:
    """Parse a list such as ``4`` or ``a100:4,v100:2`` into (type, count)."""
    parts = [part.rpartition(":") for part in read_names(text)]
    return [(model, int(count)) for model, _, count in parts]


def _model(text: str) -> str:
    """Return the model of all GPUs in a list such as ``a100:4``.

    Return "" if there are several models, or none.
    """
    models = {model for model, _ in _typed(text)}
    return models.pop() if len(models) == 1 else ""


def _time(options: Mapping[str, str], name: str) -> float | None:
    return read_time(options[name]) if options.get(name) else None


def switches_of(text: str) -> dict[str, Any]:
    """Return the fields of `Submission` that the text of ``--switches`` sets.

    The result is {field: value}.

    Raises:
        ValueError: the number is malformed.
        SlurmValueError: the time is malformed.
    """
    count, mark, time = text.partition("@")
    if not count:
        return {}
    return {"switches": int(count), "switch_wait": read_time(time) if mark else None}
