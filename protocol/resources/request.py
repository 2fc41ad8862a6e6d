"""The request of a job for nodes that jobs share: cores, memory, GPUs and other resources."""

from typing import Annotated

from msgspec import Meta, Struct, field

from pipistrelle.protocol.fields import Nodes
from pipistrelle.protocol.resources.amounts import GPU, MEMORY, MILLI, MOST, AmountError, amount_text

Amount = Annotated[int, Meta(ge=0, le=MOST, description="an amount in the resource's base unit")]
Count = Annotated[int, Meta(ge=1, le=MOST, description="a number of at least 1")]
Memory = Annotated[int, Meta(ge=0, le=MOST, description="memory in MiB")]
Name = Annotated[str, Meta(min_length=1, max_length=64)]


class Request(Struct, frozen=True, omit_defaults=True):
    """What a job requests of the nodes, in the terms of Slurm's sbatch.

    A job has ``tasks`` tasks, each of which takes ``cores_per_task`` on one node. Each node of the job has at least one
    task; the numbers may differ. Memory is given per node, per core or per GPU: at most one of the three fields is set.
    The number of GPUs is given for the job, for each node or for each task, likewise.

    Args:
        nodes, most_nodes: the least and the greatest number of nodes; None: any number that the tasks allow.
        tasks: the number of tasks; None: ``tasks_per_node`` (or one) on each of ``nodes`` nodes.
        tasks_per_node: the greatest number of tasks on a node; without ``tasks``, the exact number.
        cores_per_task: in milli-cores.
        memory_per_node, memory_per_core, memory_per_gpu: in MiB.
        gpus, gpus_per_node, gpus_per_task: the number of whole GPUs of the job, of each node, of each task.
        gpu_share: the share of the GPU that a job with one GPU takes, in thousandths; 1000: the whole GPU.
        gpu_models: the GPUs must be of one of these models; empty: any.
        exclusive: whether the job shares no node; it then takes all cores, memory and GPUs of its nodes.
        licenses: {licence: number} of the whole job.
        others: {resource: amount on each node}.
    """

    nodes: Nodes | None = None
    most_nodes: Nodes | None = None
    tasks: Count | None = None
    tasks_per_node: Count | None = None
    cores_per_task: Amount = MILLI
    memory_per_node: Memory | None = None
    memory_per_core: Memory | None = None
    memory_per_gpu: Memory | None = None
    gpus: Amount = 0
    gpus_per_node: Amount = 0
    gpus_per_task: Amount = 0
    gpu_share: Annotated[int, Meta(ge=1, le=MILLI, description="thousandths of one GPU")] = MILLI
    gpu_models: Annotated[tuple[Name, ...], Meta(description="accepted models of GPUs; empty: any")] = ()
    exclusive: Annotated[bool, Meta(description="whether the job takes whole nodes, shared with no other job")] = False
    licenses: Annotated[dict[Name, Amount], Meta(description="{licence: number of the whole job}")] = field(
        default_factory=dict
    )
    others: Annotated[dict[Name, Amount], Meta(description="{resource: amount on each node}")] = field(
        default_factory=dict
    )

    def __hash__(self) -> int:
        """Hash the request, whose dicts are never changed."""
        counts = (self.nodes, self.most_nodes, self.tasks, self.tasks_per_node, self.cores_per_task)
        memory = (self.memory_per_node, self.memory_per_core, self.memory_per_gpu)
        gpus = (self.gpus, self.gpus_per_node, self.gpus_per_task, self.gpu_share, self.gpu_models)
        further = (self.exclusive, *sorted(self.licenses.items()), *sorted(self.others.items()))
        return hash((counts, memory, gpus, further))

    @property
    def all_tasks(self) -> int:
        """The number of tasks of the job if it runs on `least_nodes` nodes."""
        return self.tasks if self.tasks is not None else (self.tasks_per_node or 1) * (self.nodes or 1)

    @property
    def least_nodes(self) -> int:
        """The least number of nodes that the request allows."""
        if self.tasks is None:
            return self.nodes or 1
        return max(self.nodes or 1, -(-self.tasks // (self.tasks_per_node or self.tasks)))

    @property
    def cores(self) -> int:
        """The number of whole cores that all tasks of the job take together, at least one."""
        return max(1, self.all_tasks * self.cores_of_task)

    @property
    def cores_of_task(self) -> int:
        """The number of whole cores of a task: part of a core counts as one."""
        return max(1, -(-self.cores_per_task // MILLI))

    @property
    def all_cores(self) -> int:
        """The cores of the job if it runs on `least_nodes` nodes, in thousandths."""
        return self.all_tasks * self.cores_per_task

    @property
    def all_gpus(self) -> int:
        """The GPUs of the job if it runs on `least_nodes` nodes, in thousandths."""
        count = self.gpus + self.gpus_per_node * self.least_nodes + self.gpus_per_task * self.all_tasks
        return count * self.gpu_share

    @property
    def all_memory(self) -> int:
        """The memory of the job if it runs on `least_nodes` nodes, in MiB."""
        if self.memory_per_core is not None:
            each = -(-self.memory_per_core * max(self.cores_per_task, 1) // MILLI)
            return each * self.all_tasks
        if self.memory_per_gpu is not None:
            return self.memory_per_gpu * (self.all_gpus // self.gpu_share)
        return (self.memory_per_node or 0) * self.least_nodes

    def check(self) -> None:
        """Raise AmountError if fields of the request contradict each other."""
        _one_of("memory", self.memory_per_node, self.memory_per_core, self.memory_per_gpu)
        _one_of("GPUs", self.gpus or None, self.gpus_per_node or None, self.gpus_per_task or None)
        gpus = self.gpus or self.gpus_per_node or self.gpus_per_task
        if self.most_nodes is not None and self.most_nodes < self.least_nodes:
            raise AmountError(
                "a request has too few nodes",
                expected=f"at least {self.least_nodes} nodes for its tasks",
                found=f"at most {self.most_nodes}",
            )
        if self.tasks is not None and self.nodes is not None and self.tasks < self.nodes:
            raise AmountError(
                "a request has fewer tasks than nodes", expected=f"at least {self.nodes}", found=str(self.tasks)
            )
        if self.gpu_share != MILLI and (gpus != 1 or self.least_nodes != 1):
            raise AmountError("a share of a GPU needs one GPU on one node", expected="1 GPU", found=f"{gpus} GPUs")
        if self.memory_per_gpu is not None and not gpus:
            raise AmountError("a request has memory per GPU but no GPU", expected="a number of GPUs")
        if self.gpu_models and not gpus:
            raise AmountError("a request has a GPU model but no GPU", expected="a number of GPUs")

    def __str__(self) -> str:
        low, high = self.least_nodes, self.most_nodes
        parts = [f"{low}-{high} nodes" if high not in (None, low) else f"{low} node{'s' * (low > 1)}"]
        parts.append(f"{self.all_tasks} tasks of {amount_text('cores', self.cores_per_task)} cores")
        for amount, of in (
            (self.memory_per_node, "node"),
            (self.memory_per_core, "core"),
            (self.memory_per_gpu, "GPU"),
        ):
            if amount is not None:
                parts.append(f"{amount_text(MEMORY, amount)} a {of}")
        models = f" {'|'.join(self.gpu_models)}" if self.gpu_models else ""
        for amount, of in ((self.gpus, "job"), (self.gpus_per_node, "node"), (self.gpus_per_task, "task")):
            if amount:
                parts.append(f"{amount_text(GPU, amount * self.gpu_share)}{models} GPUs a {of}")
        parts += [f"{amount} {name} a node" for name, amount in self.others.items()]
        parts += [f"{amount} licences {name}" for name, amount in self.licenses.items()]
        return ", ".join([*parts, *(["exclusive"] if self.exclusive else [])])


def _one_of(what: str, *values: int | None) -> None:
    given = [value for value in values if value is not None]
    if len(given) > 1:
        raise AmountError(
            f"a request gives {what} twice", expected="one amount: per node, per core, per task or per GPU"
        )
