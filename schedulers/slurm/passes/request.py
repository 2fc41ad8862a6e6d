"""Resolve a submission's request for this cluster: nodes, CPUs, memory and GPUs."""

from math import inf
from typing import Any, Final
from weakref import WeakValueDictionary

from pipistrelle.schedulers.slurm.accounts.records import Tres
from pipistrelle.schedulers.slurm.cluster.bits import lowest, mask_of
from pipistrelle.schedulers.slurm.cluster.features import parse_constraint
from pipistrelle.schedulers.slurm.cluster.jobs import SlurmJob
from pipistrelle.schedulers.slurm.cluster.machine import SlurmMachine, SlurmPartition
from pipistrelle.schedulers.slurm.config.settings import SlurmConfig
from pipistrelle.schedulers.slurm.nodes.asked import Alloc, NodesAsked

YEAR: Final = 365 * 86400
_MINUTE: Final = 60


class Requests:
    """Resolves the requests of jobs, and computes the TRES of their allocations."""

    def __init__(self, config: SlurmConfig, machine: SlurmMachine) -> None:
        self.config = config
        self.machine = machine
        select = config.select
        self.linear = select.type == "select/linear"
        self.memory_counts = any("MEMORY" in one.upper() for one in select.parameters)
        self.max_tres = "MAX_TRES" in config.priority.flags
        self.least_memory = min(machine.memory, default=0)
        #: {values of a request: the request, as long as a job or a selector needs it}
        self._known: WeakValueDictionary[tuple[Any, ...], NodesAsked] = WeakValueDictionary()
        #: {MiB: nodes that have as much}, {number: nodes that have as many CPUs}
        self._memory_masks: dict[int, int] = {}
        self._cpu_masks: dict[int, int] = {}

    def _with_memory(self, amount: int) -> int:
        """Return the bit mask of the nodes with at least ``amount`` MiB of total memory."""
        found = self._memory_masks.get(amount)
        if found is None:
            memory = self.machine.memory
            found = self._memory_masks[amount] = mask_of(at for at, one in enumerate(memory) if one >= amount)
        return found

    def _with_cpus(self, number: int) -> int:
        """Return the bit mask of the nodes that have at least ``number`` CPUs in total."""
        found = self._cpu_masks.get(number)
        if found is None:
            cpus = self.machine.cpus
            found = self._cpu_masks[number] = mask_of(at for at, one in enumerate(cpus) if one >= number)
        return found

    def settle(self, job: SlurmJob) -> None:
        """Set the nodes, tasks, CPUs, memory, gres and time that a new job requests."""
        sub = job.sub
        part = self.machine.partitions[job.part]
        settings = part.settings
        tasks = sub.tasks
        nodes = sub.nodes
        if tasks is not None and nodes is not None and tasks < nodes:
            nodes = tasks
        per_node = sub.tasks_per_node or 0
        if tasks is None:
            tasks = per_node * (nodes or 1) if per_node else nodes or len(sub.required) or 1
        least = nodes or max(1, min(len(sub.required), tasks))
        most = tasks if nodes is None else sub.max_nodes or nodes
        if sub.tasks is not None:
            most = min(most, tasks)
        if per_node:
            least = max(least, min(-(-tasks // per_node), most))
        job.cpus_per_task = max(1, sub.cpus_per_task)
        job.tasks = tasks
        self._memory(job, part)
        job.gres = dict(sub.gres)
        gpus = sub.gpus_per_task * -(-tasks // least) if sub.gpus_per_task else -(-sub.gpus // least) if sub.gpus else 0
        if gpus:
            name = f"gpu:{sub.gpu_model}" if sub.gpu_model else "gpu"
            job.gres[name] = max(gpus, job.gres.get(name, 0))
        job.min_nodes, job.max_nodes = max(1, least), max(1, most)
        per_gpu = sub.cpus_per_gpu or settings.def_cpu_per_gpu or self.config.select.def_cpu_per_gpu or 0
        on_node = sum(count for name, count in job.gres.items() if name.startswith("gpu"))
        least = max(1, per_gpu * on_node, 0 if self.linear else sub.min_cpus_per_node or 0) * job.min_nodes
        job.min_cpus = max(tasks * job.cpus_per_task, least)
        job.plain_cpus = max(tasks * max(1, sub.cpus_per_task), least)
        most_per_cpu = settings.max_mem_per_cpu or self.config.select.max_mem_per_cpu
        if job.mem_kind == "node" and most_per_cpu:
            job.min_cpus = max(job.min_cpus, job.min_nodes * -(-job.mem // most_per_cpu))
        forced = settings.over_subscribe == "FORCE"
        many = settings.max_share > 1
        wants = settings.over_subscribe == "YES" and many and sub.oversubscribe and not sub.exclusive
        job.shares = forced or wants
        job.whole = (self.linear or sub.exclusive or part.exclusive) and not (job.shares and many)
        job.limit = self._limit(job, part)
        self.parse(job)

    def _memory(self, job: SlurmJob, part: SlurmPartition) -> None:
        """Set the memory of a job: what it requests, or the default.

        The default is that of its partition, or else that of the cluster.
        """
        sub, settings, select = job.sub, part.settings, self.config.select
        given = (("cpu", sub.mem_per_cpu), ("node", sub.mem_per_node), ("gpu", sub.mem_per_gpu))
        usual = (
            *(
                ("gpu", settings.def_mem_per_gpu),
                ("cpu", settings.def_mem_per_cpu),
                ("node", settings.def_mem_per_node),
            ),
            *(("gpu", select.def_mem_per_gpu), ("cpu", select.def_mem_per_cpu), ("node", select.def_mem_per_node)),
        )
        wants_gpus = bool(sub.gpus or sub.gpus_per_task or any(name.startswith("gpu") for name in sub.gres))
        for kind, amount in (*given, *((kind, amount) for kind, amount in usual if kind != "gpu" or wants_gpus)):
            if amount is not None:
                job.mem_kind, job.mem = ("all", 0) if amount == 0 else (kind, amount)
                break
        else:
            job.mem_kind, job.mem = ("all", 0) if self.memory_counts and not self.linear else ("", 0)
        most = settings.max_mem_per_cpu or select.max_mem_per_cpu
        if job.mem_kind == "cpu" and most and job.mem > most:
            times = -(-job.mem // most)
            job.cpus_per_task *= times
            job.mem = -(-job.mem // times)

    def over_memory(self, job: SlurmJob, part: SlurmPartition) -> bool:
        """Return whether a job asks for more memory per node than allowed.

        The limit is ``MaxMemPerNode``; the partition's setting overrides the cluster's.
        """
        settings, select = part.settings, self.config.select
        if settings.max_mem_per_node is None and (settings.max_mem_per_cpu or select.max_mem_per_node is None):
            return False
        most = settings.max_mem_per_node or select.max_mem_per_node or 0
        if job.mem_kind == "node":
            return job.mem > most
        if job.mem_kind == "cpu":
            each = -(-job.min_cpus // max(1, job.min_nodes))
            each = max(each, (job.sub.tasks_per_node or 0) * job.cpus_per_task)
            return job.mem * each > most
        return False

    @staticmethod
    def _limit(job: SlurmJob, part: SlurmPartition) -> int:
        settings = part.settings
        limit = job.sub.time_limit
        if limit is None:
            limit = settings.default_time if settings.default_time is not None else settings.max_time
        if limit == inf:
            limit = settings.max_time if settings.max_time != inf else YEAR
        return int(-(-limit // _MINUTE) * _MINUTE)

    def parse(self, job: SlurmJob) -> None:
        """Parse a job's required nodes, excluded nodes and constraint into sets of nodes."""
        sub, machine = job.sub, self.machine
        job.asked = {}
        job.required = machine.mask_of_names(sub.required)
        if sub.nodes is None and job.required.bit_count() > job.max_nodes:
            job.required = lowest(job.required, job.max_nodes)
        job.excluded = machine.mask_of_names(sub.excluded)
        job.constraint = parse_constraint(sub.constraint, machine.features, machine.all) if sub.constraint else None

    def asked(self, job: SlurmJob, part: SlurmPartition, now: float = inf) -> list[NodesAsked]:
        """Return a job's requests in a partition.

        There is one request for each alternative of the job's constraint.

        Args:
            now: a job with ``--switches`` may use any number of switches if it has waited long enough by this time, s.
        """
        switches = job.sub.switches
        if switches and now - job.submit >= self._switch_wait(job):
            switches = 0
        key = part.index if switches == job.sub.switches else ~part.index
        found = job.asked.get(key)
        if found is None:
            found = job.asked[key] = self._asked(job, part, switches)
        return found

    def _switch_wait(self, job: SlurmJob) -> float:
        most = self.config.scheduler_parameters.max_switch_wait
        return most if job.sub.switch_wait is None else min(job.sub.switch_wait, most)

    def _asked(self, job: SlurmJob, part: SlurmPartition, switches: int) -> list[NodesAsked]:
        settings = part.settings
        nodes = part.mask & ~job.excluded
        if job.mem_kind == "node" and job.mem > self.least_memory:
            nodes &= self._with_memory(job.mem)
        ways = [(nodes, ())] if job.constraint is None else [(nodes & w.allowed, w.counts) for w in job.constraint]
        sub = job.sub
        per_node = sub.tasks_per_node or 0
        if self.linear:
            if job.tasks == 1:
                per_node = 0
            least = max(job.cpus_per_task * max(1, per_node), sub.min_cpus_per_node or 0)
            ways = [(allowed & self._with_cpus(least), counts) for allowed, counts in ways]
        # Without -N, a job may use as many nodes as it has tasks.
        most = job.max_nodes
        if settings.max_nodes is not None:
            most = max(job.min_nodes, min(most, settings.max_nodes))
        if job.node_limit:
            most = min(most, job.node_limit)
        want = most if sub.nodes is not None else min(most, job.min_nodes)
        fixed = job.min_cpus if job.gres else 0
        share = settings.max_share if job.shares else 0
        return [
            self._same(
                allowed,
                job.min_nodes,
                want,
                most,
                job.min_cpus,
                job.cpus_per_task,
                per_node,
                job.mem,
                job.mem_kind,
                job.gres,
                job.whole or part.exclusive,
                fixed,
                settings.max_cpus_per_node or 0,
                job.required,
                sub.contiguous,
                share,
                part.index,
                settings.lln,
                tuple(counts),
                switches,
            )
            for allowed, counts in ways
        ]

    def _same(self, *values: Any) -> NodesAsked:
        """Return a request with these values as its attributes, in their order.

        If an earlier job had an equal request, the same object is returned.
        """
        key = tuple(tuple(one.items()) if isinstance(one, dict) else one for one in values)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = NodesAsked(*values)
        return found

    def tres(self, job: SlurmJob, part: SlurmPartition, alloc: Alloc | None) -> Tres:
        """Return the TRES of a job's allocation.

        Without an allocation, return the TRES of the job's request, with the nodes that the last test would give it.
        """
        tres: Tres = {}
        if alloc is not None:
            cpus = memory = 0
            for at_cpus, at_memory, gres in alloc.values():
                cpus += at_cpus
                memory += at_memory
                for name, count in gres.items():
                    _add_gres(tres, name, count)
            nodes = len(alloc)
        else:
            nodes = job.likely_nodes or job.min_nodes
            cpus = job.cpus or job.min_cpus
            memory = job.mem * (cpus if job.mem_kind == "cpu" else nodes)
            for name, count in job.gres.items():
                _add_gres(tres, name, count * nodes)
        tres["cpu"] = cpus
        tres["node"] = nodes
        if memory:
            tres["mem"] = memory
        for name, count in job.sub.licenses.items():
            tres[f"license/{name}"] = count
        tres["billing"] = self._billing(part, tres)
        return tres

    def later_tres(self, job: SlurmJob, part: SlurmPartition, alloc: Alloc) -> Tres:
        """Return the TRES of a job that would start on ``alloc`` later.

        Until it starts, only the gres that the job asks for count, even if it will get all those of its nodes.
        """
        tres = self.tres(job, part, alloc)
        if job.whole:
            tres = {name: amount for name, amount in tres.items() if not name.startswith("gres/")}
            for name, count in job.gres.items():
                _add_gres(tres, name, count * len(alloc))
            tres["billing"] = self._billing(part, tres)
        return tres

    def _billing(self, part: SlurmPartition, tres: Tres) -> float:
        weights = part.settings.tres_billing_weights
        if weights is None:
            return tres["cpu"]
        parts = {name: weight * tres.get(name, 0) for name, weight in weights.items()}
        if self.max_tres:
            whole = sum(amount for name, amount in parts.items() if name.startswith("license/"))
            return max((amount for name, amount in parts.items() if not name.startswith("license/")), default=0) + whole
        return sum(parts.values())


def _add_gres(tres: Tres, name: str, count: int) -> None:
    tres[f"gres/{name}"] = tres.get(f"gres/{name}", 0) + count
    general = name.split(":", maxsplit=1)[0]
    if general != name:
        tres[f"gres/{general}"] = tres.get(f"gres/{general}", 0) + count
