"""Run times drawn from the shares of their time limits that past jobs used."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.traces.workload import Workload

#: fewest past jobs for which a user or a partition has its own ratios
LEAST: Final = 5
_KINDS: Final = ("user", "partition", "all")


class Ratios:
    """How much of their time limits past jobs used.

    The ratios are grouped by user and by partition, and kept for all jobs together.

    Args:
        history: ended jobs; jobs that never ran, or had no limit, are left out.
    """

    def __init__(self, history: Workload) -> None:
        ran = (history.runtime > 0) & np.isfinite(history.walltime) & (history.walltime > 0)
        rows = np.flatnonzero(ran)
        ratios = np.minimum(history.runtime[rows] / history.walltime[rows], 1.0)
        self.count = len(rows)
        self.left_out = len(history) - len(rows)
        self._of: dict[tuple[str, str], NDArray[np.float64]] = {("all", ""): np.sort(ratios)}
        for kind, label in (("user", "user"), ("partition", "queue")):
            texts = history.labels.get(label)
            groups: dict[str, list[int]] = {}
            for at, row in enumerate(rows.tolist() if texts is not None else []):
                groups.setdefault(texts[row], []).append(at)  # type: ignore[index]
            for name, members in groups.items():
                if name and len(members) >= LEAST:
                    self._of[kind, name] = np.sort(ratios[members])
        #: {kind of group: how often its ratios were used}
        self.asked: Counter[str] = Counter()

    def of(self, user: str, partitions: Sequence[str]) -> NDArray[np.float64]:
        """Return the ratios of used time to limit of similar past jobs, sorted.

        These are the user's jobs. If there are too few, they are the jobs of the first of these partitions that has
        enough, or else all jobs.
        """
        for kind, names in (("user", [user]), ("partition", partitions), ("all", [""])):
            for name in names:
                found = self._of.get((kind, name))
                if found is not None:
                    self.asked[kind] += 1
                    return found
        return self._of["all", ""]


def drawn(ratios: NDArray[np.float64], share: float, used: float) -> float:
    """Return a past ratio of used time to limit that is above ``used``.

    Return 1 if there is none.

    Args:
        ratios: sorted.
        share: a random number from 0 to 1, which selects one of these ratios.
        used: share of the limit that the job has used.
    """
    first = int(np.searchsorted(ratios, used, side="right"))
    left = len(ratios) - first
    return float(ratios[first + min(left - 1, int(share * left))]) if left else 1.0
