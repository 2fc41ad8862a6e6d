"""Maui's priorities: component weight x subcomponent weight x factor.

Source: admin manual of Maui, 5.1.2, and MJobGetStartPriority of Maui 3.2; differences are in docs/reference/maui.md.
"""

from collections.abc import Mapping
from math import inf
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipistrelle.schedulers.maui.config.parameters import COMPONENTS, SUBCOMPONENTS
from pipistrelle.schedulers.maui.config.settings import KINDS, Credential, MauiSettings
from pipistrelle.schedulers.maui.priority.credentials import Credentials
from pipistrelle.schedulers.maui.priority.fairshare import Fairshare
from pipistrelle.schedulers.maui.priority.waiting import FixedColumn, Ints, MauiQueue, longer
from pipistrelle.schedulers.policy.order import Floats

#: a smaller distance from a target counts as this distance
_NEAREST: Final = 0.0001
#: components whose factors depend on the credentials alone
_BY_CODE: Final = ("CRED", "FS")
#: (factors, weights)
_Factor = tuple[Floats, Floats]


class Term(NamedTuple):
    """One term of a priority; ``value`` is the product before the component's cap."""

    component: str
    subcomponent: str
    component_weight: float
    weight: float
    factor: float
    value: float


class Breakdown(NamedTuple):
    """A job's priority: its terms, the components' values, and their sum.

    Terms with weight 0 are left out. ``rank`` is the value by which jobs are ordered: the sum truncated to an integer.
    Unless ENABLENEGJOBPRIORITY is set, it is at least 1.
    """

    terms: tuple[Term, ...]
    components: dict[str, float]
    total: float
    rank: float

    def values(self) -> dict[str, float]:
        """Return {name: value} of the priority and its terms.

        The priority, as used to rank jobs, is called ``priority``. A term is called, for example, ``SERV.QUEUETIME``.
        """
        return {"priority": self.rank} | {f"{term.component}.{term.subcomponent}": term.value for term in self.terms}


class Lines(NamedTuple):
    """Attributes of some queued jobs as arrays, with one row per job.

    The attributes are those of `MauiQueue`, but a job's row has another number in these arrays.
    """

    size: Ints
    walltime: Floats
    since: Floats
    code: Ints
    bypass: Floats
    generation: int | None = None


Columns = MauiQueue | Lines


def _some(columns: Columns, rows: slice | NDArray[np.intp]) -> Lines:
    size, walltime, since = columns.size[rows], columns.walltime[rows], columns.since[rows]
    return Lines(size, walltime, since, columns.code[rows], columns.bypass[rows])


class _Table(NamedTuple):
    """Values of a job's priority that depend only on its credentials.

    Each array has one entry per combination of credentials.
    """

    priorities: Floats  # (combinations, kinds)
    queue_time_weight: Floats
    xfactor_weight: Floats
    queue_time_target: Floats
    xfactor_target: Floats


