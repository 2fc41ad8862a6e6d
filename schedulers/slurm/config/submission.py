"""A job submission to Slurm: the options of sbatch that the scheduler reads."""

from collections.abc import Mapping

from msgspec import Struct, field


class Submission(Struct, frozen=True, kw_only=True):
    """One submission, as sbatch's options describe it.

    Times are seconds of simulated time; memory is in MiB.

    Attributes:
        number: Slurm's job id, which breaks ties in the queue and is used in dependencies. A task of an array has the
            array's id.
        submit: time of submission, s.
        partitions: one or more, in the order given; empty: the default one.
        qos: "" for the association's default.
        time_limit: s; None: the partition's default. ``time_min`` likewise.
        nodes, max_nodes: ``-N min-max``; None: what the tasks need.
        tasks: ``-n``; None: one per node. ``cpus_per_task``: ``-c``.
        mem_per_cpu, mem_per_node, mem_per_gpu: MiB; at most one is given, 0 asks for all memory of the node.
        gres: {name or name:type: count per node} (``--gres``, ``--gpus-per-node``).
        gpus, gpus_per_task: GPUs of the whole job, and of each task.
        gpu_model: the model of these GPUs; "": any.
        begin: earliest start, s; None: at once.
        dependency: sbatch's text, such as "afterok:12:13,singleton" or "afterany:4?afterok:5".
        array_task: index of this task; None: no array. ``array_limit`` is the N of ``%N``, 0: none.
        required, excluded: names of nodes (``-w``, ``-x``).
        switches: most leaf switches of the job; 0: any number. ``switch_wait`` is how long the job waits for them, s;
            None: as long as ``max_switch_wait`` allows.
        oversubscribe: ``--oversubscribe`` was given. ``exclusive``: ``--exclusive`` was given.
        requeue: whether the job may be requeued; None for the cluster's ``JobRequeue``.
        kill_on_invalid: whether the job ends if its dependency can never hold; None for the cluster's setting.
        hold: whether the job was submitted with ``-H``.
    """

    number: int
    submit: float
    name: str = ""
    user: str = ""
    groups: tuple[str, ...] = ()
    account: str = ""
    partitions: tuple[str, ...] = ()
    qos: str = ""
    reservation: str = ""
    time_limit: float | None = None
    time_min: float | None = None
    nodes: int | None = None
    max_nodes: int | None = None
    tasks: int | None = None
    tasks_per_node: int | None = None
    cpus_per_task: int = 1
    mem_per_cpu: int | None = None
    mem_per_node: int | None = None
    mem_per_gpu: int | None = None
    gres: Mapping[str, int] = field(default_factory=dict)
    gpus: int = 0
    gpu_model: str = ""
    gpus_per_task: int = 0
    cpus_per_gpu: int = 0
    min_cpus_per_node: int = 0
    exclusive: bool = False
    oversubscribe: bool = False
    contiguous: bool = False
    constraint: str = ""
    required: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    licenses: Mapping[str, int] = field(default_factory=dict)
    begin: float | None = None
    dependency: str = ""
    array_task: int | None = None
    array_limit: int = 0
    nice: int = 0
    hold: bool = False
    requeue: bool | None = None
    switches: int = 0
    switch_wait: float | None = None
    kill_on_invalid: bool | None = None
