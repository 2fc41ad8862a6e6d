"""PBS's fairshare: the decaying usage of entities, compared with their shares."""

from collections.abc import Mapping
from math import inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.protocol.base.state import Kept

Floats = NDArray[np.float64]

#: IT4Innovations' MAX_FAIRSHARE, equation 2 of Zitzlsberger, Jansik and Martinovic (2018)
MOST: Final = 1e6


class FairshareTree(Kept):
    """Usage and shares of the entities (such as users) that are charged for jobs.

    The tree has two levels. Entities with their own shares are children of the root. All other entities are in the
    group "unknown", which is also a child of the root, and divide its shares evenly. Usage is units times seconds of
    run time, including running jobs until now. At each multiple of ``decay_time`` all usage is multiplied by
    ``decay_factor``: with 0.5 the interval is a half-life.

    Args:
        shares: {entity: shares}, at least 0.
        unknown_shares: shares of the group "unknown".
        decay_time: seconds between two decays, above 0; inf: no decay.
        decay_factor: from 0 to 1.
    """

    _kept = ("_code", "_usage", "_rate", "_now", "_decays")

    def __init__(
        self,
        shares: Mapping[str, float] | None = None,
        *,
        unknown_shares: float = 10.0,
        decay_time: float = 86400.0,
        decay_factor: float = 0.5,
    ) -> None:
        self._shares = dict(shares or {})
        self._unknown_shares = unknown_shares
        self._decay_time = decay_time
        self._factor = decay_factor
        self._code: dict[str, int] = {name: code for code, name in enumerate(self._shares)}
        self._usage = np.zeros(len(self._code))
        self._rate = np.zeros(len(self._code))
        self._now = 0.0
        self._decays = 0

    def code(self, name: str) -> int:
        """Return the number of an entity; add the entity to the tree if it is new."""
        code = self._code.get(name)
        if code is None:
            code = self._code[name] = len(self._code)
            self._usage = np.append(self._usage, 0.0)
            self._rate = np.append(self._rate, 0.0)
        return code

    def started(self, code: int, units: int, now: float) -> None:
        """Start charging an entity for ``units`` at ``now`` (s)."""
        self.advance(now)
        self._rate[code] += units

    def ended(self, code: int, units: int, now: float) -> None:
        """Stop charging an entity for ``units`` at ``now`` (s)."""
        self.advance(now)
        self._rate[code] -= units

    def advance(self, now: float) -> None:
        """Update usage, with its decays, to ``now`` (s).

        ``now`` must not be before the last update.
        """
        step = self._decay_time
        decays = self._decays if step == inf else max(int(now // step), self._decays)
        if decays > self._decays:
            self._usage += self._rate * (max((self._decays + 1) * step - self._now, 0.0))
            factor, more = self._factor, decays - self._decays - 1
            fading = factor**more
            # The first decay uses u*f; each further interval adds rate*step and decays.
            whole = more if factor == 1.0 else factor * (1.0 - fading) / (1.0 - factor)
            self._usage = self._usage * factor * fading + self._rate * step * whole
            self._decays = decays
            self._now = decays * step
        self._usage += self._rate * (now - self._now)
        self._now = now

    def usage(self, name: str) -> float:
        """Return an entity's usage in unit-seconds; 0 for an unknown entity."""
        code = self._code.get(name)
        return 0.0 if code is None else float(self._usage[code])

    def _part(self) -> Floats:
        total = self._usage.sum()
        return self._usage / total if total > 0.0 else np.zeros(len(self._usage))

    def fairshare(self) -> Floats:
        """Return 10^6 (1 - u/U) for each entity.

        Here u is the entity's usage and U the total usage. Without any usage the value is 10^6.
        """
        return MOST * (1.0 - self._part())

    def perc(self) -> Floats:
        """Return each entity's share as a fraction of the machine."""
        listed = len(self._shares)
        shares = np.array([*self._shares.values()], dtype=np.float64)
        others = len(self._usage) - listed
        if not listed:
            return np.full(others, 1.0 / others if others else 0.0)
        total = shares.sum() + self._unknown_shares
        if not total > 0.0:
            return np.zeros(len(self._usage))
        each = self._unknown_shares / total / others if others else 0.0
        return np.concatenate([shares / total, np.full(others, each)])

    def tree_usage(self) -> Floats:
        """Return, for each entity, the fraction of all usage that counts for it.

        An entity with its own shares has its own fraction p of all usage. A member of the group "unknown" has p + (g -
        p)/n, where the group has n members and its fraction of all usage is g.
        """
        part = self._part()
        listed = len(self._shares)
        group = part[listed:]
        if len(group) and listed:
            part[listed:] = group + (group.sum() - group) / len(group)
        return part

    def factor(self) -> Floats:
        """Return 2^-(tree usage / share) for each entity.

        The value is 1 without usage, and 0 without shares.
        """
        perc = self.perc()
        return np.where(perc > 0.0, np.exp2(-self.tree_usage() / np.where(perc > 0.0, perc, 1.0)), 0.0)