class Priorities:
    """The priorities of waiting jobs.

    Args:
        credentials: the combinations of credentials and their numbers.
        units_per_node: a job of n units requests n / units_per_node nodes, rounded up.
    """

    def __init__(
        self, settings: MauiSettings, credentials: Credentials, fairshare: Fairshare, units_per_node: int = 1
    ) -> None:
        self._settings = settings
        self._credentials = credentials
        self._fairshare = fairshare
        self._units_per_node = units_per_node
        self._component = {name: settings.number(weight) for name, weight, _, _ in COMPONENTS}
        self._component_cap = {name: settings.number(cap) or inf for name, _, _, cap in COMPONENTS}
        self._weight = {name: settings.number(f"{name}WEIGHT") for _, name, _, _ in SUBCOMPONENTS}
        self._cap = {name: settings.number(f"{name}CAP") or inf for _, name, _, _ in SUBCOMPONENTS}
        self._negative = settings.flag("ENABLENEGJOBPRIORITY")
        self._min_walltime = settings.number("XFMINWCLIMIT")
        qos = settings.credentials.get("QOS", {}).values()
        self._qos_weights = any(found.queue_time_weight or found.xfactor_weight for found in qos)
        self._table = _Table(np.zeros((0, len(KINDS))), *(np.zeros(0) for _ in range(4)))
        self._known = 0
        #: {class: priority on the machine}, for classes without one in the configuration
        self.class_priorities: Mapping[str, float] = {}
        self._resources, self._by_credentials = FixedColumn(np.float64), FixedColumn(np.float64)
        #: {component: subcomponents that can contribute}
        self._active = {
            component: [
                name
                for owner, name, _, _ in SUBCOMPONENTS
                if owner == component and (self._weight[name] or (self._qos_weights and owner == "SERV"))
            ]
            if self._component[component]
            else []
            for component, _, _, _ in COMPONENTS
        }

    @property
    def counts_bypasses(self) -> bool:
        """Return whether priorities depend on how often backfilled jobs passed a job."""
        return "BYPASS" in self._active["SERV"] and self._weight["BYPASS"] != 0.0

    def ranks(self, queue: Columns, now: float) -> Floats:
        """Return the priority of each row's job, truncated as in Maui.

        Jobs of equal priority are ordered by submission.
        """
        self._extend()
        return self._rank(self._total(queue, now, now))

    @property
    def grow_alike(self) -> bool:
        """Return whether all priorities grow at the same rate.

        If so, no job passes another.
        """
        service = all(name == "QUEUETIME" for name in self._active["SERV"]) and not self._qos_weights
        capped = self._cap["QUEUETIME"] != inf or self._component_cap["SERV"] != inf
        moving = self._active["TARG"] or (self._active["FS"] and self._fairshare.active)
        return service and not capped and not moving

    def totals(self, queue: Columns, chosen: NDArray[np.intp], now: float, at: float) -> Floats:
        """Return the priorities of some rows' jobs at time ``at`` (s), not truncated.

        The result is exact if from ``now`` (s) on no job starts or ends and no fairshare window begins.
        """
        self._extend()
        return self._total(_some(queue, chosen), now, at)

    def breakdown(self, queue: Columns, row: int, now: float) -> Breakdown:
        """Return the terms of the priority of a row's job.

        The breakdown's ``rank`` is exactly the job's value in `ranks`.
        """
        self._extend()
        rows = _some(queue, slice(row, row + 1))
        code = int(rows.code[0])
        factors = {
            name: self._credential_factors(name, now) if name in _BY_CODE else self._job_factors(names, rows, now)
            for name, names in self._active.items()
            if names
        }
        values = {name: self._component_value(name, found) for name, found in factors.items()}
        terms = []
        for component, found in factors.items():
            at = code if component in _BY_CODE else 0
            for name, (factor, weights) in found.items():
                weight = float(weights[0])
                if weight != 0.0:
                    scale, mine = self._component[component], float(factor[at])
                    terms.append(Term(component, name, scale, weight, mine, scale * (weight * mine)))
        components = {name: float(value[code if name in _BY_CODE else 0]) for name, value in values.items()}
        total = self._total(rows, now, now)
        return Breakdown(tuple(terms), components, float(total[0]), float(self._rank(total)[0]))

    def ever_rises(self, code: int) -> bool:
        """Return whether the priority of a job with these credentials may rise with time."""
        names = self._credentials.combinations[code]
        qos = self._settings.own("QOS", names.qos)
        queue_time, xfactor = self._weight["QUEUETIME"], self._weight["XFACTOR"]
        if qos is not None:
            queue_time, xfactor = queue_time + qos.queue_time_weight, xfactor + qos.xfactor_weight
        service = self._component["SERV"] > 0 and max(queue_time, xfactor, self._weight["BYPASS"]) > 0
        return service or bool(self._active["TARG"]) or bool(self._active["FS"] and self._fairshare.active)

    def _rank(self, total: Floats) -> Floats:
        np.trunc(total, out=total)
        return total if self._negative else np.maximum(total, 1.0, out=total)

    def _total(self, rows: Columns, now: float, at: float) -> Floats:
        """Return the priority of each row's job, not truncated: the sum of its components.

        The components CRED and FS are first added to each other. For a whole queue, values that are constant while a
        job waits are computed once.
        """
        generation, code = rows.generation, rows.code
        total = np.zeros(len(code))
        for name, names in self._active.items():
            if not names or name in _BY_CODE:
                continue
            if name == "RES" and generation is not None:
                total += self._resources.of(generation, len(total), lambda fresh: self._resources_value(rows, fresh))
            else:
                total += self._component_value(name, self._job_factors(names, rows, at))
        found = [
            self._component_value(name, self._credential_factors(name, now, at - now))
            for name in _BY_CODE
            if self._active[name]
        ]
        if not found:
            return total
        by_code = found[0] if len(found) == 1 else found[0] + found[1]
        if generation is not None and not self._active["FS"]:
            total += self._by_credentials.of(generation, len(total), lambda fresh: by_code[code[fresh]])
        else:
            total += by_code.take(code)
        return total

    def _resources_value(self, rows: Columns, fresh: slice) -> Floats:
        return self._component_value("RES", self._job_factors(self._active["RES"], _some(rows, fresh), 0.0))

    def _component_value(self, component: str, factors: dict[str, _Factor]) -> Floats:
        terms = [
            factor if len(weight) == 1 and weight[0] == 1.0 else weight * factor for factor, weight in factors.values()
        ]
        total = sum(terms[1:], start=terms[0])
        if self._component_cap[component] != inf:
            total = np.minimum(total, self._component_cap[component])
        scale = self._component[component]
        return total if scale == 1.0 else scale * total

    def _capped(self, name: str, factor: Floats) -> Floats:
        return np.minimum(factor, self._cap[name]) if self._cap[name] != inf else factor

    def _credential_factors(self, component: str, now: float, ahead: float = 0.0) -> dict[str, _Factor]:
        """Return {subcomponent: factors} of the component CRED or FS.

        The factors are one value per combination of credentials.
        """
        found = {}
        for name in self._active[component]:
            kind = KINDS.index(name.removeprefix("FS") if component == "FS" else name)
            if component == "CRED":
                factor = self._table.priorities[: self._known, kind]
            else:
                by_name = self._fairshare.factors(KINDS[kind], now, ahead)
                parts = self._credentials.table[:, kind]
                factor = np.append(by_name, 0.0)[parts]  # -1 (no such credential) is the last entry
            found[name] = (self._capped(name, factor), np.full(1, self._weight[name]))
        return found

    def _job_factors(self, names: list[str], rows: Columns, at: float) -> dict[str, _Factor]:
        table, code = self._table, rows.code
        queue_time = at - rows.since
        np.maximum(queue_time, 0.0, out=queue_time)
        found: dict[str, _Factor] = {}
        for name in names:
            weight: Floats = np.full(1, self._weight[name])
            if name == "QUEUETIME":
                factor = queue_time / 60.0
                weight = weight + table.queue_time_weight[code] if self._qos_weights else weight
            elif name == "XFACTOR":
                factor = self._xfactor(rows, queue_time)
                weight = weight + table.xfactor_weight[code] if self._qos_weights else weight
            elif name == "BYPASS":
                factor = rows.bypass
            elif name == "TARGETQUEUETIME":
                factor = self._nearness(table.queue_time_target, queue_time, code)
            elif name == "TARGETXFACTOR":
                factor = self._nearness(table.xfactor_target, self._xfactor(rows, queue_time), code)
            else:
                factor = self._resource_factor(name, rows)
            found[name] = (self._capped(name, factor), weight)
        return found

    def _xfactor(self, rows: Columns, queue_time: Floats) -> Floats:
        base = np.maximum(rows.walltime, self._min_walltime) if self._min_walltime > 0 else rows.walltime
        return queue_time / base + 1.0

    def _nearness(self, targets: Floats, reached: Floats, code: Ints) -> Floats:
        """Return 1 / (target - reached)^2 for each job; 0 for a job without a target.

        Targets and reached values are queue times or expansion factors. A target that was passed counts as nearly
        reached.
        """
        known = targets[: self._known]
        if len(known) and (known == known[0]).all():  # the usual case
            if known[0] <= 0.0:
                return np.zeros(len(code))
            distance = np.maximum(known[0] - reached, _NEAREST)
            near: Floats = 1.0 / (distance * distance)
            return near
        distance = np.maximum(known[code] - reached, _NEAREST)
        return np.where(known[code] > 0.0, 1.0 / (distance * distance), 0.0)

    def _resource_factor(self, name: str, rows: Columns) -> Floats:
        if name == "WALLTIME":
            return rows.walltime
        size = rows.size.astype(np.float64)
        if name == "NODE":
            return np.ceil(size / self._units_per_node)
        return size * rows.walltime if name == "PS" else size

    def _extend(self) -> None:
        combinations = self._credentials.combinations
        if self._known == len(combinations):
            return
        self._table = _Table(*(longer(column, len(combinations)) for column in self._table))
        table = self._table
        for code in range(self._known, len(combinations)):
            names = combinations[code]
            table.priorities[code] = [self._priority(kind, name) for kind, name in zip(KINDS, names, strict=True)]
            qos = self._settings.own("QOS", names.qos) or Credential()
            table.queue_time_weight[code], table.xfactor_weight[code] = qos.queue_time_weight, qos.xfactor_weight
            table.queue_time_target[code], table.xfactor_target[code] = qos.queue_time_target, qos.xfactor_target
        self._known = len(combinations)

    def _priority(self, kind: str, name: str | None) -> float:
        """Return the PRIORITY that maui.cfg sets for a credential.

        If it is missing or 0, the value of a class comes from ``class_priorities``. If that is missing or 0, too,
        DEFAULT's PRIORITY counts. A QOS without its own PRIORITY has 0.
        """
        if (own := self._settings.own(kind, name)) is not None and own.priority != 0.0:
            return own.priority
        if kind == "CLASS" and (told := self.class_priorities.get(name or "", 0.0)) != 0.0:
            return told
        default = self._settings.default(kind)
        return 0.0 if default is None or kind == "QOS" else default.priority
