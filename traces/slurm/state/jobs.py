"""Make jobs from the output of squeue, scontrol and sacct.

The input of this module is {name of a field: text} for each job.
"""

import re
from collections.abc import Mapping
from math import inf
from typing import Final

from pipistrelle.protocol.base.errors import PipistrelleError, quoted
from pipistrelle.protocol.resources.amounts import parse_memory
from pipistrelle.traces.errors import TraceError, line_fault
from pipistrelle.traces.logs.times import Clock, length
from pipistrelle.traces.slurm.arrays import array_indices
from pipistrelle.traces.slurm.requests import dependency_of_line, gpu_count, parse_tres, scaled_number
from pipistrelle.traces.slurm.state.names import NOTHING, STATES
from pipistrelle.traces.slurm.state.records import LiveJob, NodeShare
from pipistrelle.traces.workload import is_number

_ID: Final = re.compile(r"(\d{1,15})(?:_(\d{1,7}|\[[0-9,:%-]{1,100000}\]))?(?:\+(\d{1,4}))?")
_RANGE: Final = re.compile(r"(\d{1,9})([kK]?)(?:-(\d{1,9})([kK]?))?")
_USER: Final = re.compile(r"(.*)\((\d{1,10})\)")
#: what squeue adds to the conditions of a dependency
_STATE_OF_DEPENDENCY: Final = re.compile(r"\((?:null|un[a-z]+|f[a-z]+)\)")
_GRES: Final = re.compile(r"([A-Za-z][\w.-]{0,60}(?::[A-Za-z][\w.-]{0,60})?)(?:[:=](\d{1,9}))?")
_DETAIL: Final = re.compile(r"Nodes=(\S{1,100000}) CPU_IDs=([0-9,-]{1,100000}) Mem=(\d{1,12})(?: GRES=(\S*))?")
_MEMORY: Final = re.compile(r"([0-9.]{1,15}[KMGTP]?)([nc]?)")
_NO_LIMIT: Final = frozenset(("UNLIMITED", "INFINITE"))
_PARTITION_LIMIT: Final = frozenset(("Partition_Limit", "NOT_SET"))


class JobTexts:
    """The fields of one job as texts, which are parsed on demand.

    A malformed field raises a TraceError that names file, line and field.
    """

    def __init__(self, place: str, texts: Mapping[str, str], clock: Clock) -> None:
        self.place = place
        self._texts = texts
        self._clock = clock

    def text(self, name: str) -> str:
        """Return the text of a field.

        It is empty if the field is missing or states that it has no value.
        """
        found = self._texts.get(name, "").strip()
        return "" if found in NOTHING else found

    def time(self, name: str) -> float | None:
        """Return a date in seconds since 1970; None if there is none."""
        text = self.text(name)
        if not text or text == "0":
            return None
        found = self._clock.iso(text)
        if found is None:
            raise line_fault(f"{self.place}, {name}", "this is not a time", "as 2026-01-05T08:00:00", text)
        return found

    def seconds(self, name: str, one: float = 60.0) -> float | None:
        """Return a duration in seconds; None if there is none, inf for no limit.

        Args:
            one: the unit (s) of a number without colons.
        """
        text = self.text(name)
        if not text or text in _PARTITION_LIMIT:
            return None
        if text.upper() in _NO_LIMIT:
            return inf
        found = length(text, one)
        if found is None:
            raise line_fault(f"{self.place}, {name}", "this is not a duration", "[DAYS-]HH:MM:SS", text)
        return found

    def count(self, name: str, usual: int = 0) -> int:
        """Return a whole number, or ``usual`` if there is none; ``2K`` is 2000."""
        text = self.text(name)
        return scaled_number(text, self.place, name) if text else usual

    def memory(self, name: str) -> int:
        """Return an amount of memory (MiB), 0 if there is none."""
        text = self.text(name)
        if not text or text == "0":
            return 0
        try:
            return parse_memory(text)
        except PipistrelleError:
            raise line_fault(f"{self.place}, {name}", "this is not an amount of memory", "as 4000M", text) from None


