"""The Python skeleton with one fault on nodes that jobs share: `broken_on_nodes.py URL FAULT`.

The fault `none` is correct. Unlike the skeleton, this scheduler can take over a run from another one.
"""

import sys
from importlib.resources import files
from typing import Any

FAULT = sys.argv.pop(2)
SOURCE = (files("pipistrelle.cli") / "skeletons" / "fcfs.python").read_text(encoding="utf-8")
SKELETON: dict[str, Any] = {"__name__": "skeleton"}
OFFERED = '"features": ["resources", '
assert OFFERED in SOURCE
exec(SOURCE.replace(OFFERED, OFFERED + '"takeover", '), SKELETON)  # noqa: S102 - ours
Node, Nodes, Request, Scheduler = (SKELETON[name] for name in ("Node", "Nodes", "Request", "Scheduler"))

read, taken, room = Request.__init__, Request.taken, Request.room
place, give_back, fullest, decide = Nodes.place, Nodes.give_back, Node.fullest, Scheduler.decide


def misread(request: Any, told: dict[str, Any]) -> None:
    """Read a request wrongly."""
    told = dict(told)
    for fault, field in (
        ("ignores-models", "gpu_models"),
        ("ignores-exclusive", "exclusive"),
        ("ignores-licenses", "licenses"),
        ("ignores-others", "others"),
        ("ignores-memory-per-core", "memory_per_core"),
    ):
        if fault == FAULT:
            told.pop(field, None)
    if FAULT == "splits-jobs" and told.get("nodes") == 1 and "tasks" in told:
        told["most_nodes"] = 2
    read(request, told)


def underestimated(request: Any, tasks: int, gpus: int) -> dict[str, int]:
    """Return too small amounts."""
    amounts: dict[str, int] = taken(request, tasks, gpus)
    if FAULT == "ignores-cores":
        amounts["cores"] = 0
    if FAULT == "ignores-memory":
        amounts["memory"] = 0
    return amounts


def started(nodes: Any, job: dict[str, Any]) -> dict[str, Any] | None:
    """Start a job wrongly."""
    start: dict[str, Any] | None = place(nodes, job)
    if start is None:
        return None
    if FAULT == "names-nodes-only":
        del start["takes"]
    if FAULT == "starts-beside-exclusive" and job["request"].get("exclusive"):
        node = nodes.held[job["id"]][1][0][0]
        node.jobs, node.free["cores"] = 0, node.free["cores"] + 3000
    return start


def freed(nodes: Any, ended: dict[str, Any]) -> None:
    """Free what a job held, or a part of it."""
    if FAULT == "keeps-failed-jobs" and ended["job_state"] == "COMPLETED_FAILED":
        return
    if FAULT == "frees-first-node":
        del nodes.held[ended["job_id"]][1][1:]
    give_back(nodes, ended)


def overestimated(request: Any, node: Any) -> tuple[int, int]:
    """Return the room on a node, perhaps as if free shares of several GPUs were one GPU."""
    gpus = node.gpus
    if FAULT == "adds-shares-of-gpus":
        whole, rest = divmod(sum(gpus), 1000)
        node.gpus = [1000] * whole + [rest]
    found: tuple[int, int] = room(request, node)
    node.gpus = gpus
    return found


def chosen_gpus(node: Any, count: int, share: int) -> list[int]:
    """Return GPUs, perhaps with too little free."""
    found: list[int] = fullest(node, count, share)
    return list(range(count)) if FAULT == "lowest-gpus" else found


def adopt(nodes: Any, job: dict[str, Any], start: dict[str, Any]) -> None:
    """Take what a running job of the previous scheduler holds."""
    if FAULT == "places-anew":
        place(nodes, job)
        return
    request, held = Request(job["request"]), []
    numbered = {node.number: node for node in nodes.nodes}
    for take in start["takes"]:
        for first, last in SKELETON["intervals"](take["nodes"]):
            for node in (numbered[number] for number in range(first, last + 1)):
                gpus = [gpu for one, to in SKELETON["intervals"](take.get("gpus", "")) for gpu in range(one, to + 1)]
                if FAULT == "ignores-gpu-numbers":
                    gpus = fullest(node, len(gpus), request.share)
                tasks = 1 if FAULT == "ignores-tasks" else take.get("tasks", 1)
                amounts = dict(node.free) if request.exclusive else request.taken(tasks, len(gpus))
                node.change(-1, amounts, gpus, request.share)
                held.append((node, amounts, gpus))
    for name, count in request.licenses.items():
        nodes.licenses[name] -= 0 if FAULT == "forgets-licenses" else count
    nodes.held[job["id"]] = (request, held)


def joined(scheduler: Any, now: float, events: list[dict[str, Any]]) -> Any:
    """Decide, in the first notice of a run that is taken over with the jobs that run already."""
    past = {one["data"]["job_id"]: one["data"] for one in events if one["type"] == "JOB_STARTED"}
    if not past:
        return decide(scheduler, now, events)
    ended = {one["data"]["job_id"] for one in events if one["type"] == "JOB_COMPLETED"}
    for one in events:
        if one["type"] == "JOB_SUBMITTED" and (name := one["data"]["job_id"]) in past and name not in ended:
            adopt(scheduler.machine, one["data"]["job"], past[name])
    return decide(scheduler, now, [one for one in events if one["data"].get("job_id") not in past])


Scheduler.decide = joined
Request.__init__, Request.taken, Request.room = misread, underestimated, overestimated
Nodes.place, Nodes.give_back, Node.fullest = started, freed, chosen_gpus
SKELETON["main"]()
