"""The same failures under another order of nodes: whom they would have struck."""

from typing import Any

import numpy as np

from pipistrelle.reports.placement.report import months
from pipistrelle.reports.placement.run import PlacedRun, list_order


def whatif(run: PlacedRun, order: str, age_aware: bool, *, own: tuple[str, bool]) -> dict[str, Any]:
    """Return whom the failures of a run strike, and whom they would have struck if the list had been another.

    As in Zimmer et al. (SC 2018), section IV-B: a node that failed stands at some position of the other list; what ran
    at the time on the node at this position of the run's own list would have run on it. It is no simulation: jobs
    neither start nor end otherwise.

    Parameters
    ----------
    order, age_aware
        the other list.
    own
        the run's own.

    Raises
    ------
    PipistrelleError
        as `list_order` does.
    """
    here, other = list_order(run.machine, *own), list_order(run.machine, order, age_aware)
    position = np.empty(len(other), dtype=np.intp)
    position[other] = np.arange(len(other))
    struck = run.running_on(here[position[run.failed]], run.failed_at)
    return {
        "run": str(run.folder),
        "node_order": own[0],
        "age_aware": own[1],
        "other_node_order": order,
        "other_age_aware": age_aware,
        "failures": len(run.failed),
        "months": [
            {
                **now,
                "other_of_jobs": then["of_jobs"],
                "other_of_leadership_jobs": then["of_leadership_jobs"],
                "other_leadership_share": then["leadership_share"],
            }
            for now, then in zip(months(run, run.struck), months(run, struck), strict=True)
        ],
    }