def job_of(texts: JobTexts, *, ranged: bool) -> LiveJob:
    """Return the job of a row or record.

    Args:
        ranged: whether the source shows a requested number of nodes as ``2-2`` and a computed number as ``2``.

    Raises:
        TraceError: a field is missing or malformed.
    """
    number, tasks, limit_of_tasks, component = _id(texts)
    state = texts.text("state").split(" ")[0].rstrip("+").upper()
    state = STATES.get(state, state)
    if not state:
        raise line_fault(texts.place, "the job has no state", "a state, as PENDING or R", "nothing")
    least, most = _nodes(texts)
    job = LiveJob(
        place=texts.place,
        number=number,
        tasks_of_array=tasks,
        array_limit=limit_of_tasks or texts.count("throttle"),
        component=component,
        state=state,
        ranged=ranged,
        nodes=least,
        max_nodes=most,
    )
    for name in ("name", "account", "qos", "reason", "features", "reservation", "required", "excluded", "licenses"):
        setattr(job, name, texts.text(name))
    for name in ("user", "group"):
        found = _USER.fullmatch(texts.text(name))
        setattr(job, name, found[1] if found else texts.text(name))
    job.partitions = tuple(filter(None, texts.text("partition").split(",")))
    job.submit, job.eligible = texts.time("submit"), texts.time("eligible")
    job.accrued, job.start = texts.time("accrue"), texts.time("start")
    job.used = texts.seconds("used_seconds", 1.0) if texts.text("used_seconds") else texts.seconds("used")
    job.limit = texts.seconds("limit")
    left = texts.seconds("left") if texts.text("left") else None
    if left is not None and job.limit is None and job.used is not None:
        job.limit = left + job.used
    if left is not None and job.used is None and job.limit is not None:
        job.used = max(0.0, job.limit - left)
    job.node_list = texts.text("node_list")
    both = texts.text("nodes_or_reason")
    if both.startswith("("):
        job.reason = job.reason or both.strip("()")
    elif both:
        job.node_list = both
    if job.waits:
        job.node_list = ""
    job.reason = job.reason.partition(",")[0]
    _amounts(job, texts)
    dependency = texts.text("dependency")
    dependency = dependency or dependency_of_line(f" {texts.text('line')}")
    job.failed = "(failed)" in dependency or job.reason == "DependencyNeverSatisfied"
    job.dependency = _STATE_OF_DEPENDENCY.sub("", dependency).replace("_*", "")
    nice = texts.text("nice")
    job.nice = int(nice) if re.fullmatch(r"-?\d{1,10}", nice) else 0
    priority = texts.text("priority")
    job.priority = int(priority) if re.fullmatch(r"\d{1,10}", priority) else None
    shared = texts.text("exclusive").upper()
    job.exclusive = shared in ("NO", "EXCLUSIVE")
    job.shares = tuple(_shares(texts))
    return job


def _id(texts: JobTexts) -> tuple[int, list[int] | None, int, int]:
    """Return four parts of the job's id.

    They are its number, the tasks of its array, the limit of running tasks (the N of ``%N``), and the component of a
    heterogeneous job.
    """
    text = texts.text("id")
    found = _ID.fullmatch(text)
    if found is None:
        raise line_fault(f"{texts.place}, id", "this is no id of a job", "as 17, 34_0 or 34_[1-7]", text)
    number, tasks = int(found[1]), found[2]
    array = texts.text("array_job")
    told = texts.text("array_tasks") or texts.text("array_string")
    if is_number(array) and int(array) and tasks is None and told:
        number, tasks = int(array), told
    component = int(found[3]) if found[3] is not None else -1
    if is_number(texts.text("het_job")) and int(texts.text("het_job")):
        number, component = int(texts.text("het_job")), texts.count("component")
    if tasks is None:
        return number, None, 0, component
    tasks = tasks.strip("[]")
    if tasks.endswith("..."):  # squeue cuts long lists
        raise line_fault(f"{texts.place}, id", "the list of an array's tasks is cut", "all tasks", quoted(tasks))
    limit = tasks.partition("%")[2]
    return number, array_indices(tasks, texts.place), int(limit) if limit else 0, component


