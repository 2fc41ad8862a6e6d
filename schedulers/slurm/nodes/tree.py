"""Choose nodes below few switches, as topology/tree does."""

from collections.abc import Iterable, Sequence
from math import inf
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from pipistrelle.schedulers.slurm.cluster.bits import indices_of, mask_of
from pipistrelle.schedulers.slurm.cluster.machine import SlurmMachine
from pipistrelle.schedulers.slurm.config.machine import SwitchSettings
from pipistrelle.schedulers.slurm.nodes.asked import NodesAsked

#: most sets of used switches whose distances are kept
_MOST_KNOWN: Final = 1000


class Switch(Struct):
    """A switch, with the bit mask of all nodes below it; leaf switches have level 0."""

    name: str
    level: int
    nodes: int


class Tree:
    """The switches of topology.conf.

    Raises:
        ValueError: a switch names itself, directly or through others.
    """

    def __init__(self, machine: SlurmMachine, settings: Sequence[SwitchSettings]) -> None:
        known = {one.name: one for one in settings}
        made: dict[str, Switch] = {}

        def make(name: str, above: tuple[str, ...]) -> Switch:
            if name in above:
                raise ValueError(f"switch {name} is below itself")
            if name not in made:
                one = known[name]
                nodes, level = machine.mask_of_names(one.nodes), 0
                for below in one.switches:
                    if below in known:
                        part = make(below, (*above, name))
                        nodes |= part.nodes
                        level = max(level, part.level + 1)
                made[name] = Switch(name, level, nodes)
            return made[name]

        for one in settings:
            make(one.name, ())
        self.switches = [made[one.name] for one in settings]
        self.leaf_places = [place for place, one in enumerate(self.switches) if one.level == 0]
        self.leaves = [self.switches[place] for place in self.leaf_places]
        self.weight = machine.by_weight
        place = {one.name: at for at, one in enumerate(settings)}
        #: the position of the switch above each switch; its own if there is none
        self.above = list(range(len(settings)))
        for at, one in enumerate(settings):
            for below in one.switches:
                if below in place:
                    self.above[place[below]] = at
        self._lines = [self._line(at) for at in range(len(settings))]
        #: {used switches: what `distances` returns}
        self._distances: dict[tuple[int, ...], list[float]] = {}
        #: the weights that `groups` was last called with, and what it returned
        self._weights: NDArray[np.int64] | None = None
        self._groups: list[tuple[int, int]] = []

    def groups(self, weights: NDArray[np.int64]) -> list[tuple[int, int]]:
        """Return the nodes grouped by weight: (weight, bit mask), the lowest weight first.

        Args:
            weights: weight of each node of the machine; the caller never changes the array.
        """
        if self._weights is not weights:
            self._weights = weights
            self._groups = [
                (weight, mask_of(np.flatnonzero(weights == weight).tolist())) for weight in np.unique(weights).tolist()
            ]
        return self._groups

    def leaves_of(self, nodes: Iterable[int]) -> list[Switch]:
        """Return the leaf switches that have any of these nodes."""
        mask = mask_of(nodes)
        return [leaf for leaf in self.leaves if leaf.nodes & mask]

    def distances(self, used: Sequence[int]) -> list[float]:
        """Return for each switch the sum of its distances (links) from those in ``used``.

        The caller must not change the list.
        """
        known = self._distances.get(tuple(used))
        if known is None:
            if len(self._distances) >= _MOST_KNOWN:
                self._distances.clear()
            known = self._distances[tuple(used)] = self._distances_from(used)
        return known

    def _distances_from(self, used: Sequence[int]) -> list[float]:
        lines = self._lines
        found: list[float] = []
        for mine in lines:
            total = 0.0
            for at in used:
                common = next((step for step, one in enumerate(mine) if one in lines[at]), None)
                total += inf if common is None else common + lines[at].index(mine[common])
            found.append(total)
        return found

    def _line(self, at: int) -> list[int]:
        """Return a switch and all switches above it."""
        line = [at]
        while self.above[line[-1]] != line[-1]:
            line.append(self.above[line[-1]])
        return line

    def compared(self, one: int, other: int, left: int, counts: Sequence[int]) -> int:
        """Return 1 if switch ``one`` is better than ``other``, -1 if it is worse, else 0.

        If both have enough nodes, the one with fewer nodes is better. If neither has enough, the switches above them
        are compared.

        Args:
            left: nodes that a job still needs.
            counts: usable nodes of each switch.
        """
        while True:
            fits, other_fits = counts[one] >= left, counts[other] >= left
            if fits and other_fits and counts[one] != counts[other]:
                return 1 if counts[one] < counts[other] else -1
            if fits != other_fits:
                return 1 if fits else -1
            if fits or self.above[one] == self.above[other]:
                break
            one, other = self.above[one], self.above[other]
        if counts[one] != counts[other]:
            return 1 if counts[one] > counts[other] else -1
        return self.switches[other].level - self.switches[one].level

    def pick(self, asked: NodesAsked, idle: int, cpus: Sequence[int]) -> int:
        """Return the idle nodes that a job gets as a whole, all below one switch.

        Return 0 if the job does not fit.

        Nodes of lower weight are preferred. Heavier nodes are used only if no switch has enough lighter ones.

        Args:
            cpus: CPUs of each node of the machine.
        """
        allowed = 0
        for _, group in self.weight:
            allowed |= group
            nodes = self._pick(asked, idle & allowed, cpus) if idle & group else 0
            if nodes:
                most = asked.max_switches
                fits = not most or sum(1 for leaf in self.leaves if leaf.nodes & nodes) <= most
                return nodes if fits else 0
        return 0

    def _pick(self, asked: NodesAsked, idle: int, cpus: Sequence[int]) -> int:
        """Return the nodes of a job below the lowest switch that has enough, or else 0.

        Of several such switches, the one with the fewest idle nodes is used. Below it, the job first gets the nodes
        that it names, then others of the same leaf switches. Then the leaf switch with the fewest idle CPUs is used up,
        and so on.
        """
        best: Switch | None = None
        best_free = 0
        for switch in self.switches:
            nodes = switch.nodes & idle
            if asked.required & ~nodes or nodes.bit_count() < asked.min_nodes or _sum(cpus, nodes) < asked.cpus:
                continue
            free = nodes.bit_count()
            if best is None or (switch.level, free) < (best.level, best_free):
                best, best_free = switch, free
        if best is None:
            return 0
        among = idle & best.nodes
        taken, need = asked.required, asked.cpus - _sum(cpus, asked.required)
        want = max(asked.want_nodes, asked.min_nodes)
        leaves = [leaf.nodes & among for leaf in self.leaves if leaf.nodes & among]
        near = [nodes for nodes in leaves if nodes & asked.required]
        far = sorted((nodes for nodes in leaves if not nodes & asked.required), key=lambda nodes: _sum(cpus, nodes))
        for at in (at for nodes in (*near, *far) for at in indices_of(nodes)):
            if taken.bit_count() >= want and need <= 0:
                break
            if not taken >> at & 1:
                taken |= 1 << at
                need -= cpus[at]
        return taken if need <= 0 and asked.min_nodes <= taken.bit_count() <= asked.max_nodes else 0


def _sum(cpus: Sequence[int], nodes: int) -> int:
    return sum(cpus[at] for at in indices_of(nodes))
