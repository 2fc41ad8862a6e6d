"""The free CPUs, memory and GPUs of nodes, now or after some jobs have ended."""

from collections.abc import Iterable, Mapping, Sequence

from pipistrelle.schedulers.slurm.cluster.bits import indices_of
from pipistrelle.schedulers.slurm.cluster.jobs import SlurmJob
from pipistrelle.schedulers.slurm.cluster.machine import SlurmMachine
from pipistrelle.schedulers.slurm.nodes.asked import NodesAsked


class Free:
    """The free CPUs, memory and gres of all nodes; jobs can be removed from a copy."""

    __slots__ = ("cpus", "gres", "jobs_on", "machine", "memory", "own", "shared")

    def __init__(self, machine: SlurmMachine, shared: Mapping[int, Sequence[int]], *, copy: bool = False) -> None:
        self.machine = machine
        self.shared = shared
        self.own = copy
        self.cpus = machine.free_cpus[:] if copy else machine.free_cpus
        self.memory = machine.free_memory[:] if copy else machine.free_memory
        self.gres = list(machine.free_gres) if copy and machine.any_gres else machine.free_gres
        self.jobs_on = machine.jobs_on[:] if copy else machine.jobs_on
        if copy and shared:
            self.shared = {part: list(held) for part, held in shared.items()}

    def take_away(self, jobs: Iterable[SlurmJob]) -> None:
        """Free the amounts that these running jobs hold."""
        for job in jobs:
            held = self.shared.get(job.part) if job.shares else None
            for at, (cpus, memory, gres) in job.alloc.items():
                self.cpus[at] += cpus
                self.memory[at] += memory
                self.jobs_on[at] -= 1
                if gres:
                    free = self.gres[at]
                    self.gres[at] = {name: count + gres.get(name, 0) for name, count in free.items()}
                if held is not None:
                    held[at] -= cpus  # type: ignore[index]

    def usable(self, asked: NodesAsked, nodes: int, *, memory_counts: bool, by_core: bool) -> list[tuple[int, int]]:
        """Return (node, usable CPUs) for each node on which the job could use any CPU.

        Args:
            nodes: set of nodes.
            memory_counts: whether memory is allocated (CR_Memory, CR_CPU_Memory, CR_Core_Memory).
            by_core: whether whole cores are allocated.
        """
        found = []
        machine = self.machine
        cpus, memory, jobs_on, threads = self.cpus, self.memory, self.jobs_on, machine.threads
        per_task, kind, mem, gres = asked.cpus_per_task, asked.mem_kind, asked.mem, asked.gres
        if (
            not (asked.whole or gres or asked.max_cpus_per_node or asked.tasks_per_node)
            and asked.share <= 1
            and not (by_core and machine.any_threads)
            and not (memory_counts and kind not in ("", "cpu"))
        ):  # most jobs: CPUs, with memory for each
            least = max(1, per_task)
            if not (memory_counts and kind and mem):
                return [(at, cpus[at]) for at in indices_of(nodes) if cpus[at] >= least]
            for at in indices_of(nodes):
                free = cpus[at]
                if free >= least:
                    fits = memory[at] // mem
                    free = min(free, fits)
                    if free >= least:
                        found.append((at, free))
            return found
        for at in indices_of(nodes):
            if asked.whole:
                if jobs_on[at]:
                    continue
                free = machine.cpus[at]
            else:
                free = cpus[at] if asked.share <= 1 else self._shared_cpus(asked, at)
                if by_core and threads[at] > 1:
                    free -= free % threads[at]
            if free < per_task:
                continue
            if memory_counts and kind:
                if kind == "cpu":
                    if mem:
                        free = min(free, memory[at] // mem)
                elif kind == "node":
                    if memory[at] < mem:
                        continue
                elif kind == "all":
                    if memory[at] < machine.memory[at]:
                        continue
                elif memory[at] < mem * sum(count for name, count in gres.items() if name.startswith("gpu")):
                    continue
            if asked.max_cpus_per_node:
                free = min(free, asked.max_cpus_per_node)
            if asked.tasks_per_node and not asked.whole:
                free = min(free, asked.tasks_per_node * per_task)
            if free < per_task:
                continue
            if gres:
                if not fits_gres(gres, self.gres[at]):
                    continue
                if asked.fixed_cpus and not asked.whole:
                    free = min(free, asked.fixed_cpus)
            if free > 0:
                found.append((at, free))
        return found

    def _shared_cpus(self, asked: NodesAsked, at: int) -> int:
        held = self.shared.get(asked.part)
        mine = held[at] if held is not None else 0
        room = self.cpus[at] + mine  # what jobs that do not share leave
        return max(0, min(room, room * asked.share - mine))


def fits_gres(wanted: Mapping[str, int], free: Mapping[str, int]) -> bool:
    """Return whether a node's free gres suffice; ``gpu`` counts GPUs of every type."""
    for name, count in wanted.items():
        if count > (
            free[name] if name in free else sum(some for key, some in free.items() if key.split(":")[0] == name)
        ):
            return False
    return True


def take_gres(wanted: Mapping[str, int], free: Mapping[str, int]) -> dict[str, int]:
    """Return {gres: count} that a job gets of a node.

    If the request names no type, types are taken in the node's order.
    """
    taken: dict[str, int] = {}
    for name, count in wanted.items():
        if name in free:
            taken[name] = taken.get(name, 0) + count
            continue
        left = count
        for key, some in free.items():
            if key.split(":")[0] == name and left > 0:
                use = min(left, some - taken.get(key, 0))
                if use > 0:
                    taken[key] = taken.get(key, 0) + use
                    left -= use
    return {name: count for name, count in taken.items() if count}