def _nodes(texts: JobTexts) -> tuple[int, int]:
    text = texts.text("nodes")
    if texts.text("max_nodes"):
        return max(1, texts.count("nodes", 1)), texts.count("max_nodes")
    found = _RANGE.fullmatch(text)
    if found is None:
        if text:
            raise line_fault(f"{texts.place}, nodes", "this is not a number of nodes", "as 4 or 2-4", text)
        return 1, 0
    least = int(found[1]) * (1000 if found[2] else 1)
    most = int(found[3]) * (1000 if found[4] else 1) if found[3] else 0
    return max(1, least), most


def _amounts(job: LiveJob, texts: JobTexts) -> None:
    """Set a job's CPUs, tasks, memory and gres from its fields."""
    place = texts.place
    tres = parse_tres((texts.text("tres_allocated") if job.holds else "") or texts.text("tres"))
    if job.holds and texts.count("nodes_allocated"):
        job.nodes = texts.count("nodes_allocated")
    job.cpus = texts.count("cpus") or (scaled_number(tres["cpu"], place, "cpu") if "cpu" in tres else 0)
    if "node" in tres and not texts.text("nodes"):
        job.nodes = max(1, scaled_number(tres["node"], place, "node"))
    each = texts.text("cpus_per_task")
    job.cpus_per_task = int(each) if re.fullmatch(r"[1-9]\d{0,5}", each) else 1
    job.tasks = texts.count("tasks") or max(1, job.cpus // job.cpus_per_task)
    per_node = texts.text("tasks_per_node").partition(":")[0]
    job.tasks_per_node = int(per_node) if re.fullmatch(r"[1-9]\d{0,5}", per_node) else 0
    total = 0
    if "mem" in tres:
        try:
            total = parse_memory(tres["mem"])
        except PipistrelleError:
            raise line_fault(f"{place}, TRES", "this is not an amount of memory", "as 4000M", tres["mem"]) from None
    if texts.memory("mem_node"):
        job.memory, job.memory_kind = texts.memory("mem_node"), "node"
    elif texts.memory("mem_cpu"):
        job.memory, job.memory_kind = texts.memory("mem_cpu"), "cpu"
    elif (found := _MEMORY.fullmatch(texts.text("mem"))) is not None and texts.text("mem") not in ("0", "0M"):
        amount = parse_memory(found[1])
        per_cpu = found[2] == "c" or (not found[2] and total and amount * job.nodes != total)
        job.memory, job.memory_kind = amount, "cpu" if per_cpu else "node"
        if total and not found[2] and amount == total and job.nodes > 1:  # sacct: the job's total
            job.memory, job.memory_kind = -(-total // job.nodes), "node"
    elif total:
        job.memory, job.memory_kind = -(-total // job.nodes), "node"
    job.gres = _gres(texts.text("gres"))
    if not job.gres:
        job.gpus = sum(count for name, count in _gres(texts.text("tres_per_job")).items() if name.startswith("gpu"))
        job.gpus = job.gpus or gpu_count(tres, place, "TRES")
        if job.gpus and job.gpus % job.nodes == 0:
            models = [name.partition(":")[2] for name in tres if name.startswith("gres/gpu:")]
            job.gres = {f"gpu:{models[0]}" if len(models) == 1 else "gpu": job.gpus // job.nodes}
            job.gpus = 0


def _gres(text: str) -> dict[str, int]:
    """Parse one or more generic resources, separated by commas, as {name: count}.

    Forms: ``gres:gpu:2``, ``gres/gpu:a100=2``, ``gpu:2(IDX:0-1)``.
    """
    found: dict[str, int] = {}
    for part in re.split(r",(?![^()]*\))", text):
        match = _GRES.fullmatch(re.sub(r"\([^()]*\)", "", part).removeprefix("gres:").removeprefix("gres/"))
        if match is not None:
            found[match[1]] = found.get(match[1], 0) + int(match[2] or 1)
    return found


def _shares(texts: JobTexts) -> list[NodeShare]:
    """Return what the job holds of its nodes.

    The lines that ``scontrol -d`` adds say so.
    """
    found = []
    for line in texts.text("detail").splitlines():
        match = _DETAIL.match(line)
        if match is None:
            continue
        try:
            cpus = len(array_indices(match[2], texts.place))
        except TraceError:
            continue
        found.append(NodeShare(match[1], cpus, int(match[3]), _gres(match[4] or "")))
    return found
