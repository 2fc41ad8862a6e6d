"""Maui's fairshare: compares the usage of credentials with their targets.

Usage is counted in time windows; older windows count less.
"""

from collections.abc import Sequence
from math import floor, inf
from typing import Any, NamedTuple

import numpy as np

from pipistrelle.protocol.base.state import Kept
from pipistrelle.schedulers.maui.config.settings import DEFAULT, KINDS, Credential, MauiSettings, TargetMode
from pipistrelle.schedulers.maui.priority.credentials import Credentials
from pipistrelle.schedulers.maui.priority.waiting import Bools, longer
from pipistrelle.schedulers.policy.order import Floats

#: initial number of entries for names
_ROOM = 16


class _Targets(NamedTuple):
    """The fairshare targets, with their types, of all credentials of one kind."""

    values: Floats
    floors: Bools
    ceilings: Bools
    #: targets that are caps in unit x s, and in percent
    absolute_caps: Bools
    caps: Bools
    #: names without influence on priorities
    idle: Bools

    @classmethod
    def of(cls, credentials: Sequence[Credential]) -> "_Targets":
        values = np.array([credential.target for credential in credentials], dtype=np.float64)

        def having(mode: TargetMode) -> Bools:
            return np.array([credential.mode is mode for credential in credentials], dtype=np.bool_)

        absolute, percent = having(TargetMode.ABSOLUTE_CAP), having(TargetMode.CAP)
        some, idle = values > 0.0, absolute | percent | (values == 0.0)
        return cls(values, having(TargetMode.FLOOR), having(TargetMode.CEILING), absolute & some, percent & some, idle)


class _Counters(Kept):
    """Usage (unit x s) of all credentials of one kind, such as users.

    ``usage`` has the shape (windows, names); the newest window comes first.
    """

    _kept = ("usage", "rates", "older")

    def __init__(self, depth: int) -> None:
        self.usage: Floats = np.zeros((depth, _ROOM))
        self.rates: Floats = np.zeros(_ROOM)
        #: decayed usage of the older windows
        self.older: Floats = np.zeros(_ROOM)
        self.targets = _Targets.of(())

    def grow(self, names: int) -> None:
        if names > len(self.rates):
            self.rates, self.older = longer(self.rates, names), longer(self.older, names)
            self.usage = np.pad(self.usage, ((0, 0), (0, len(self.rates) - self.usage.shape[1])))


