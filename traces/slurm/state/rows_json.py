"""Convert the JSON of Slurm's commands to rows, as tables have them.

The commands are squeue, scontrol, sinfo and sshare. Source: output of ``--json`` of Slurm 22.05. Newer releases print
numbers as objects ``{"set", "infinite", "number"}`` and states as lists. Both forms are read.
"""

import json
from collections.abc import Iterator
from typing import Any, Final

from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.slurm.state.names import JSON
from pipistrelle.traces.slurm.state.tables import LiveRow
from pipistrelle.traces.workload import is_number

#: {key of the top level: kind of its rows}
KINDS: Final = {"jobs": "job", "nodes": "node", "reservations": "reservation", "shares": "share", "sinfo": "node"}


def json_rows(data: bytes, where: str) -> tuple[float | None, list[tuple[str, LiveRow]]]:
    """Return the time at which the file was made, and its rows as (kind, row).

    The time is in seconds since 1970; None if the file does not have it.

    Raises:
        TraceError: the file is not JSON of these commands.
    """
    try:
        top = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise TraceError("the file is not valid JSON", where=where, found=str(error)[:100]) from None
    known = [key for key in KINDS if isinstance(top, dict) and key in top]
    if not known:
        raise TraceError(
            "the JSON has no jobs, nodes, reservations or shares",
            where=where,
            expected="the output of squeue, scontrol, sinfo or sshare with --json",
        )
    rows: list[tuple[str, LiveRow]] = []
    for key in known:
        some = top[key]
        if isinstance(some, dict):  # sshare has a list within
            some = some.get("shares", [])
        for at, one in enumerate(some if isinstance(some, list) else []):
            place = f"{where}, {key}[{at}]"
            kind = KINDS[key]
            texts = {"": ""} if not isinstance(one, dict) else _TEXTS[key](one)
            rows.append((kind, LiveRow(place, texts)))
    made = text_of(top.get("last_update", ""))
    return (float(made) if is_number(made) and int(made) else None), rows


def text_of(value: Any) -> str:
    """Return a value as text.

    Numbers become digits, lists are joined by commas, and unset and null become "".
    """
    if isinstance(value, dict) and "number" in value:
        if value.get("infinite"):
            return "UNLIMITED"
        return text_of(value["number"]) if value.get("set", True) else ""
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, list):
        return ",".join(filter(None, map(text_of, value)))
    if isinstance(value, (int, float)):
        return str(value)[:40]
    return value if isinstance(value, str) else ""


def _job(one: dict[str, Any]) -> dict[str, str]:
    texts = {ours: text for key, ours in JSON.items() if (text := text_of(one.get(key)))}
    task = one.get("array_task_id")
    if not (isinstance(task, dict) and not task.get("set", True)) and text_of(task):
        texts.setdefault("array_tasks", text_of(task))
    states = one.get("job_state")
    if isinstance(states, list) and states:
        texts["state"] = next((str(state) for state in states if state == "COMPLETING"), str(states[0]))
    texts["max_nodes"] = text_of(one.get("max_nodes")) or "0"
    texts["nodes"] = text_of(one.get("node_count")) or "1"
    for name in ("mem_node", "mem_cpu", "limit"):
        if texts.get(name) == "0":
            del texts[name]
    for key in ("exclusive", "shared"):
        words = [text.lower() for text in text_of(one.get(key)).split(",")]
        if {"yes", "true", "none"} & set(words):
            texts["exclusive"] = "NO"
    if one.get("hold"):
        texts["priority"] = "0"
    start, used = texts.get("start", ""), text_of(one.get("run_time"))
    if is_number(used) and start:
        texts["used_seconds"] = used
    texts["tested"] = text_of(one.get("last_sched_evaluation"))
    resources = one.get("job_resources")
    nodes = resources.get("allocated_nodes") if isinstance(resources, dict) else None
    texts["detail"] = "\n".join(_details(nodes if isinstance(nodes, list) else []))
    return texts


def _details(nodes: list[Any]) -> Iterator[str]:
    """Yield what a job holds of each node, as ``scontrol -d`` writes it."""
    for node in nodes:
        if not isinstance(node, dict):
            continue
        name = text_of(node.get("nodename") or node.get("name"))
        cpus = next((text for key in ("cpus_used", "cpus") if is_number(text := text_of(node.get(key)))), "")
        if cpus in ("", "0"):  # Slurm 22.05 counts the CPUs of steps, and lists the cores of the job
            cpus = str(_cores(node.get("sockets")))
        memory = next(
            (text for key in ("memory_allocated", "memory") if is_number(text := text_of(node.get(key)))), "0"
        )
        if name and cpus and 0 < int(cpus) < 100_000:
            yield f"Nodes={name} CPU_IDs=0-{int(cpus) - 1} Mem={memory}"


def _cores(sockets: Any) -> int:
    """Return the number of cores in ``{socket: {"cores": {core: state}}}``."""
    return sum(len(_object(_object(socket).get("cores"))) for socket in _object(sockets).values())


def _node(one: dict[str, Any]) -> dict[str, str]:
    states = [*_words(one.get("state")), *_words(one.get("state_flags"))]
    return {"name": text_of(one.get("name")), "state": "+".join(states).upper(), "reason": text_of(one.get("reason"))}


def _sinfo(one: dict[str, Any]) -> dict[str, str]:
    node, nodes, partition = (_object(one.get(key)) for key in ("node", "nodes", "partition"))
    return {
        "name": text_of(nodes.get("nodes")),
        "state": "+".join(_words(node.get("state"))).upper(),
        "partition": text_of(partition.get("name")),
        "avail": text_of(_object(partition.get("partition")).get("state")).lower(),
    }


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _words(value: Any) -> list[str]:
    return [text for one in (value if isinstance(value, list) else [value]) if (text := text_of(one))]


def _reservation(one: dict[str, Any]) -> dict[str, str]:
    names = {
        "name": "ReservationName",
        "start_time": "StartTime",
        "end_time": "EndTime",
        "node_list": "Nodes",
        "users": "Users",
        "accounts": "Accounts",
        "flags": "Flags",
        "licenses": "Licenses",
    }
    return {theirs: text_of(one.get(key)) for key, theirs in names.items()}


def _share(one: dict[str, Any]) -> dict[str, str]:
    user = "USER" in [word.upper() for word in _words(one.get("type"))] or bool(_words(one.get("user")))
    name = text_of(one.get("name"))
    return {
        "Account": text_of(one.get("parent")) if user else name,
        "User": name if user else "",
        "Partition": text_of(one.get("partition")),
        "RawUsage": text_of(one.get("usage")),
    }


_TEXTS: Final = {"jobs": _job, "nodes": _node, "sinfo": _sinfo, "reservations": _reservation, "shares": _share}
