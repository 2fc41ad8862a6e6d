"""Estimate the load of network links, assuming the nodes of a job send messages."""

from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.platforms.topology.links import LinkLines, LinkLoads
from pipistrelle.reports.placement.report import SIZES
from pipistrelle.reports.placement.run import Ints, PlacedRun

#: communication patterns between the nodes of a job
TRAFFICS: Final = ("all_to_all", "neighbours")


class JobTraffic:
    """The messages that a run's jobs would send.

    Each node sends 1 unit of data in total.

    Args:
        run: machine, jobs and nodes.
        order: all nodes in an order; a job's ranks are assigned to its nodes in this order.

    Raises:
        PlatformError: if the network's links are unknown.
    """

    def __init__(self, run: PlacedRun, order: Ints) -> None:
        self.links = LinkLoads(run.machine.topology)
        self._run = run
        self._position = np.argsort(order)

    def lines(self, job: int, traffic: str) -> list[LinkLines]:
        """Return the link loads of one job.

        Args:
            job: the job's index in the run.
            traffic: ``all_to_all``, or ``neighbours`` for messages between neighbours in a 3-D grid of the job's ranks.
        """
        nodes = self._run.nodes[job]
        count = len(nodes)
        if traffic == "all_to_all":
            return [LinkLines(first, loads / max(count - 1, 1)) for first, loads in self.links.all_to_all(nodes)]
        ranked = nodes[np.argsort(self._position[nodes])]
        sources, targets = _neighbours(count)
        sizes = 1.0 / np.bincount(sources, minlength=count)[sources]
        return self.links.of_messages(ranked[sources], ranked[targets], sizes)


def job_links(run: PlacedRun, order: Ints) -> dict[str, Any]:
    """Return the link loads of each job, in arrays or lists with one value per job.

    For each pattern KIND, ``KIND_load`` is the highest load of a link, relative to what one node sends. ``KIND_rate``
    is how much each node can send (bytes/s) until a link is full, if no other job sends.
    """
    traffic = JobTraffic(run, order)
    told: dict[str, Any] = {}
    known: dict[bytes, tuple[float, float | None]] = {}
    for kind in TRAFFICS:
        found = []
        for job, nodes in enumerate(run.nodes):
            same = kind.encode() + nodes.tobytes()  # small jobs often have the same nodes as an earlier job
            if same not in known:
                known[same] = traffic.links.busiest(traffic.lines(job, kind))
            found.append(known[same])
        told[f"{kind}_load"] = np.array([load for load, _ in found], dtype=np.float64)
        told[f"{kind}_rate"] = [rate for _, rate in found]
    return told


def link_report(run: PlacedRun, order: Ints, jobs: dict[str, Any], time: float) -> dict[str, Any]:
    """Return link loads by job size.

    Also return the link loads of all jobs together at ``time`` (s).

    Args:
        jobs: columns from `job_links`.
    """
    traffic = JobTraffic(run, order)
    running = np.flatnonzero((run.start <= time) & (run.end > time)).tolist()
    share = run.sizes / len(run.machine.nodes)
    told: dict[str, Any] = {"time": time, "jobs": len(running), "traffics": []}
    for kind in TRAFFICS:
        sizes = []
        for name, (low, high) in SIZES.items():
            here = (share > low) & (share <= high)
            rates = [rate for rate, one in zip(jobs[f"{kind}_rate"], here.tolist(), strict=True) if one and rate]
            loads = jobs[f"{kind}_load"][here]
            sizes.append(
                {
                    "sizes": name,
                    "jobs": int(here.sum()),
                    "mean_load": float(loads.mean()) if loads.size else None,
                    "mean_rate": float(np.mean(rates)) if rates else None,
                    "least_rate": min(rates, default=None),
                }
            )
        told["traffics"].append({"traffic": kind, "sizes": sizes, **_together(traffic, running, kind)})
    return told


def _together(traffic: JobTraffic, running: list[int], kind: str) -> dict[str, Any]:
    """Return figures of summed link loads.

    They are summed over ``running``, the jobs that run at the same time.
    """
    links = traffic.links
    total = [np.zeros((2, *links.shape)) for _ in links.shape]
    shared = [np.zeros((2, *links.shape), dtype=np.intp) for _ in links.shape]
    for job in running:
        for axis, load in enumerate(links.full(traffic.lines(job, kind))):
            total[axis] += load
            shared[axis] += load > 0
    dimensions, rates = [], []
    for axis, (load, jobs, count) in enumerate(zip(total, shared, links.counts, strict=True)):
        at = np.unravel_index(int(load.argmax()), load.shape)
        rate = None
        if links.bandwidths is not None and load.any():
            peak = np.moveaxis(load, axis + 1, -1).max(axis=tuple(range(load.ndim - 1)))
            rate = float((links.bandwidths[axis][peak > 0] / peak[peak > 0]).min())
            rates.append(rate)
        dimensions.append(
            {
                "dimension": axis,
                "links": count,
                "used": int(np.count_nonzero(load)),
                "shared": int(np.count_nonzero(jobs > 1)),
                "mean_load": float(load.sum()) / count if count else None,
                "busiest_load": float(load.max()),
                "busiest_link": {"router": [int(place) for place in at[1:]], "back": bool(at[0])},
                "jobs_on_it": int(jobs[at]),
                "rate": rate,
            }
        )
    return {
        "dimensions": dimensions,
        "busiest_load": max(float(load.max()) for load in total),
        "rate": min(rates, default=None),
    }


@lru_cache(maxsize=64)
def _neighbours(count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return senders and receivers of messages between neighbours in a 3-D grid.

    Each array has the shape (messages,). The grid is as close to a cube as possible, longest side first, not periodic.
    """
    ranks = np.arange(count, dtype=np.intp).reshape(_grid(count))
    pairs = []
    for axis in range(ranks.ndim):
        lower = np.take(ranks, range(ranks.shape[axis] - 1), axis=axis).ravel()
        upper = np.take(ranks, range(1, ranks.shape[axis]), axis=axis).ravel()
        pairs += [(lower, upper), (upper, lower)]
    return np.concatenate([one for one, _ in pairs]), np.concatenate([one for _, one in pairs])


def _grid(count: int) -> tuple[int, int, int]:
    """Return the sides of a 3-D grid with ``count`` nodes, descending.

    They are as equal as possible.
    """
    best = (count, 1, 1)
    for low in range(1, round(count ** (1 / 3)) + 1):
        if count % low:
            continue
        rest = count // low
        for middle in range(low, int(rest**0.5) + 1):
            if rest % middle == 0:
                best = min(best, (rest // middle, middle, low), key=lambda sides: (sum(sides), sides))
    return best
