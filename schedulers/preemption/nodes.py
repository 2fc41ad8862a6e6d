"""Where a waiting job would fit on shared nodes if some running jobs ended."""

from collections.abc import Sequence

import numpy as np

from pipistrelle.platforms.resources.shape import Takes
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.view import View


def fit_without(view: View, job: SchedulerJob, gone: Sequence[SchedulerJob]) -> Takes | None:
    """Return where a waiting job would fit now if some running jobs had ended.

    The result has the job's tasks and GPUs per node; it is None if the job would not fit even then. ``gone`` has these
    running jobs.
    """
    shared = view.shared
    assert shared is not None
    table, shape = shared.table(), shared.shape(job)
    licenses = dict(shared.free.licenses)
    for one in gone:
        nodes, taken = shared.held_by(one)
        table[nodes] += taken
        for name, count in shared.shape(one).request.licenses.items():
            licenses[name] += count
    if any(count > licenses.get(name, 0) for name, count in shape.request.licenses.items()):
        return None
    amounts, gpus = shared.split(table)
    allowed = shared.open(view.unavailable | view.closed(job))
    most = np.where(allowed, shape.most_tasks(amounts, gpus), 0)
    return shape.choose(shared.by_weight, most, amounts, gpus)


def is_free(view: View, job: SchedulerJob, takes: Takes) -> bool:
    """Return whether the amounts in ``takes`` are free now for a waiting job.

    ``takes`` has the job's tasks and GPUs per node.
    """
    shared = view.shared
    assert shared is not None
    if shared.free.missing_license(shared.shape(job).request.licenses) is not None:
        return False
    nodes, taken = shared.rows(job, takes)
    return bool((shared.table()[nodes] >= taken).all())
