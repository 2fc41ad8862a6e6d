"""Convert sbatch's options about nodes to a request."""

import re
from collections.abc import Mapping
from typing import Any, Final

from pipistrelle.protocol.base.errors import quoted
from pipistrelle.protocol.resources.amounts import MILLI, NAME, AmountError, parse_memory
from pipistrelle.protocol.resources.request import Request
from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.workload import is_number

_RANGE: Final = re.compile(r"(\d{1,9})([kKmM]?)(?:-(\d{1,9})([kKmM]?))?")
_SCALES: Final = {"": 1, "k": 1024, "m": 1024**2}
_GPU: Final = "gpu"


def request_of_options(values: Mapping[str, str], where: str) -> tuple[Request, dict[str, str]]:
    """Return what a job requests, and the options that a `Request` cannot hold.

    As in sbatch, a job gets no more nodes than it has tasks. A job without a number of tasks or nodes has one task.

    Args:
        values: {long name of an option of sbatch: value}.

    Raises:
        TraceError: a value is malformed, or the values contradict each other.
    """
    rest: dict[str, str] = {}
    least, most = _nodes(values["nodes"], where) if "nodes" in values else (None, None)
    tasks = _count(values, "ntasks", where)
    per_node = _count(values, "ntasks-per-node", where)
    each_gpu = _count(values, "cpus-per-gpu", where)
    gpus, models = _gpus(values, where)
    if tasks is None and (each := _count(values, "ntasks-per-gpu", where)) is not None:
        tasks = each * (gpus.get("gpus") or gpus.get("gpus_per_node", 0) * (least or 1)) or None
    if tasks is None and least is None:
        tasks = per_node or 1
    if tasks is not None and least is not None and tasks < least:
        least, most = tasks, tasks if most is None else min(most, tasks)
    exclusive = values.get("exclusive")
    if exclusive:
        rest["exclusive"] = exclusive  # of one user or one security label
    cores = _count(values, "cpus-per-task", where) or 1
    if each_gpu is not None:
        rest["cpus-per-gpu"] = values["cpus-per-gpu"]
        cores = max(cores, -(-each_gpu * _gpus_in_all(gpus, least, tasks) // (tasks or (per_node or 1) * (least or 1))))
    others, licenses = _others(values, where), _licenses(values, where, rest)
    members: dict[str, Any] = {
        "nodes": least,
        "most_nodes": most,
        "tasks": tasks,
        "tasks_per_node": per_node,
        "cores_per_task": cores * MILLI,
        **_memory(values, where, rest),
        **gpus,
        "gpu_models": models,
        "exclusive": exclusive == "",
        "licenses": licenses,
        "others": others,
    }
    try:
        request = Request(**members)
        request.check()
    except AmountError as error:
        raise error.at(where, TraceError) from None
    return request, rest


def most_nodes(options: Mapping[str, str], where: str) -> int:
    """Return the most whole nodes that sbatch options allow a job.

    Return 0 if they say nothing of nodes and tasks.

    Raises:
        TraceError: an option is malformed.
    """
    if "nodes" in options:
        return _nodes(options["nodes"], where)[1]
    return _count(options, "ntasks", where) or 0


def _nodes(text: str, where: str) -> tuple[int, int]:
    found = _RANGE.fullmatch(text)
    if found is not None:
        least = int(found[1]) * _SCALES[found[2].lower()]
        most = least if found[3] is None else int(found[3]) * _SCALES[found[4].lower()]
        if 1 <= least <= most:
            return least, most
    raise _fault("nodes", text, "a number of nodes, as 4 or 2-4", where)


def _count(values: Mapping[str, str], name: str, where: str) -> int | None:
    text = values.get(name)
    if text is None:
        return None
    if not is_number(text, 9) or int(text) < 1:
        raise _fault(name, text, "a whole number of at least 1", where)
    return int(text)


def _memory(values: Mapping[str, str], where: str, rest: dict[str, str]) -> dict[str, int]:
    """Return the amount of memory in MiB, as {field of `Request`: amount}.

    ``--mem=0`` means all memory of the node. A `Request` cannot say that, so the option goes into ``rest``.
    """
    found = {}
    for name, member in (
        ("mem", "memory_per_node"),
        ("mem-per-cpu", "memory_per_core"),
        ("mem-per-gpu", "memory_per_gpu"),
    ):
        if name not in values:
            continue
        try:
            amount = parse_memory(values[name].strip())
        except AmountError as error:
            raise error.at(f"{where}, --{name}", TraceError) from None
        if amount:
            found[member] = amount
        else:
            rest[name] = "0"
    return found


def _gpus(values: Mapping[str, str], where: str) -> tuple[dict[str, int], tuple[str, ...]]:
    """Return {field of `Request`: number of GPUs}, and the GPU models."""
    found: dict[str, int] = {}
    models: dict[str, None] = {}  # an ordered set
    for name, member in (("gpus", "gpus"), ("gpus-per-node", "gpus_per_node"), ("gpus-per-task", "gpus_per_task")):
        for model, count in _typed(values.get(name, ""), name, where):
            found[member] = found.get(member, 0) + count
            models.update(dict.fromkeys([model] if model else []))
    for resource, model, count in _gres(values, where):
        if resource == _GPU and count:
            found["gpus_per_node"] = found.get("gpus_per_node", 0) + count
            models.update(dict.fromkeys([model] if model else []))
    return found, tuple(models)


def _gpus_in_all(gpus: Mapping[str, int], nodes: int | None, tasks: int | None) -> int:
    return (
        gpus.get("gpus", 0)
        + gpus.get("gpus_per_node", 0) * (nodes or 1)
        + gpus.get("gpus_per_task", 0) * (tasks or nodes or 1)
    )


def _typed(text: str, name: str, where: str) -> list[tuple[str, int]]:
    """Parse a list such as ``4`` or ``a100:4,v100:2``.

    Return (type, count) of each entry.
    """
    found = []
    for part in filter(None, text.split(",")):
        model, _, count = part.rpartition(":")
        if not is_number(count, 6) or (model and NAME.fullmatch(model) is None):
            raise _fault(name, text, "a number, as 4 or a100:4", where)
        found.append((model, int(count)))
    return found


def _gres(values: Mapping[str, str], where: str) -> list[tuple[str, str, int]]:
    """Parse ``gpu:a100:4,nvme:1`` as (resource, model or "", number)."""
    found: list[tuple[str, str, int]] = []
    text = values.get("gres", "")
    for part in [] if text.lower() == "none" else filter(None, text.split(",")):
        resource, *more = part.removeprefix("gres/").replace("gres:", "").replace("=", ":").split(":")
        count = more.pop() if more and is_number(more[-1].rstrip("kKmMgG"), 9) else "1"
        scale = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}[count.lstrip("0123456789").lower()]
        if len(more) > 1 or NAME.fullmatch(resource) is None or (more and NAME.fullmatch(more[0]) is None):
            raise _fault("gres", text, "as gpu:2 or gpu:a100:2, separated by commas", where)
        found.append((resource, more[0] if more else "", int(count.rstrip("kKmMgG")) * scale))
    return found


def _others(values: Mapping[str, str], where: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for resource, model, count in _gres(values, where):
        if resource != _GPU and count:
            name = f"{resource}:{model}" if model else resource
            found[name] = found.get(name, 0) + count
    return found


def _licenses(values: Mapping[str, str], where: str, rest: dict[str, str]) -> dict[str, int]:
    text = values.get("licenses", "")
    if "|" in text:  # one of several licences: only the scheduler can choose
        rest["licenses"] = text
        return {}
    found: dict[str, int] = {}
    for part in filter(None, re.split("[,;]", text)):
        name, _, count = part.replace("=", ":").partition(":")
        if NAME.fullmatch(name) is None or not is_number(count or "1", 9):
            raise _fault("licenses", text, "as matlab:2, separated by commas", where)
        found[name] = found.get(name, 0) + int(count or "1")
    return found


def _fault(name: str, text: str, expected: str, where: str) -> TraceError:
    return TraceError(f"the value of --{name} is malformed", where=where, expected=expected, found=quoted(text))
