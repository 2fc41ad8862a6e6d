"""Read what jobs requested of nodes from Slurm's accounting."""

import re
from collections.abc import Callable
from typing import Any, Final

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.protocol.resources.amounts import MILLI, NAME, AmountError, parse_memory
from pipistrelle.protocol.resources.request import Request
from pipistrelle.traces.logs.job_table import fault, whole_number

#: returns the text of a column of the row, "" if it is missing
Cell = Callable[[str], str]

_GPU: Final = "gres/gpu"
_GRES: Final = "gres/"
_LICENSE: Final = "license/"
#: columns of TRES that may tell what was requested, the request first
_TRES: Final = ("ReqTRES", "AllocTRES")
_NO_MEMORY: Final = frozenset(("", "0", "0n", "0c", "0Mn", "0Mc", "0M", "?", "None", "N/A", "Unknown"))
_REQMEM: Final = re.compile(r"([0-9.]+[KMGTPE]?)([nc]?)")
_SCALED: Final = re.compile(r"([0-9]+)(?:\.([0-9]+))?([KMGTP]?)")
_SCALES: Final = {"": 1, "K": 1000, "M": 1000**2, "G": 1000**3, "T": 1000**4, "P": 1000**5}
#: sbatch's options in SubmitLine that the accounting has no column for: {pattern: field of Request}
_OPTIONS: Final = (
    (re.compile(r"\s(?:--cpus-per-task[= ]|-c ?)([1-9][0-9]{0,6})\b"), "cores_per_task"),
    (re.compile(r"\s--ntasks-per-node[= ]([1-9][0-9]{0,6})\b"), "tasks_per_node"),
    (re.compile(r"\s--gpus-per-task[= ](?:[A-Za-z][\w.-]*:)?([1-9][0-9]{0,6})\b"), "gpus_per_task"),
)
_EXCLUSIVE: Final = re.compile(r"\s--exclusive(?![\w-])(?!=(?:user|mcs))")
_PER_NODE_MEMORY: Final = re.compile(r"\s--mem[= ]")
_DEPENDENCY: Final = re.compile(r"\s(?:--dependency[= ]|-d ?)['\"]?((?:after|singleton)[^\s'\"]*)")


def dependency_of_line(line: str) -> str:
    """Return the dependency that the options in a SubmitLine ask for.

    The text is empty if there is none.
    """
    found = _DEPENDENCY.search(line)
    return "" if found is None else found[1]


def parse_tres(text: str) -> dict[str, str]:
    """Parse TRES such as ``cpu=8,gres/gpu:a100=4,node=1``; return {name: number}."""
    pairs = (part.partition("=") for part in text.split(",") if part)
    return {name.strip(): value.strip() for name, _, value in pairs}


def gpu_count(tres: dict[str, str], place: str, column: str) -> int:
    """Return the number of GPUs in TRES: the total, or else the sum over models."""
    texts = [tres[_GPU]] if _GPU in tres else [value for name, value in tres.items() if name.startswith(f"{_GPU}:")]
    return sum(scaled_number(text, place, column) for text in texts)


def gpu_models(tres: dict[str, str]) -> list[str]:
    """Return the GPU models in TRES, such as ``["a100"]``."""
    return [name.partition(":")[2] for name in tres if name.startswith(f"{_GPU}:")]


def scaled_number(text: str, place: str, column: str) -> int:
    """Return a whole number as sacct prints it: ``2K`` is 2000 and ``1.5K`` is 1500."""
    found = _SCALED.fullmatch(text)
    if found is None or len(text) > 15:
        return whole_number(text, place, column)
    whole, decimals, unit = found[1], found[2] or "", found[3]
    scale = _SCALES[unit]
    value = int(whole + decimals) * scale
    power: int = 10 ** len(decimals)
    return value // power


