"""Choose shared nodes below few switches: select/cons_tres with topology/tree."""

import numpy as np
from numpy.typing import NDArray

from pipistrelle.schedulers.slurm.cluster.bits import indices_of, mask_of, mask_of_array
from pipistrelle.schedulers.slurm.nodes.asked import Alloc, NodesAsked
from pipistrelle.schedulers.slurm.nodes.runs import Able
from pipistrelle.schedulers.slurm.nodes.tree import Tree


def below_top_switch(tree: Tree, asked: NodesAsked, nodes: Able, weights: NDArray[np.int64]) -> dict[int, int] | None:
    """Return {node: CPUs} for a job, as `_below` does.

    If the job does not fit, try again without the nodes with the fewest CPUs.

    Args:
        nodes: the nodes on which the job could run, and the CPUs that it could use on each.
        weights: weight of each node of the machine.
    """
    cpus = dict(zip(nodes.at.tolist(), nodes.cpus.tolist(), strict=True))
    among = mask_of_array(nodes.at, len(weights))
    got = _below(tree, asked, cpus, among, weights)
    if got is not None:
        return got
    values, places = np.unique(nodes.cpus, return_inverse=True)
    left, total = len(cpus), sum(cpus.values())
    for place, value in enumerate(values[:-1].tolist()):
        gone = nodes.at[places == place]
        left, total = left - len(gone), total - len(gone) * value
        if left < asked.min_nodes or total < asked.cpus:
            break
        among ^= mask_of_array(gone, len(weights))
        got = _below(tree, asked, cpus, among, weights)
        if got is not None:
            return got
    return None


def _below(
    tree: Tree, asked: NodesAsked, cpus: dict[int, int], among: int, weights: NDArray[np.int64]
) -> dict[int, int] | None:
    """Return {node: CPUs} for a job, with all nodes below one switch.

    Return None if the job does not fit below one switch, and {} if it would use too many leaf switches. As in
    slurmctld, the result may have more nodes than ``asked.max_nodes``. Then the job cannot start.

    Among the switches with enough nodes, the highest one that has nodes of the lowest weight is used. Nodes below it
    are grouped by weight, and the lightest groups that suffice are used. All nodes of these groups are taken, except
    that the last group only gives what is still needed. In the last group, nodes below leaf switches that are already
    in use come first, then those of further leaf switches. A near leaf switch with the fewest nodes that suffice is
    best, or else one with the most nodes.

    Args:
        cpus: {node: CPUs that the job could use}.
        among: the nodes of ``cpus`` that the job may use.
    """
    choice = _Choice(tree, asked, cpus, among, weights)
    top = choice.top()
    if top is None or asked.required & ~choice.open & tree.switches[top].nodes:
        return None
    below = tree.switches[top].nodes & choice.open
    if asked.required & ~below:
        return None
    for at in indices_of(asked.required & choice.open):
        choice.take(at)
    groups = choice.groups(below & ~asked.required)
    if groups is None:
        return choice.got if choice.met else None
    *lighter, last = groups
    for group in lighter:
        for at in indices_of(group):
            choice.take(at)
    if not choice.met:
        choice.add(last)
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
    """The nodes that a job has got so far, and what it still lacks.

    Attributes:
        open: set of the nodes that the job could use.
        cpus: {node: CPUs that the job could use}, also of nodes that are not open.
        masks: open nodes grouped by weight, (weight, set of nodes), the lowest weight first.
        left, need: nodes and CPUs that are still lacking.
        least: nodes that are lacking for the fewest that the job accepts.
        most: number of nodes that may still be taken. Lighter groups and leaf switches in use may make it negative;
            then it limits nothing any more.
    """

    def __init__(
        self, tree: Tree, asked: NodesAsked, cpus: dict[int, int], among: int, weights: NDArray[np.int64]
    ) -> None:
        self.tree, self.asked, self.cpus, self.open = tree, asked, cpus, among
        self.masks = [(weight, every & self.open) for weight, every in tree.groups(weights) if every & self.open]
        self.got: dict[int, int] = {}
        self.left, self.least = max(asked.min_nodes, asked.want_nodes), asked.min_nodes
        self.most, self.need = asked.max_nodes, asked.cpus

    @property
    def met(self) -> bool:
        """Whether the job has all it asks for."""
        return self.left <= 0 and self.need <= 0

    def take(self, at: int) -> None:
        """Take as many CPUs of a node as are needed.

        One of the needed CPUs is left for each later node.
        """
        cpus = self.cpus[at]
        use = cpus if self.asked.whole else min(cpus, max(self.need - max(self.least - 1, 0), 1))
        self.got[at] = use
        self.need -= use
        self.left -= 1
        self.least -= 1
        self.most -= 1

    def top(self) -> int | None:
        """Return the position of the switch below which all nodes are chosen.

        Return None if no switch has enough nodes.
        """
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

    def groups(self, below: int) -> list[int] | None:
        """Return the groups of nodes of equal weight, lowest weights first, that suffice.

        Return None if all groups together do not suffice.
        """
        found: list[int] = []
        count = cpus = 0
        for _, mask in self.masks:
            group = mask & below
            if not group:
                continue
            found.append(group)
            count += group.bit_count()
            cpus += sum(map(self.cpus.__getitem__, indices_of(group)))
            if count >= self.least and cpus >= self.need:
                return found
        return None

    def add(self, among: int) -> None:
        """Take nodes of the last group until the job has enough.

        Nodes below leaf switches that are already in use come first.
        """
        mine = mask_of(self.got)
        switches, leaves = self.tree.switches, self.tree.leaf_places
        counts = [(one.nodes & (among | mine)).bit_count() for one in switches]
        used = [place for place, one in enumerate(switches) if one.nodes & mine]
        for place in [place for place in leaves if place in used]:
            if self.most:
                self._fill(switches[place].nodes & among, limited=False)
        open_leaves = [place for place in leaves if place not in used and counts[place]]
        while open_leaves and not self.met and self.most:
            far = self.tree.distances(used)
            best = open_leaves[0]
            for place in open_leaves[1:]:
                better = self.tree.compared(place, best, self.left, counts)
                if (far[place] < far[best] and better >= 0) or (far[place] == far[best] and better > 0):
                    best = place
            self._fill(switches[best].nodes & among, limited=True)
            open_leaves.remove(best)
            counts[best] = 0
            used.append(best)

    def _fill(self, nodes: int, *, limited: bool) -> None:
        """Take nodes of a set one after the other until the request is met.

        If ``limited``, also stop when no more nodes may be taken.
        """
        while nodes and not self.met and (self.most or not limited):
            low = nodes & -nodes
            nodes ^= low
            at = low.bit_length() - 1
            if at not in self.got:
                self.take(at)
