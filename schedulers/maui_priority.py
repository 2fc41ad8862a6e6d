"""Priorities as Maui computes them: component weight x subcomponent weight x factor, and what each term contributes.

Source: admin manual of Maui, 5.1.2, and MJobGetStartPriority of Maui 3.2; differences are in docs/maui.md.
"""

from math import inf
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from pipistrelle.schedulers.maui_credentials import Credentials
from pipistrelle.schedulers.maui_fairshare import Fairshare
from pipistrelle.schedulers.maui_parameters import COMPONENTS, SUBCOMPONENTS
from pipistrelle.schedulers.maui_queue import Floats, Ints
from pipistrelle.schedulers.maui_settings import KINDS, Credential, MauiSettings, Names

#: nearer than this to a target counts as this
_NEAREST: Final = 0.0001


#: components whose factors depend on the credentials alone
_BY_CODE: Final = ("CRED", "FS")
#: (factors, weights)
_Factor = tuple[Floats, Floats]


class Term(NamedTuple):
    """One term of a job's priority: ``value`` is component weight x weight x factor, before the component's cap."""

    component: str
    subcomponent: str
    component_weight: float
    weight: float
    factor: float
    value: float


class Breakdown(NamedTuple):
    """Why a job has its priority: the terms whose weights are not 0, the components' values, their sum.

    ``rank`` is what jobs are ordered by: the sum cut to a whole number, at least 1 unless ENABLENEGJOBPRIORITY.
    """

    terms: tuple[Term, ...]
    components: dict[str, float]
    total: float
    rank: float

    def values(self) -> dict[str, float]:
        """Return the rank as ``priority``, and the terms' values, as ``SERV.QUEUETIME``."""
        return {"priority": self.rank} | {f"{term.component}.{term.subcomponent}": term.value for term in self.terms}


class Columns(Protocol):
    """Waiting jobs as columns; `MauiQueue` is such a thing, and says what they are."""

    @property
    def size(self) -> Ints:
        """Units."""

    @property
    def walltime(self) -> Floats:
        """Seconds."""

    @property
    def since(self) -> Floats:
        """When queue time begins to count, seconds."""

    @property
    def code(self) -> Ints:
        """Numbers of combinations of credentials."""

    @property
    def bypass(self) -> Floats:
        """How often a job was passed by backfilling."""


class _Rows(NamedTuple):
    """What the priority of some jobs depends on, a column each."""

    size: Ints
    walltime: Floats
    queue_time: Floats
    code: Ints
    bypass: Floats


class _Table(NamedTuple):
    """What depends on the combination of credentials alone, a row a combination."""

    priorities: Floats  # (combinations, kinds)
    queue_time_weight: Floats
    xfactor_weight: Floats
    queue_time_target: Floats
    xfactor_target: Floats