class SacctRequests:
    """A converter from rows of sacct to requests.

    Jobs with equal requests share one object.
    """

    def __init__(self) -> None:
        self._known: dict[Request, Request] = {}
        #: number of rows whose ReqTRES has GPUs of several models
        self.mixed = 0

    def of(self, cell: Cell, nodes: int, processors: int, place: str) -> Request | None:
        """Return what a job requested of its nodes.

        Return None if the row has neither TRES nor memory. If ReqTRES is empty, AllocTRES replaces it. If ReqMem is
        empty, the memory is that of the TRES. A total of memory becomes memory per node if the job has one node or
        SubmitLine has ``--mem``, otherwise memory per core.

        Args:
            nodes, processors: requested numbers according to other columns, -1 if missing.

        Raises:
            TraceError: a number or an amount cannot be read.
        """
        tres: dict[str, str] = {}
        column = _TRES[0]
        for name in _TRES:
            tres = parse_tres(cell(name))
            column = name
            if tres:
                break
        memory = cell("ReqMem")
        if not tres and memory in _NO_MEMORY:
            return None
        if "node" in tres:
            nodes = scaled_number(tres["node"], place, column)
        if "cpu" in tres:
            processors = scaled_number(tres["cpu"], place, column)
        nodes = max(nodes, 1)
        line = f" {cell('SubmitLine')}"
        fields: dict[str, Any] = {"nodes": nodes, "most_nodes": nodes, "tasks": max(processors, nodes)}
        for pattern, field in _OPTIONS:
            found = pattern.search(line)
            if found:
                fields[field] = int(found[1]) * (MILLI if field == "cores_per_task" else 1)
        each = fields.get("cores_per_task", MILLI) // MILLI
        fields["tasks"] = max(-(-fields["tasks"] // each), nodes)
        if fields.get("tasks_per_node", fields["tasks"]) * nodes < fields["tasks"]:
            del fields["tasks_per_node"]
        fields |= self._memory(memory, tres, nodes, each * fields["tasks"], line, place)
        fields |= self._gpus(tres, nodes, fields, place, column)
        fields["others"] = {
            name.removeprefix(_GRES).partition(":")[0]: -(-scaled_number(text, place, column) // nodes)
            for name, text in tres.items()
            if name.startswith(_GRES) and not name.startswith(_GPU) and NAME.fullmatch(name.removeprefix(_GRES))
        }
        fields["licenses"] = {
            name.removeprefix(_LICENSE): scaled_number(text, place, column)
            for name, text in tres.items()
            if name.startswith(_LICENSE) and NAME.fullmatch(name.removeprefix(_LICENSE))
        }
        if _EXCLUSIVE.search(line):
            fields["exclusive"] = True
        request = Request(**fields)
        try:
            request.check()
        except AmountError as error:
            raise fault(place, column, error.what, error.expected or "", error.found or "") from None
        return self._known.setdefault(request, request)

    @staticmethod
    def _memory(memory: str, tres: dict[str, str], nodes: int, cores: int, line: str, place: str) -> dict[str, int]:
        """Return the field of `Request` that holds the memory.

        It is empty if no memory was requested.
        """
        found = None if memory in _NO_MEMORY else _REQMEM.fullmatch(memory)
        if found is None and memory not in _NO_MEMORY:
            raise fault(place, "ReqMem", "is not an amount of memory", "such as 4000Mn, 2Gc or 16G", memory)
        text, per = (found[1], found[2]) if found else (tres.get("mem", "0"), "")
        try:
            amount = parse_memory(text)
        except PipistrelleError as error:
            raise fault(place, "memory", "is not an amount of memory", error.expected or "", text) from None
        if not amount:
            return {}
        if per == "n":
            return {"memory_per_node": amount}
        if per == "c":
            return {"memory_per_core": amount}
        if nodes == 1 or _PER_NODE_MEMORY.search(line):
            return {"memory_per_node": -(-amount // nodes)}
        return {"memory_per_core": -(-amount // cores)}

    def _gpus(
        self, tres: dict[str, str], nodes: int, fields: dict[str, Any], place: str, column: str
    ) -> dict[str, Any]:
        """Return the fields of `Request` for the job's number of GPUs and their model.

        ``gpus_per_task`` is removed from ``fields`` unless it gives the same number as TRES.
        """
        gpus = gpu_count(tres, place, column)
        if not gpus:
            fields.pop("gpus_per_task", None)
            return {}
        models = gpu_models(tres)
        if len(models) > 1 and column == _TRES[0]:  # AllocTRES may have several, for a job that asked for none
            self.mixed += 1
        model = {"gpu_models": tuple(models)} if len(models) == 1 else {}
        if fields.get("gpus_per_task", 0) * fields["tasks"] == gpus:
            return model
        fields.pop("gpus_per_task", None)
        return {**model, **({"gpus": gpus} if gpus % nodes else {"gpus_per_node": gpus // nodes})}


def tres_text(request: Request) -> tuple[str, str]:
    """Return a request as (ReqTRES, SubmitLine).

    SubmitLine has the options for everything that ReqTRES cannot express.
    """
    nodes, cores = request.least_nodes, request.cores
    gpus = request.gpus or request.gpus_per_node * nodes or request.gpus_per_task * request.all_tasks
    memory = 0
    line = ["sbatch", f"--cpus-per-task={request.cores_of_task}"]
    if request.memory_per_node is not None:
        memory = request.memory_per_node * nodes
        line.append(f"--mem={request.memory_per_node}M")
    elif request.memory_per_core is not None:
        memory = request.memory_per_core * cores
    elif request.memory_per_gpu is not None:
        memory = request.memory_per_gpu * gpus
    parts = [f"cpu={cores}", *([f"mem={memory}M"] if memory else []), f"node={nodes}"]
    if gpus:
        parts.append(f"gres/gpu={gpus}")
        parts += [f"gres/gpu:{model}={gpus}" for model in request.gpu_models[:1]]
    parts += [f"gres/{name}={amount * nodes}" for name, amount in request.others.items()]
    parts += [f"license/{name}={amount}" for name, amount in request.licenses.items()]
    if request.tasks_per_node is not None:
        line.append(f"--ntasks-per-node={request.tasks_per_node}")
    if request.gpus_per_task:
        line.append(f"--gpus-per-task={request.gpus_per_task}")
    if request.exclusive:
        line.append("--exclusive")
    return ",".join(parts), " ".join(line)
