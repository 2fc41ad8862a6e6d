"""Choose nodes below few switches, as topology/tree does."""

from collections.abc import Sequence

from msgspec import Struct

from pipistrelle.schedulers.slurm.cluster.bits import lowest
from pipistrelle.schedulers.slurm.cluster.machine import SlurmMachine
from pipistrelle.schedulers.slurm.config.machine import SwitchSettings


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
        self.leaves = [one for one in self.switches if one.level == 0]
        self.weight = machine.by_weight

    def pick(self, idle: int, count: int, most_leaves: int = 0) -> int:
        """Return ``count`` idle nodes below the smallest switch that has enough of them.

        Return 0 if no switch has enough. Below that switch, leaf switches are used one after the other: the one with
        just enough nodes, or else the one with the most.

        Args:
            most_leaves: most leaf switches to use (``--switches``); 0: any number.
        """
        best: Switch | None = None
        best_free = 0
        for switch in self.switches:
            free = (switch.nodes & idle).bit_count()
            if free < count:
                continue
            if best is None or (switch.level, free) < (best.level, best_free):
                best, best_free = switch, free
        if best is None:
            return 0
        taken, left, used = 0, count, 0
        open_nodes = idle & best.nodes
        while left > 0:
            chosen, chosen_free, enough = 0, 0, False
            for leaf in self.leaves:
                nodes = leaf.nodes & open_nodes & ~taken
                free = nodes.bit_count()
                if not free:
                    continue
                if free >= left:
                    if not enough or free < chosen_free:
                        chosen, chosen_free, enough = nodes, free, True
                elif not enough and free > chosen_free:
                    chosen, chosen_free = nodes, free
            if not chosen:
                return 0
            use = min(left, chosen_free)
            for _, group in self.weight:
                some = min(use, (chosen & group).bit_count())
                taken |= lowest(chosen & group, some)
                use -= some
                left -= some
            used += 1
            if most_leaves and used > most_leaves:
                return 0
        return taken