class Priorities:
    """The priorities of waiting jobs.

    Parameters
    ----------
    settings
        the configuration.
    credentials
        the numbers of the combinations of credentials.
    fairshare
        the usage so far.
    units_per_node
        a job of n units asks for n / units_per_node nodes, rounded up.
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
        self._parts: NDArray[np.int64] = np.zeros((0, len(KINDS)), dtype=np.int64)
        #: component -> its subcomponents that can contribute
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
        """Whether it matters how often a job was passed by backfilling."""
        return "BYPASS" in self._active["SERV"] and self._weight["BYPASS"] != 0.0

    def ranks(self, queue: Columns, now: float) -> Floats:
        """Return what the waiting jobs are ordered by, highest first, ties in the order of submission.

        One value a row, any value in an empty row: the priority cut to a whole number, as Maui stores it.
        """
        self._extend()
        rows = self._rows(queue, now)
        values = {name: self._component_value(name, found) for name, found in self._factors(rows, now).items()}
        return self._rank(self._total(values, rows.code))

    def breakdown(self, queue: Columns, row: int, now: float) -> Breakdown:
        """Return the terms of the priority of the job in a row; bit by bit what `ranks` is made of."""
        self._extend()
        one = slice(row, row + 1)
        every = self._rows(queue, now)
        rows = _Rows(every.size[one], every.walltime[one], every.queue_time[one], every.code[one], every.bypass[one])
        code = int(rows.code[0])
        factors = self._factors(rows, now)
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
        total = self._total(values, rows.code)
        return Breakdown(tuple(terms), components, float(total[0]), float(self._rank(total)[0]))

    def ever_rises(self, names: Names) -> bool:
        """Tell whether a job's priority may rise while it waits."""
        qos = self._settings.own("QOS", names.qos)
        queue_time, xfactor = self._weight["QUEUETIME"], self._weight["XFACTOR"]
        if qos is not None:
            queue_time, xfactor = queue_time + qos.queue_time_weight, xfactor + qos.xfactor_weight
        service = self._component["SERV"] > 0 and max(queue_time, xfactor, self._weight["BYPASS"]) > 0
        return service or bool(self._active["TARG"]) or bool(self._active["FS"] and self._fairshare.active)

    def _rank(self, total: Floats) -> Floats:
        ranks = np.trunc(total)
        return ranks if self._negative else np.maximum(ranks, 1.0)

    @staticmethod
    def _rows(queue: Columns, now: float) -> _Rows:
        return _Rows(queue.size, queue.walltime, np.maximum(now - queue.since, 0.0), queue.code, queue.bypass)

    def _factors(self, rows: _Rows, now: float) -> dict[str, dict[str, _Factor]]:
        """Return {component: {subcomponent: (factors, weights)}}; of CRED and FS a factor a combination, else a row."""
        found = {}
        for component, names in self._active.items():
            if names and component in _BY_CODE:
                found[component] = self._credential_factors(component, now)
            elif names:
                found[component] = self._job_factors(names, rows)
        return found

    @staticmethod
    def _total(values: dict[str, Floats], code: Ints) -> Floats:
        """Return the sums of the components' values: those of the credentials first, they are added as one."""
        total: Floats | None = None
        by_code: Floats | None = None
        for name, value in values.items():
            if name in _BY_CODE:
                by_code = value if by_code is None else by_code + value
            else:
                total = value if total is None else total + value
        if by_code is not None:
            total = by_code[code] if total is None else total + by_code[code]
        return np.zeros(len(code)) if total is None else total

    def _component_value(self, component: str, factors: dict[str, _Factor]) -> Floats:
        total: Floats | None = None
        for factor, weight in factors.values():
            term = weight * factor
            total = term if total is None else total + term
        if total is None:
            raise AssertionError("a component without subcomponents")
        if self._component_cap[component] != inf:
            total = np.minimum(total, self._component_cap[component])
        return self._component[component] * total

    def _capped(self, name: str, factor: Floats) -> Floats:
        return np.minimum(factor, self._cap[name]) if self._cap[name] != inf else factor

    def _credential_factors(self, component: str, now: float) -> dict[str, _Factor]:
        """Return the factors of CRED or FS, a row a combination of credentials."""
        found = {}
        for name in self._active[component]:
            kind = KINDS.index(name.removeprefix("FS") if component == "FS" else name)
            if component == "CRED":
                factor = self._table.priorities[:, kind]
            else:
                by_name = self._fairshare.factors(KINDS[kind], now)
                parts = self._parts[:, kind]
                factor = np.append(by_name, 0.0)[parts]  # -1, no such credential, is the last
            found[name] = (self._capped(name, factor), np.full(1, self._weight[name]))
        return found

    def _job_factors(self, names: list[str], rows: _Rows) -> dict[str, _Factor]:
        table, code = self._table, rows.code
        found: dict[str, _Factor] = {}
        xfactor = None
        if "XFACTOR" in names or "TARGETXFACTOR" in names:
            base = np.maximum(rows.walltime, self._min_walltime) if self._min_walltime > 0 else rows.walltime
            xfactor = 1.0 + rows.queue_time / base
        for name in names:
            weight: Floats = np.full(1, self._weight[name])
            if name == "QUEUETIME":
                factor = rows.queue_time / 60.0
                weight = weight + table.queue_time_weight[code] if self._qos_weights else weight
            elif name == "XFACTOR" and xfactor is not None:
                factor = xfactor
                weight = weight + table.xfactor_weight[code] if self._qos_weights else weight
            elif name == "BYPASS":
                factor = rows.bypass
            elif name == "TARGETQUEUETIME":
                target = table.queue_time_target[code]
                distance = np.maximum(target - rows.queue_time, _NEAREST)
                factor = np.where(target > 0.0, distance**-2.0, 0.0)
            elif name == "TARGETXFACTOR" and xfactor is not None:
                target = table.xfactor_target[code]
                factor = np.where(target > 0.0, np.maximum(target - xfactor, _NEAREST) ** -2.0, 0.0)
            else:
                factor = self._resource_factor(name, rows)
            found[name] = (self._capped(name, factor), weight)
        return found

    def _resource_factor(self, name: str, rows: _Rows) -> Floats:
        if name == "WALLTIME":
            return rows.walltime
        size = rows.size.astype(np.float64)
        if name == "NODE":
            return np.ceil(size / self._units_per_node)
        return size * rows.walltime if name == "PS" else size

    def _extend(self) -> None:
        """Let the table have a row for each combination of credentials."""
        known = len(self._table.queue_time_weight)
        fresh = self._credentials.combinations[known:]
        if not fresh:
            return
        columns: list[list[float]] = [[], [], [], []]
        priorities = []
        for names in fresh:
            priorities.append([self._priority(kind, name) for kind, name in zip(KINDS, names, strict=True)])
            qos = self._settings.own("QOS", names.qos) or Credential()
            values = (qos.queue_time_weight, qos.xfactor_weight, qos.queue_time_target, qos.xfactor_target)
            for column, value in zip(columns, values, strict=True):
                column.append(value)
        table = self._table
        self._table = _Table(
            np.concatenate([table.priorities, np.array(priorities)]),
            *(np.append(old, new) for old, new in zip(table[1:], columns, strict=True)),
        )
        self._parts = np.array(self._credentials.parts, dtype=np.int64)

    def _priority(self, kind: str, name: str | None) -> float:
        """Return the PRIORITY of a credential; DEFAULT's, if it has none, except for a QOS."""
        own = self._settings.own(kind, name)
        if own is not None and own.priority != 0.0:
            return own.priority
        default = self._settings.default(kind)
        return 0.0 if default is None or kind == "QOS" else default.priority
