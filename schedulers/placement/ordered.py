"""The placement ``lowest``, and base classes of placements that use an order of units."""

from typing import Annotated, Literal

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.protocol.units.free import FreeUnits
from pipistrelle.protocol.units.indices import flags, numbers, set_of
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.placement.chance import Chances
from pipistrelle.schedulers.placement.free_in_line import FreeInLine
from pipistrelle.schedulers.placement.lines import Line, stable_nodes
from pipistrelle.schedulers.placement.lowest import LowestIds, takes_lowest
from pipistrelle.schedulers.placement.selections import Selection
from pipistrelle.schedulers.policy.interfaces import Placement
from pipistrelle.schedulers.policy.jobs import SchedulerJob

#: positions in a line
Positions = NDArray[np.intp]
_Conditions = str | tuple[str, ...]
#: {(is in the base order, is reversed): line}
_Lines = dict[tuple[bool, bool], Line]


class LineOptions(Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Options of every placement; docs/reference/placing.md has the rules.

    Attributes:
        node_order: order of the nodes in the line of all units. Jobs get units from the line's beginning.
        age_aware: whether stable nodes come before all others.
        dual_ended: conditions (`Selection`); a job that meets one gets nodes from the line's other end.
        base_order: conditions; for a job that meets one, stable nodes do not come first.
        reliability_target: least probability that a job finishes on its nodes.
    """

    node_order: Literal["id", "snake", "hilbert", "alps"] = "id"
    age_aware: bool = False
    dual_ended: _Conditions = ()
    base_order: _Conditions = ()
    reliability_target: Annotated[float, Meta(gt=0, lt=1)] | None = None


class InLine:
    """Base class of placements that choose units by their position in a line.

    A line is an order of all units of the machine.
    """

    #: whether positions are always found if enough are open
    _by_count = True

    def __init__(self, options: LineOptions) -> None:
        self.options = options
        self._from_end = Selection(_texts(options.dual_ended), "dual-ended")
        self._in_base = Selection(_texts(options.base_order), "base-order")
        self.fits_by_count = self._by_count and options.reliability_target is None
        #: protocol features that the placement needs: the labels of jobs
        self.features = ("labels",) if self._from_end.asks_labels or self._in_base.asks_labels else ()
        #: by machine: requests for units per node use a second machine, whose units are nodes
        self._known: dict[Machine, tuple[_Lines, Chances | None]] = {}

    def pick(self, job: SchedulerJob, open_units: NodeSet, machine: Machine) -> NodeSet | None:
        """Return units for the job; None if too few of the open units are suitable."""
        if job.size > len(open_units):
            return None
        self.learn(machine)
        lines, chances = self._known[machine]
        base = not self.options.age_aware or self._in_base.has(job, machine)
        line = lines[base, self._from_end.has(job, machine)]
        if chances is None:
            at = self._choose_open(job, open_units, line, machine)
        else:
            open_at = flags(open_units, machine.units)[line.units]
            at = self._choose_reliable(job, open_at, line, machine, chances)
        return None if at is None else set_of(line.units[at])

    def learn(self, machine: Machine) -> None:
        """Prepare, for this machine, the orders of units that the options name.

        Raises:
            PlatformError, PolicyError: necessary data are missing.
        """
        if machine in self._known:
            return
        base = Line.of(machine, self.options.node_order)
        by_age = base.by_age(stable_nodes(machine)) if self.options.age_aware else base
        target = self.options.reliability_target
        lines: _Lines = {}
        for which, line in ((True, base), (False, by_age)):
            lines[which, False] = line
            lines[which, True] = line.turned()
        self._known[machine] = (lines, None if target is None else Chances(machine, target))

    def _choose_open(self, job: SchedulerJob, open_units: NodeSet, line: Line, machine: Machine) -> Positions | None:
        """Return the positions of the units that the job gets; None to refuse it.

        Positions count in ``line``, an order of all units.
        """
        return self._choose(job, flags(open_units, machine.units)[line.units], line, machine)

    def _choose(self, job: SchedulerJob, open_at: NDArray[np.bool_], line: Line, machine: Machine) -> Positions | None:
        """Return the positions of the units that the job gets; None to refuse it.

        Positions count in ``line``, an order of all units. ``open_at`` says for each position whether the job may use
        its unit, shape (units,).
        """
        raise NotImplementedError

    def _choose_reliable(
        self, job: SchedulerJob, open_at: NDArray[np.bool_], line: Line, machine: Machine, chances: Chances
    ) -> Positions | None:
        """Return positions of nodes that reach the reliability target; None if none do.

        As few as possible of the least reliable nodes are excluded. A bisection over the failure rates finds how many.
        If no such choice reaches the target, the most reliable nodes are tried.
        """
        at = self._choose(job, open_at, line, machine)
        most = chances.most(job)
        if at is None or chances.of_nodes(line.nodes[at]) <= most:
            return at
        rates = chances.rates(line)
        levels = np.unique(rates[open_at])
        best = None
        low, high = 0, len(levels) - 1  # with all levels the chance is too low
        while low < high:
            middle = (low + high) // 2
            among = open_at & (rates <= levels[middle])
            at = self._choose(job, among, line, machine) if among.sum() >= job.size else None
            if at is None:
                low = middle + 1
            elif chances.of_nodes(line.nodes[at]) <= most:
                best, low = at, middle + 1
            else:
                high = middle
        if best is None:
            where = np.flatnonzero(open_at)
            at = where[np.argsort(rates[where], kind="stable")[: job.size]]
            best = at if chances.of_nodes(line.nodes[at]) <= most else None
        return best


class FirstInLine(InLine):
    """The placement that takes the first free units in an order of all units."""

    def __init__(self, options: LineOptions) -> None:
        super().__init__(options)
        #: whether all jobs use the same line, from one of its ends
        self.one_line = options.reliability_target is None and not (options.age_aware and options.base_order)

    def take(self, job: SchedulerJob, free: FreeUnits, machine: Machine) -> tuple[NodeSet, FreeUnits]:
        """Take the units that `pick` would choose among all free units.

        Enough units must be free, and one order of units (`Line`) must apply to all jobs. Return the units taken, and
        the set of the free units that remain, stored by position in this line.
        """
        if machine not in self._known:
            self.learn(machine)
        line = self._known[machine][0][not self.options.age_aware, False]
        if type(free) is not FreeInLine or free.line is not line:
            free = FreeInLine(line, free.snapshot())
        from_end = bool(self._from_end) and self._from_end.has(job, machine)
        return free.take_last(job.size) if from_end else free.take_first(job.size), free

    def _choose_open(self, job: SchedulerJob, open_units: NodeSet, line: Line, machine: Machine) -> Positions | None:
        at = line.position[numbers(open_units)]
        return np.partition(at, job.size)[: job.size] if job.size < len(at) else at

    def _choose(self, job: SchedulerJob, open_at: NDArray[np.bool_], line: Line, machine: Machine) -> Positions | None:
        return np.flatnonzero(open_at)[: job.size]


def only_line(placement: Placement, machine: Machine) -> Line | None:
    """Return the order in which a placement takes free units, if it is the same for every job.

    Return None if the order depends on the job, or if the placement does not always take the first free units.
    """
    if takes_lowest(placement):
        return Line.of(machine, "id")
    if type(placement) is not FirstInLine:
        return None
    options = placement.options
    if options.dual_ended or options.base_order or options.reliability_target is not None:
        return None
    line = Line.of(machine, options.node_order)
    return line.by_age(stable_nodes(machine)) if options.age_aware else line


def lowest(options: LineOptions) -> Placement:
    """Return the placement ``lowest``: by number, unless options change the order."""
    return LowestIds() if options == LineOptions() else FirstInLine(options)


def _texts(conditions: _Conditions) -> tuple[str, ...]:
    return (conditions,) if isinstance(conditions, str) else conditions