class Fairshare(Kept):
    """The usage of all credentials, including that of running jobs.

    Windows have length FSINTERVAL and begin at its multiples. The usage of a window is the integral of the units in
    use. Effective usage is the sum of FSDECAY^k times the usage of the k-th window before the current one, for k from 0
    to FSDEPTH - 1 (source: MFSCalcFactor and MFSUpdateData of Maui 3.2; admin manual, 6.3).

    Args:
        settings: the configuration; with FSPOLICY NONE nothing is counted.
        credentials: the names of credentials and their numbers.
    """

    _kept = ("_total", "_total_rate", "_total_older", "_now", "_window")

    def __init__(self, settings: MauiSettings, credentials: Credentials) -> None:
        policy = settings.text("FSPOLICY")
        self.active = policy != "NONE"
        #: whether the distance from a target is relative to it (a * after FSPOLICY)
        self._relative = policy.endswith("*")
        self._settings = settings
        self._credentials = credentials
        self.interval = settings.number("FSINTERVAL")
        depth = int(settings.number("FSDEPTH"))
        decay = settings.number("FSDECAY")
        self._decays: Floats = np.array([decay**k for k in range(1, depth)])
        self._counters = [_Counters(depth) for _ in KINDS]
        self._total: Floats = np.zeros(depth)
        self._total_older = 0.0
        self._total_rate = 0
        self._now = -inf
        self._window = -inf

    def state(self) -> dict[str, Any]:
        """Return the usage as plain values, by kind of credential and number of the name."""
        return {**super().state(), "kinds": [counters.state() for counters in self._counters]}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a saved state; the credentials must already be restored."""
        super().restore(state)
        for counters, known in zip(self._counters, state["kinds"], strict=True):
            counters.restore(known)

    @property
    def next_window(self) -> float:
        """Return the start of the next fairshare window (s); inf if nothing is counted."""
        return (self._window + 1) * self.interval if self.active and self._window != -inf else inf

    def started(self, now: float, code: int, units: int) -> None:
        """Start counting the units of a job at ``now`` (s).

        They count for the combination of credentials with the number ``code``.
        """
        self._change(now, code, units)

    def ended(self, now: float, code: int, units: int) -> None:
        """Stop counting the units of a job at ``now`` (s)."""
        self._change(now, code, -units)

    def _change(self, now: float, code: int, units: int) -> None:
        if not self.active:
            return
        self.advance(now)
        self._total_rate += units
        for counters, number, names in zip(
            self._counters, self._credentials.parts[code], self._credentials.names, strict=True
        ):
            counters.grow(len(names))
            if number >= 0:
                counters.rates[number] += units

    def advance(self, now: float) -> None:
        """Update the usage to ``now`` (s), window by window."""
        if not self.active or now <= self._now:
            return
        window = floor(now / self.interval)
        if self._window == -inf or (not self._total_rate and window - self._window > len(self._total)):
            # No window that still counts has any usage.
            for _ in self._total:
                self._turn()
            self._window, self._now = window, now
            return
        while (boundary := self.next_window) <= now:
            self._count(boundary)
            self._turn()
            self._window += 1
        self._count(now)

    def _count(self, until: float) -> None:
        elapsed = max(until - self._now, 0.0)
        self._total[0] += self._total_rate * elapsed
        for counters in self._counters:
            counters.usage[0] += counters.rates * elapsed
        self._now = until

    def _turn(self) -> None:
        self._total = np.concatenate([[0.0], self._total[:-1]])
        self._total_older = float(self._total[1:] @ self._decays)
        for counters in self._counters:
            counters.usage = np.concatenate([np.zeros_like(counters.usage[:1]), counters.usage[:-1]])
            counters.older = self._decays @ counters.usage[1:]

    def usage(self, kind: str, name: str, now: float) -> float:
        """Return the effective usage (unit x s) of a credential; 0 if unknown."""
        self.advance(now)
        index = KINDS.index(kind)
        if name not in self._credentials.names[index]:
            return 0.0
        counters = self._counters[index]
        counters.grow(len(self._credentials.names[index]))
        number = self._credentials.names[index].index(name)
        return float(counters.usage[0, number] + counters.older[number])

    def total(self, now: float) -> float:
        """Return the effective usage (unit x s) of all jobs together."""
        self.advance(now)
        return float(self._total[0]) + self._total_older

    def factors(self, kind: str, now: float, ahead: float = 0.0) -> Floats:
        """Return each name's fairshare factor: how far its usage (%) is from its target.

        The factor is 0 for a name without a target, and for all names before any use (source: MJobGetStartPriority,
        Maui 3.2).

        Args:
            ahead: seconds to look ahead, assuming that no job starts or ends and no window begins.
        """
        index = KINDS.index(kind)
        names = self._credentials.names[index]
        total = self.total(now) + self._total_rate * ahead
        if not self.active or not total > 0.0:
            return np.zeros(len(names))
        counters = self._ready(index)
        usage = counters.usage[0, : len(names)] + counters.older[: len(names)]
        if ahead:
            usage += counters.rates[: len(names)] * ahead
        targets = counters.targets
        share = usage / total * 100.0
        with np.errstate(divide="ignore", invalid="ignore"):
            factors: Floats = 1.0 - share / targets.values if self._relative else targets.values - share
        factors[targets.floors] = np.maximum(factors[targets.floors], 0.0)
        factors[targets.ceilings] = np.minimum(factors[targets.ceilings], 0.0)
        factors[targets.idle] = 0.0
        return factors

    def _ready(self, index: int) -> _Counters:
        """Return the usage of the kind of credential with this index, such as users.

        Its arrays are first extended so that each name has an entry and a target.
        """
        counters = self._counters[index]
        names = self._credentials.names[index]
        counters.grow(len(names))
        if len(counters.targets.values) < len(names):
            counters.targets = _Targets.of([self._target(KINDS[index], name)[1] for name in names])
        return counters

    def _target(self, kind: str, name: str) -> tuple[str, Credential]:
        """Return (owner, attributes) that set the fairshare target of a credential.

        The owner is the credential's own name, or DEFAULT if it has no target of its own.
        """
        own = self._settings.own(kind, name)
        if own is not None and own.target:
            return name, own
        return DEFAULT, self._settings.default(kind) or Credential()

    @property
    def has_caps(self) -> bool:
        """Return whether any target is a cap (% or ^), so that jobs can be held back."""
        return self.active and any(
            credential.target > 0.0 and credential.mode in (TargetMode.CAP, TargetMode.ABSOLUTE_CAP)
            for names in self._settings.credentials.values()
            for credential in names.values()
        )

    def rooms(self, now: float) -> list[tuple[Floats, Floats]]:
        """Return the usage that caps still allow a new job, and how fast this grows.

        A job's full walltime counts (source: MFSCheckCap, Maui 3.2). The growth is valid until a job starts or ends or
        the next window begins.

        Returns:
            For each kind of credential the usage (unit x s) and its growth (units). Each array has a value per name
            (inf without a cap), and a last value for jobs without a name of this kind.
        """
        total = self.total(now)
        found = []
        for index, names in enumerate(self._credentials.names):
            counters = self._ready(index)
            count = len(names)
            usage = counters.usage[0, :count] + counters.older[:count]
            rates = counters.rates[:count]
            room, growth = np.full(count + 1, inf), np.zeros(count + 1)
            absolute, percent, targets = counters.targets.absolute_caps, counters.targets.caps, counters.targets.values
            room[:count][absolute] = targets[absolute] - usage[absolute]
            growth[:count][absolute] = -rates[absolute]
            if total > 0.0:
                parts = targets[percent] / 100.0
                room[:count][percent] = parts * total - usage[percent]
                growth[:count][percent] = parts * self._total_rate - rates[percent]
            found.append((room, growth))
        return found

    def room(self, code: int, now: float) -> tuple[float, str]:
        """Return (usage that caps still allow a new job, name of the tightest cap).

        The usage is in unit x s; it is inf without caps. ``code`` is the number of the job's combination of
        credentials.
        """
        numbers, names = self._credentials.parts[code], self._credentials.combinations[code]
        rooms = [float(room[number]) for (room, _), number in zip(self.rooms(now), numbers, strict=True)]
        least = min(range(len(rooms)), key=rooms.__getitem__)
        kind, name = KINDS[least], names[least] or DEFAULT
        holder, credential = self._target(kind, name)
        whom = f" ({kind.lower()} {name})" if holder != name else ""
        return rooms[least], f"{kind}CFG[{holder}] FSTARGET={credential.target:g}{credential.mode.value}{whom}"
