"""The Python skeleton with one fault on nodes that jobs share: `broken_on_nodes.py URL FAULT`.

The fault `none` is correct.
"""

import runpy
import sys
from importlib.resources import files
from typing import Any

FAULT = sys.argv.pop(2)
SKELETON = runpy.run_path(str(files("pipistrelle.cli") / "skeletons" / "fcfs.python"))
Node, Nodes, Request = SKELETON["Node"], SKELETON["Nodes"], SKELETON["Request"]

read, taken, room = Request.__init__, Request.taken, Request.room
place, give_back, fullest = Nodes.place, Nodes.give_back, Node.fullest


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


Request.__init__, Request.taken, Request.room = misread, underestimated, overestimated
Nodes.place, Nodes.give_back, Node.fullest = started, freed, chosen_gpus
SKELETON["main"]()
