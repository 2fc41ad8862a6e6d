"""The sbatch command of a job, its user, and the tasks and GPUs that it gets on its nodes."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from pipistrelle.protocol.base.whole import whole_file
from pipistrelle.protocol.events import JobDescription
from pipistrelle.protocol.resources.nodes import NodeTake
from pipistrelle.protocol.resources.request import Request
from pipistrelle.protocol.units.nodesets import NodeSet

#: options that say what a job takes of nodes
_OF_NODES: Final = (
    *("nodes", "ntasks", "ntasks-per-node", "ntasks-per-gpu", "gres", "gpus", "mem", "mem-per-cpu", "mincpus"),
    *("gpus-per-node", "gpus-per-task"),
)
#: options that are given in another way, or concern what the script prints
_OWN: Final = frozenset(("array-job", "array-task", "name", "partition", "dependency", "parsable", "wrap", "output"))
#: numbers of the workload's users begin here
_FIRST: Final = 100_000
_ODD: Final = re.compile(r"[^A-Za-z0-9._@+-]")
_SCRIPT: Final = ("--chdir=/", "--output=/dev/null", "--wrap=exit")


def sbatch_words(job: JobDescription, numbers: Callable[[str], str]) -> list[str]:
    """Return the arguments of sbatch for a job.

    Args:
        numbers: replaces the workload's job ids in a dependency by Slurm's job numbers.
    """
    options = job.options
    words = [f"--job-name={options.get('name') or job.id.rpartition('!')[2]}"]
    partition = options.get("partition") or job.queue
    for name, value in (("account", job.account), ("partition", partition), ("qos", job.qos)):
        if value:
            words.append(f"--{name}={value}")
    if job.walltime is not None:
        seconds = math.ceil(job.walltime)
        words.append(f"--time={seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}")
    if job.constraint and "constraint" not in options:
        words.append(f"--constraint={job.constraint}")
    if options.get("dependency"):
        words.append(f"--dependency={numbers(options['dependency'])}")
    words += [f"--{name}={value}" if value else f"--{name}" for name, value in options.items() if name not in _OWN]
    if not any(name in options for name in _OF_NODES):
        words += _requested(job.request, job.res)
    return [*words, *_SCRIPT]


def _requested(request: Request | None, nodes: int) -> list[str]:
    """Return the options of sbatch for a job's request, or for ``nodes`` whole nodes if the request is None."""
    if request is None:
        return [f"--nodes={nodes}"]
    model = "".join(f"{name}:" for name in request.gpu_models[:1])
    gres = dict(request.others)
    if request.gpus_per_node:
        gres["gpu" + f":{model}".rstrip(":")] = request.gpus_per_node
    values: Mapping[str, object] = {
        "nodes": None if request.nodes is None else f"{request.nodes}-{request.most_nodes or request.nodes}",
        "ntasks": request.tasks,
        "ntasks-per-node": request.tasks_per_node,
        "cpus-per-task": request.cores_of_task,
        "mem": request.memory_per_node,
        "mem-per-cpu": request.memory_per_core,
        "mem-per-gpu": request.memory_per_gpu,
        "gpus": f"{model}{request.gpus}" if request.gpus else None,
        "gpus-per-task": f"{model}{request.gpus_per_task}" if request.gpus_per_task else None,
        "gres": ",".join(f"{name}:{count}" for name, count in gres.items()) or None,
        "licenses": ",".join(f"{name}:{count}" for name, count in request.licenses.items()) or None,
    }
    words = [f"--{name}={value}" for name, value in values.items() if value is not None]
    return [*words, "--exclusive"] if request.exclusive else words


def takes_on(request: Request, cpus: Mapping[int, int], free_gpus: Mapping[int, Sequence[int]]) -> tuple[NodeTake, ...]:
    """Return the tasks and GPUs that a job gets on each of its nodes.

    Tasks fill the nodes in order, and each later node gets at least one. The numbers of GPUs are the lowest free ones.

    Args:
        cpus: {unit: CPUs that slurmctld gives the job there}.
        free_gpus: {unit: numbers of its free GPUs}.
    """
    most = [cpus[unit] // request.cores_of_task for unit in cpus]
    if request.tasks_per_node is not None:
        most = [min(one, request.tasks_per_node) for one in most]
    if request.tasks is None:
        tasks = [request.tasks_per_node or 1] * len(most)
    else:
        tasks, left = [], request.tasks
        for place, able in enumerate(most):
            tasks.append(max(1, min(able, left - (len(most) - place - 1))))
            left -= tasks[-1]
    left, counts = request.gpus, []
    for place, count in enumerate(tasks):
        if request.gpus:
            counts.append(-(-left // (len(tasks) - place)))
            left -= counts[-1]
        else:
            counts.append(request.gpus_per_node + request.gpus_per_task * count)
    return tuple(
        NodeTake(str(unit), count, str(NodeSet.of(free_gpus[unit][:gpus])))
        for unit, count, gpus in zip(cpus, tasks, counts, strict=True)
    )


class Users:
    """Users and their numbers (uid), in a file that the preloaded library reads (native/users.c).

    Args:
        file: is written at once, and again for each new user.
        names: the first users.
    """

    def __init__(self, file: Path, names: Iterable[str] = ()) -> None:
        self._file = file
        self._numbers: dict[str, int] = {}
        for name in names:
            self._add(name)
        self._write()
        #: variable of the environment that names the file
        self.environment = {"PIPISTRELLE_USERS": str(file)}

    def number(self, name: str) -> int:
        """Return the number that Slurm has for a user of the workload; add the user if it is new."""
        if name == "root":
            return 0
        clean = _ODD.sub("_", name)
        if clean not in self._numbers:
            self._add(name)
            self._write()
        return self._numbers[clean]

    def _add(self, name: str) -> None:
        if name != "root":
            self._numbers.setdefault(_ODD.sub("_", name), _FIRST + len(self._numbers))

    def _write(self) -> None:
        with whole_file(self._file) as file:
            file.write("".join(f"{name}:{number}\n" for name, number in self._numbers.items()).encode())
