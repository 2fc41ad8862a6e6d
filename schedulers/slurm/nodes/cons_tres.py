"""The choice of cores, memory and GPUs of shared nodes, as select/cons_tres makes it."""

from collections.abc import Mapping, Sequence

from pipistrelle.schedulers.slurm.cluster.jobs import Job
from pipistrelle.schedulers.slurm.cluster.machine import Machine
from pipistrelle.schedulers.slurm.nodes.asked import Alloc, Asked
from pipistrelle.schedulers.slurm.nodes.runs import Run, best_run, make_runs
from pipistrelle.schedulers.slurm.nodes.shares import Free, take_gres
from pipistrelle.schedulers.slurm.nodes.tree import Tree

#: most jobs taken away between two tests of an expected start
_MOST_AWAY = 200


class ConsTres:
    """Parts of nodes: best fit among runs of nodes of equal weight.

    Args:
        parameters: ``SelectTypeParameters``.
        shared: {partition: CPUs of each node that its sharing jobs hold}, kept by the controller.
        margin: s after its limit at which a job is expected to end (``KillWait`` and ``OverTimeLimit``).
    """

    def __init__(
        self,
        machine: Machine,
        parameters: frozenset[str],
        shared: Mapping[int, Sequence[int]],
        margin: float,
        *,
        tree: Tree | None = None,
        busy_nodes: bool = False,
    ) -> None:
        self.machine = machine
        self.shared = shared
        self.margin = margin
        self.tree = tree
        self.busy_nodes = busy_nodes
        names = {name.lower() for name in parameters}
        self.memory_counts = any("memory" in name for name in names)
        self.by_core = any("core" in name or "socket" in name for name in names)
        self.lln = "cr_lln" in names

    def now(self, asked: Asked, usable: int) -> Alloc | None:
        """Return what the job gets now; jobs that may share try free CPUs first."""
        free = Free(self.machine, self.shared)
        return self._fit(asked, usable & asked.nodes, free)

    def without(self, asked: Asked, usable: int, gone: Sequence[Job]) -> Alloc | None:
        """Return what the job gets as if some jobs had ended."""
        free = Free(self.machine, self.shared, copy=True)
        free.take_away(gone)
        return self._fit(asked, usable & asked.nodes, free)

    def ever(self, asked: Asked) -> Alloc | None:
        """Return what the job gets of the empty cluster."""
        return self._fit(asked, asked.nodes, Empty(self.machine))

    def expected(
        self, asked: Asked, usable: int, running: Sequence[Job], now: int, gone: Sequence[Job] = ()
    ) -> tuple[int, Alloc] | None:
        """Return when and where the job can start.

        Running jobs are taken away in groups that end within a window. The window begins with 30 s and doubles before
        each test, so the start found may be later than necessary.
        """
        usable &= asked.nodes
        found = self._fit(asked, usable, Free(self.machine, self.shared))
        if found is not None:
            return now, found
        if usable.bit_count() < asked.min_nodes:
            return None
        free = Free(self.machine, self.shared, copy=True)
        free.take_away(gone)
        window, end, place, last_place = 30, 0, 0, len(running)
        more = True
        while more:
            last: Job | None = None
            following: Job | None = None
            away = 0
            full = False
            while True:
                if place >= last_place:
                    more = False
                    break
                job = running[place]
                place += 1
                if not job.nodes & usable:
                    continue
                if not end:
                    end = job.limit_end + window - job.limit_end % window
                last = job
                free.take_away((job,))
                if place >= last_place:
                    more = False
                    following = None
                    break
                following = running[place]
                if following.limit_end > end + window:
                    break
                away += 1
                if away > _MOST_AWAY:
                    full = True
                    break
            if last is None:
                break
            if full:
                continue
            window *= 2
            while following is not None and following.limit_end > end + window:
                window *= 2
            found = self._fit(asked, usable, free, prefer_busy=self.busy_nodes)
            if found is not None:
                return self._end_of(last, now), found
        return None

    def _end_of(self, job: Job, now: int) -> int:
        if job.limit_end > now:
            return job.limit_end
        return max(int(job.limit_end + self.margin), now + 1)

    def _fit(self, asked: Asked, usable: int, free: "Free | Empty", *, prefer_busy: bool = False) -> Alloc | None:
        if usable.bit_count() < asked.min_nodes:
            return None
        shares = asked.share
        if shares > 1:  # free CPUs first
            asked.share = 1
            found = self._fit(asked, usable, free)
            asked.share = shares
            if found is not None:
                return found
        if asked.required & ~usable:
            return None
        nodes = free.usable(asked, usable, memory_counts=self.memory_counts, by_core=self.by_core)
        if len(nodes) < asked.min_nodes:
            return None
        if sum(cpus for _, cpus in nodes) < asked.cpus:
            return None
        if prefer_busy:
            busy = [one for one in nodes if free.jobs_on[one[0]]]
            got = self._choose(asked, busy) if len(busy) >= asked.min_nodes else None
            if got is None:
                got = self._choose(asked, nodes)
        else:
            got = self._choose(asked, nodes)
        return None if got is None else self._alloc(asked, whole_tasks(asked, got, dict(nodes)), free)

    def _choose(self, asked: Asked, nodes: Sequence[tuple[int, int]]) -> dict[int, int] | None:
        """Return {node: CPUs}; without success, try again without the nodes with the fewest CPUs."""
        if asked.counts:
            return self._with_counts(asked, nodes)
        got = self._once(asked, nodes)
        if got is not None:
            return got
        for cut in sorted({cpus for _, cpus in nodes})[:-1]:
            nodes = [one for one in nodes if one[1] > cut]
            if len(nodes) < asked.min_nodes:
                return None
            got = self._once(asked, nodes)
            if got is not None:
                return got
        return None

    def _with_counts(self, asked: Asked, nodes: Sequence[tuple[int, int]]) -> dict[int, int] | None:
        cpus = dict(nodes)
        got: dict[int, int] = {}
        per_node = max(1, asked.cpus // max(1, asked.min_nodes))
        for among, count in asked.counts:
            fitting = [at for at, _ in nodes if among >> at & 1 and at not in got][:count]
            if len(fitting) < count:
                return None
            got.update({at: min(cpus[at], per_node) for at in fitting})
        return got if sum(got.values()) >= asked.cpus and len(got) >= asked.min_nodes else None

    def _once(self, asked: Asked, nodes: Sequence[tuple[int, int]]) -> dict[int, int] | None:
        if self.lln or asked.lln:
            return self._least_loaded(asked, nodes)
        if self.tree is not None:
            return self._below_switch(asked, nodes)
        if asked.want_nodes > asked.min_nodes:
            got = fill(make_runs(nodes, self.machine.weight, asked.required), asked, asked.want_nodes)
            if got is not None:
                return got
        return fill(make_runs(nodes, self.machine.weight, asked.required), asked, asked.min_nodes)

    def _least_loaded(self, asked: Asked, nodes: Sequence[tuple[int, int]]) -> dict[int, int] | None:
        """Return the nodes with the most free CPUs first (CR_LLN)."""
        got: dict[int, int] = {}
        left, need, most = asked.min_nodes, asked.cpus, asked.max_nodes
        for at, cpus in sorted(nodes, key=lambda one: (not asked.required >> one[0] & 1, -one[1], one[0])):
            if most == 0 or (left <= 0 and need <= 0):
                break
            if most == 1 and cpus < need:
                continue
            use = cpus if asked.whole else min(cpus, max(1, need - max(left - 1, 0)))
            got[at] = use
            need -= use
            left -= 1
            most -= 1
        return got if left <= 0 and need <= 0 else None

    def _below_switch(self, asked: Asked, nodes: Sequence[tuple[int, int]]) -> dict[int, int] | None:
        """Return nodes below the lowest switch whose nodes suffice."""
        assert self.tree is not None
        cpus = dict(nodes)
        ranked = []
        for switch in self.tree.switches:
            below = [at for at in cpus if switch.nodes >> at & 1]
            if len(below) >= asked.min_nodes and sum(cpus[at] for at in below) >= asked.cpus:
                ranked.append((switch.level, len(below), switch))
        for _, _, switch in sorted(ranked, key=lambda one: one[:2]):
            leaves = [leaf for leaf in self.tree.leaves if leaf.nodes & switch.nodes]
            runs = []
            for leaf in leaves:
                some = [(at, count) for at, count in nodes if leaf.nodes >> at & 1]
                if some:
                    runs.append(Run(min(self.machine.weight[at] for at, _ in some), some, sum(c for _, c in some)))
            got = fill(runs, asked, asked.min_nodes)
            if got is not None:
                return got
        return None

    def _alloc(self, asked: Asked, got: dict[int, int], free: "Free | Empty") -> Alloc:
        """Return what the job takes of each node: CPUs of whole tasks, memory and gres."""
        machine = self.machine
        alloc: Alloc = {}
        for at in sorted(got):
            cpus = got[at]
            if asked.whole:
                cpus = machine.cpus[at]
            elif self.by_core and machine.threads[at] > 1:
                cpus = -(-cpus // machine.threads[at]) * machine.threads[at]
            gres = machine.gres[at] if asked.whole else take_gres(asked.gres, free.gres[at]) if asked.gres else {}
            memory = 0
            if asked.mem_kind == "cpu":
                memory = asked.mem * cpus
            elif asked.mem_kind == "node":
                memory = asked.mem
            elif asked.mem_kind == "all":
                memory = machine.memory[at]
            elif asked.mem_kind == "gpu":
                memory = asked.mem * sum(count for name, count in gres.items() if name.startswith("gpu"))
            alloc[at] = (cpus, memory, gres)
        return alloc


class Empty(Free):
    """All nodes as if nothing ran."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine, {})
        self.cpus = machine.cpus
        self.memory = machine.memory
        self.gres = machine.gres
        self.jobs_on = [0] * machine.count


def whole_tasks(asked: Asked, got: dict[int, int], usable: Mapping[int, int]) -> dict[int, int]:
    """Return {node: CPUs} for whole tasks: nodes in order get as many as fit, later ones at least one."""
    per_task = asked.cpus_per_task
    if asked.whole or per_task <= 1 or len(got) < 2:
        return got
    left = asked.cpus // per_task
    placed: dict[int, int] = {}
    order = sorted(got)
    for at, node in enumerate(order):
        tasks = min(usable[node] // per_task, left - (len(order) - at - 1))
        placed[node] = max(tasks, 0) * per_task
        left -= tasks
    return placed if left <= 0 and all(placed.values()) else got


def fill(runs: list[Run], asked: Asked, nodes: int) -> dict[int, int] | None:
    """Return {node: CPUs} from the best runs; None if they do not suffice.

    Tasks fill node by node; each later node keeps at least one CPU. The last node is the one with the fewest CPUs that
    still fit.
    """
    left_runs: list[Run | None] = list(runs)
    got: dict[int, int] = {}
    need, rest = asked.cpus, asked.cpus
    left, more, most = nodes, nodes, asked.max_nodes
    if asked.required:
        for run in runs:
            for at, cpus in run.nodes:
                if asked.required >> at & 1:
                    use = cpus if asked.whole else min(cpus, max(rest - max(more - 1, 0), 1))
                    got[at] = use
                    need -= use
                    rest -= use
                    left -= 1
                    more -= 1
                    most -= 1
        if left <= 0 and need <= 0:
            return got
    while most > 0:
        best = best_run(left_runs, left, need)
        if best is None:
            return None
        chosen = left_runs[best]
        assert chosen is not None
        left_runs[best] = None
        if asked.contiguous and (chosen.cpus < need or len(chosen.nodes) < left):
            continue
        nodes_of = chosen.nodes
        if left <= 1:
            fitting = [one for one in nodes_of if one[1] >= need and one[0] not in got]
            if fitting:
                nodes_of = [min(fitting, key=lambda one: one[1])]
        for at, cpus in nodes_of:
            if most == 0 or (left <= 0 and need <= 0):
                break
            if at in got or (most == 1 and cpus < need):
                continue
            use = cpus
            if not asked.whole:
                room = rest - max(more - 1, 0)
                if use > room:
                    use = max(room, 1)
            got[at] = use
            need -= use
            rest -= use
            left -= 1
            more -= 1
            most -= 1
        if left <= 0 and need <= 0:
            return got
    return None
