"""Failure plans: several failure models for one machine.

Each model acts on a pool, on nodes or on failure domains.
"""

from dataclasses import dataclass

import numpy as np

from pipistrelle.platforms.description import Platform
from pipistrelle.platforms.failures.domains import Domain, expand
from pipistrelle.platforms.failures.models import FailureModel, Stream
from pipistrelle.platforms.failures.outage import Floats, Outage, Outages


@dataclass(frozen=True, slots=True)
class Source:
    """A failure model, and the nodes or failure domains whose failures it describes."""

    model: FailureModel
    nodes: range
    domains: tuple[Domain, ...] = ()

    @property
    def acting(self) -> range:
        """The numbers of the nodes that fail, or the indices of the domains that fail."""
        return range(len(self.domains)) if self.domains else self.nodes

    @property
    def together(self) -> list[list[int]]:
        """Lists of the numbers of nodes that fail together.

        There is one list per domain. Without domains, there is one list of all nodes.
        """
        return [list(domain.nodes) for domain in self.domains] or [list(self.nodes)]


@dataclass(frozen=True, slots=True)
class FailurePlan:
    """Failure models that act on one machine at the same time.

    Each model has its own random numbers, which depend on its position in `sources`. A failure that hits a node already
    down is dropped. If two models hit a node at once, the earlier source counts.
    """

    sources: tuple[Source, ...]

    def stream(self, seed: int) -> Stream:
        """Return the stream of all outages; errors as from `FailureModel.stream`."""
        return _PlanStream(self.sources, seed)

    def outages(self, seed: int, horizon: float) -> Outages:
        """Return the outages in [0, `horizon`) (s); errors as in `FailureModel.outages`."""
        for source in self.sources:
            source.model.check(len(source.acting), horizon)
        return self.stream(seed).extend(horizon)

    def rates(self, nodes: int) -> Floats:
        """Return each node's average failure rate (1/s) while it is up, shape (nodes,).

        A domain's rate counts for each of its nodes, although they fail together.
        """
        rates = np.zeros(nodes)
        for source in self.sources:
            each = 1.0 / (source.model.uptime.mean * (len(source.acting) if source.model.scope == "system" else 1))
            for places in source.together:
                rates[places] += each
        return rates

    def hazard(self, nodes: int, count: int, length: float) -> float:
        """Return a lower bound of -log P(``count`` nodes all stay up for ``length`` s).

        The bound assumes the ``count`` most reliable nodes. It ignores failure domains, whose nodes fail together.
        """
        hazards = np.zeros(nodes)
        for source in self.sources:
            if not source.domains:
                hazards[list(source.nodes)] += source.model.hazard(len(source.nodes), length)
        return float(np.sort(hazards)[:count].sum())

    def units_up(self, platform: Platform) -> tuple[float, float]:
        """Return the long-run mean and standard deviation of the number of units up.

        Under each source alone, a node is up for a share 1 / (1 + rate x mean repair) of the time; the shares of
        several sources multiply. For the deviation, the nodes of one domain are up or down together, and all other
        nodes are independent.
        """
        shares = np.ones(platform.nodes)
        together = np.ones(platform.nodes)
        for source in self.sources:
            share = source.model.availability(len(source.acting))
            for places in source.together:
                shares[places] *= share
                if source.domains:
                    together[places] = np.maximum(together[places], len(places))
        units = np.repeat(
            [float(pool.units_per_node) for pool in platform.pools], [pool.nodes for pool in platform.pools]
        )
        spread = float(np.sqrt((units**2 * together * shares * (1.0 - shares)).sum()))
        return float((units * shares).sum()), spread


class _PlanStream:
    def __init__(self, sources: tuple[Source, ...], seed: int) -> None:
        self._parts = [
            (source.model.stream(source.acting, seed, (number,)), source.domains)
            for number, source in enumerate(sources)
        ]
        #: {node: end of its last outage (s)}
        self._up: dict[int, float] = {}

    def extend(self, horizon: float) -> Outages:
        made = [
            expand(stream.extend(horizon), domains) if domains else stream.extend(horizon)
            for stream, domains in self._parts
        ]
        if len(made) == 1 and not self._parts[0][1]:
            return made[0]
        rows: list[tuple[float, int, int, Outage]] = [
            (row.down, number, row.node, row) for number, part in enumerate(made) for row in part
        ]
        rows.sort(key=lambda entry: entry[:3])
        keep = []
        for down, _, node, row in rows:
            if down >= self._up.get(node, -np.inf):
                self._up[node] = row.up
                keep.append(row)
        return Outages.of(keep)
