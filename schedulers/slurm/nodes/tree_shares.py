"""Choose shared nodes below few switches, as select/cons_tres does with topology/tree."""

import numpy as np
from numpy.typing import NDArray

from pipistrelle.schedulers.slurm.cluster.bits import mask_of
from pipistrelle.schedulers.slurm.nodes.asked import Alloc, NodesAsked
from pipistrelle.schedulers.slurm.nodes.runs import Able
from pipistrelle.schedulers.slurm.nodes.tree import Tree


def below_top_switch(tree: Tree, asked: NodesAsked, nodes: Able, weights: NDArray[np.int64]) -> dict[int, int] | None:
    """Return {node: CPUs} for a job, with all nodes below one switch.

    Return None if the job does not fit below one switch, and {} if it would use too many leaf switches. As in
    slurmctld, the result may have more nodes than ``asked.max_nodes``. Then the job cannot start.

    Among the switches with enough nodes, the highest one that has nodes of the lowest weight is used. Nodes below it
    are grouped by weight, and the lightest groups that suffice are used. All nodes of these groups are taken, except
    that the last group only gives what is still needed. In the last group, nodes below leaf switches that are already
    in use come first, then those of further leaf switches. A near leaf switch with the fewest nodes that suffice is
    best, or else one with the most nodes.

    Args:
        nodes: the nodes on which the job could run, and the CPUs that it could use on each.
        weights: weight of each node of the machine.
    """
    choice = _Choice(tree, asked, nodes, weights)
    top = choice.top()
    if top is None or asked.required & ~choice.open & tree.switches[top].nodes:
        return None
    below = tree.switches[top].nodes & choice.open
    if asked.required & ~below:
        return None
    for at in sorted(at for at in choice.cpus if asked.required >> at & 1):
        choice.take(at)
    groups = choice.groups(below & ~asked.required)
    if groups is None:
        return choice.got if choice.met else None
    *lighter, last = groups
    for group in lighter:
        for at in sorted(group):
            choice.take(at)
    if not choice.met:
        choice.add(sorted(last))
    got = choice.got
    if len(got) < asked.min_nodes or choice.need > 0:
        return None
    if asked.max_switches and len(tree.leaves_of(got)) > asked.max_switches:
        return {}
    return got


def within(asked: NodesAsked, alloc: Alloc | None) -> Alloc | None:
    """Return an allocation, or None if it has more nodes than the job may have."""
    return alloc if alloc is None or len(alloc) <= asked.max_nodes else None


class _Choice:
    """What a job has got, and what it still lacks.

    Attributes:
        open: set of the nodes that the job could use.
        cpus: {node: CPUs that the job could use}.
        lists, masks: [(weight, nodes)] from the lightest, as lists and as bit masks.
        left, need: nodes and CPUs that are still lacking.
        least: nodes of the least number of nodes that are still lacking.
        most: number of nodes that may still be taken. Lighter groups and leaf switches in use may make it negative;
            then it limits nothing any more.
    """

    def __init__(self, tree: Tree, asked: NodesAsked, nodes: Able, weights: NDArray[np.int64]) -> None:
        self.tree, self.asked = tree, asked
        self.cpus = dict(nodes.pairs())
        self.lists: list[tuple[int, list[int]]] = []
        self.masks: list[tuple[int, int]] = []
        of_nodes = weights[nodes.at]
        for weight in np.unique(of_nodes).tolist():
            self.lists.append((weight, nodes.at[of_nodes == weight].tolist()))
            self.masks.append((weight, mask_of(self.lists[-1][1])))
        self.open = 0
        for _, mask in self.masks:
            self.open |= mask
        self.got: dict[int, int] = {}
        self.left, self.least = max(asked.min_nodes, asked.want_nodes), asked.min_nodes
        self.most, self.need = asked.max_nodes, asked.cpus

    @property
    def met(self) -> bool:
        """Whether the job has all it asks for."""
        return self.left <= 0 and self.need <= 0

    def take(self, at: int) -> None:
        """Take as many CPUs of a node as are needed; leave one needed CPU for each later node."""
        cpus = self.cpus[at]
        use = cpus if self.asked.whole else min(cpus, max(self.need - max(self.least - 1, 0), 1))
        self.got[at] = use
        self.need -= use
        self.left -= 1
        self.least -= 1
        self.most -= 1

    def top(self) -> int | None:
        """Return the position of the switch below which all nodes are chosen; None if no switch has enough nodes."""
        best: int | None = None
        lowest = 0
        switches = self.tree.switches
        for place, switch in enumerate(switches):
            nodes = switch.nodes & self.open
            higher = best is None or switch.level > switches[best].level
            if self.asked.required:
                if nodes & self.asked.required and higher:
                    best = place
                continue
            if not nodes or nodes.bit_count() < self.asked.min_nodes:
                continue
            weight = next(weight for weight, mask in self.masks if mask & nodes)
            if best is None or (switch.level >= switches[best].level and weight <= lowest):
                best, lowest = place, weight
        return best

    def groups(self, below: int) -> list[list[int]] | None:
        """Return the lightest groups of nodes of equal weight that together suffice; None if all do not suffice."""
        found: list[list[int]] = []
        count = cpus = 0
        for (_, every), (_, mask) in zip(self.lists, self.masks, strict=True):
            if not mask & below:
                continue
            group = every if not mask & ~below else [at for at in every if below >> at & 1]
            found.append(group)
            count += len(group)
            cpus += sum(self.cpus[at] for at in group)
            if count >= self.least and cpus >= self.need:
                return found
        return None

    def add(self, last: list[int]) -> None:
        """Take nodes of the last group, first below leaf switches that are in use, until the job has enough."""
        among = sum(1 << at for at in last)
        inside = among | sum(1 << at for at in self.got)
        switches = self.tree.switches
        counts = [(one.nodes & inside).bit_count() for one in switches]
        used = [place for place, one in enumerate(switches) if any(one.nodes >> at & 1 for at in self.got)]
        leaves = [place for place, one in enumerate(switches) if one.level == 0]
        for place in [place for place in leaves if place in used]:
            if self.most:
                self._fill(switches[place].nodes & among, limited=False)
        open_leaves = [place for place in leaves if place not in used and counts[place]]
        far = self.tree.distances(used)
        while open_leaves and not self.met and self.most:
            best = open_leaves[0]
            for place in open_leaves[1:]:
                better = self.tree.compared(place, best, self.left, counts)
                if (far[place] < far[best] and better >= 0) or (far[place] == far[best] and better > 0):
                    best = place
            self._fill(switches[best].nodes & among, limited=True)
            open_leaves.remove(best)
            counts[best] = 0
            used.append(best)
            far = self.tree.distances(used)

    def _fill(self, nodes: int, *, limited: bool) -> None:
        for at in self.cpus:
            if nodes >> at & 1 and at not in self.got and not self.met and (self.most or not limited):
                self.take(at)
