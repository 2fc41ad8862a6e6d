"""Compute, from the tables that a run wrote, some tables that it did not write.

They are the attempts, the queue and the use of resources.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.api.tables import Table, imported
from pipistrelle.protocol.units.nodesets import NodeSet

#: columns that attempts and jobs have in common
_SAME: Final = ("submission_time", "starting_time", "finish_time", "final_state")
#: columns that are zero if no attempt fails and none is repeated
_ZERO: Final = ("retried", "nodes_lost", "failures_survived", "dumps", "reads")


def attempts_of(jobs: Table) -> Table:
    """Return the attempts of a run in which no job was interrupted.

    The table has one row per job that ran. The columns are those of ``out_attempts.csv``, without ``begin_time`` and
    the columns on saved work and on how time was spent.
    """
    arrow = imported("pyarrow", "a table")
    ran = [units not in (None, "") for units in jobs.arrow.column("allocated_resources").to_pylist()]
    table = jobs.arrow.filter(arrow.array(ran, arrow.bool_()))
    zeros = arrow.array(np.zeros(table.num_rows, np.int64))
    columns = {name: table.column(name) for name in ("job_id", "workload_name")}
    columns |= {"first_job_id": table.column("job_id"), "attempt": zeros}
    columns |= {"original_submission_time": table.column("submission_time")}
    columns |= {name: table.column(name) for name in _SAME}
    columns |= {"cause": arrow.array([""] * table.num_rows, arrow.string())} | dict.fromkeys(_ZERO, zeros)
    return Table(arrow.table(columns))


def use_of(takes: Table, jobs: Table, resource: str, until: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute how much of a resource jobs hold on shared nodes, over time.

    Args:
        takes, jobs: the tables of a run.
        until: time (s) until which unfinished jobs hold the resource.

    Returns:
        The ascending times (s) at which the amount changes, and the amount from each of them on.
    """
    many = np.array([len(NodeSet.parse(nodes)) for nodes in takes["nodes"]], dtype=float)
    amount = many * takes[f"node_{resource}"].astype(float)
    names = map("!".join, zip(jobs["workload_name"], jobs["job_id"], strict=True))
    ends = dict(zip(names, jobs["finish_time"].tolist(), strict=True))
    end = np.array([ends.get(name, until) for name in takes["job_id"]], dtype=float)
    times, places = np.unique(np.concatenate((takes["time"].astype(float), end)), return_inverse=True)
    return times, np.cumsum(np.bincount(places, weights=np.concatenate((amount, -amount)), minlength=len(times)))


def queue_of(jobs: Table) -> Table:
    """Compute the table that ``out_queue.csv`` would have, from the jobs of a run.

    All jobs must have ended, each after one attempt. A job waits from its submission to its start, or to its end if it
    never ran.
    """
    arrow = imported("pyarrow", "a table")
    submit, start, end = (jobs[f"{name}_time"].astype(float) for name in ("submission", "starting", "finish"))
    size = jobs["requested_number_of_resources"].astype(np.int64)
    ran = np.array([units not in (None, "") for units in jobs["allocated_resources"]], bool)
    left = np.where(ran, start, end)
    ones = np.ones(len(submit), np.int64)
    times = np.concatenate((submit, left, end[ran]))
    waiting = np.concatenate((ones, -ones, 0 * ones[ran]))
    units = np.concatenate((size, -size, 0 * size[ran]))
    running = np.concatenate((0 * ones, ran.astype(np.int64), -ones[ran]))
    instants, places = np.unique(times, return_inverse=True)
    counts = np.zeros((3, len(instants)), np.int64)
    for row, changes in enumerate((waiting, units, running)):
        np.add.at(counts[row], places, changes)
    changed = counts.any(axis=0)
    counts, instants = np.cumsum(counts[:, changed], axis=1), instants[changed]
    names = ("waiting_jobs", "waiting_units", "running_jobs")
    return Table(arrow.table({"time": instants} | dict(zip(names, counts, strict=True))))
