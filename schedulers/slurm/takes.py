"""Translate the controller's allocation of a job into tasks and GPUs on each node."""

from collections.abc import Mapping, Sequence

from pipistrelle.platforms.resources.shape import Shape, Take, Takes
from pipistrelle.schedulers.policy.errors import PolicyError
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.shared_view import SharedView
from pipistrelle.schedulers.slurm.cluster.machine import Amounts

_GPU = "gpu"


def takes_of(shared: SharedView, job: SchedulerJob, alloc: Mapping[int, Amounts], units: Sequence[int]) -> Takes:
    """Return what a job takes on each node for the controller's allocation ``alloc``.

    Tasks fill the nodes in order, and each later node gets at least one. Slurm may give a node more CPUs or GPUs than
    the tasks there need, for example because it divides ``--gpus`` equally. The surplus is not taken from the machine.

    Args:
        alloc: {the controller's index of a node: CPUs, memory and GPUs there}.
        units: the machine's index of each of the controller's nodes.

    Raises:
        PolicyError: the machine has too little free for the job's tasks.
    """
    shape = shared.shape(job)
    nodes = sorted((units[at], amounts) for at, amounts in alloc.items())
    gpus = [_gpus(amounts) for _, amounts in nodes]
    tasks = _divided(
        shape, [_most_tasks(shape, amounts, count) for (_, amounts), count in zip(nodes, gpus, strict=True)]
    )
    if tasks is None:
        most = shape.most_tasks(shared.free.amounts, shared.free.gpus)
        tasks = _divided(shape, [int(most[unit]) for unit, _ in nodes])
    if tasks is None:
        raise PolicyError(
            f"job {job.id} starts on nodes without room for its tasks",
            expected=str(shape.request),
            found=", ".join(f"{amounts[0]} CPUs on {shared.nodes.name(unit)}" for unit, amounts in nodes),
            hint="The machine must be that of the slurm.conf, and jobs must not share CPUs.",
        )
    counts = _gpus_by_node(shape, tasks, gpus)
    return tuple(
        Take(unit, count, shape.numbers(shared.free.gpus[unit], wanted))
        for (unit, _), count, wanted in zip(nodes, tasks, counts, strict=True)
    )


def _gpus(amounts: Amounts) -> int:
    return sum(count for name, count in amounts[2].items() if name.partition(":")[0] == _GPU)


def _most_tasks(shape: Shape, amounts: Amounts, gpus: int) -> int:
    request = shape.request
    most = amounts[0] // request.cores_of_task
    if request.tasks_per_node is not None:
        most = min(most, request.tasks_per_node)
    return min(most, gpus // request.gpus_per_task) if request.gpus_per_task else most


def _divided(shape: Shape, most: Sequence[int]) -> list[int] | None:
    """Return the number of tasks on each node; node i can hold ``most[i]`` tasks.

    Return None if the tasks do not fit.
    """
    if shape.tasks is None:
        return [shape.exact] * len(most) if all(able >= shape.exact for able in most) else None
    left, tasks = shape.tasks, []
    for place, able in enumerate(most):
        tasks.append(min(able, left - (len(most) - place - 1)))
        left -= tasks[-1]
    return tasks if left == 0 and min(tasks) > 0 else None


def _gpus_by_node(shape: Shape, tasks: Sequence[int], given: Sequence[int]) -> list[int]:
    """Return the number of GPUs that the job takes from the machine on each node.

    ``given`` has the number of GPUs that Slurm allocated on each node; fewer are taken if the tasks need fewer.
    """
    request = shape.request
    if request.exclusive:
        return list(given)
    if not request.gpus:
        return [request.gpus_per_node + request.gpus_per_task * count for count in tasks]
    left, counts = request.gpus, []
    for place, able in enumerate(given):
        counts.append(max(0, min(able, left - (len(given) - place - 1))))
        left -= counts[-1]
    return counts
