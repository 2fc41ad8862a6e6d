"""Summarise why the jobs of a user, group or queue waited, by reason."""

from collections.abc import Mapping
from math import fsum
from typing import Final

import numpy as np
from msgspec import Struct

from pipistrelle.protocol.base.errors import did_you_mean, printable
from pipistrelle.reports.explain.explanation import unfinished
from pipistrelle.reports.explain.limits import timeline_of
from pipistrelle.reports.explain.looks import LABELS, Limit, RunIndex
from pipistrelle.runs.folders.files import ExplainError, JobLine
from pipistrelle.server.engine.jobs import Labels

_MOST_LONGEST: Final = 10


class Share(Struct):
    """A limit that kept jobs waiting.

    It has the total time (s), this time as a share of all waits, and the number of jobs.
    """

    limit: Limit
    seconds: float
    share: float
    jobs: int


class Longest(Struct):
    """A job with a long wait, and the limit that kept it waiting longest."""

    job: str
    size: int
    submitted: float
    waited: float
    limit: Limit


class Shares(Struct):
    """Why the jobs with certain labels waited; times in seconds.

    Attributes:
        of: the labels, such as {"user": "17"}.
        epoch, timezone: Unix time (s) of time 0, and the name of the time zone; None if unknown.
        jobs: number of jobs with these labels.
        waited: number of these jobs that did not start at once.
        total, mean, median: the waits of all these jobs.
        limits: the limits that kept jobs waiting, the longest total time first.
        longest: the jobs with the longest waits.
    """

    of: dict[str, str]
    epoch: float | None
    timezone: str | None
    jobs: int
    waited: int
    total: float
    mean: float
    median: float
    limits: list[Share]
    longest: list[Longest]


def chosen(of: Mapping[str, str], labels: Labels | None) -> bool:
    """Return whether a job has all requested labels ``of``, such as {"user": "17"}."""
    return labels is not None and all(labels[LABELS.index(label)] == value for label, value in of.items())


def shares(index: RunIndex, of: Mapping[str, str]) -> Shares:
    """Return why the jobs with these labels, such as {"user": "17"}, waited.

    A job's wait ends with its start or its rejection, or with the run.

    Raises:
        ExplainError: if no job has these labels, or the run was not repeated and its outputs have no users.
    """
    files, replayed = index.files, index.replayed
    if replayed is None:
        raise ExplainError(
            f"the outputs alone do not name the jobs' users, and the run is not repeated: {index.not_replayed}",
            where=str(files.folder),
        )
    names = [name for name, job in replayed.submitted.items() if chosen(of, job.labels)]
    if not names:
        label, value = next(iter(of.items()))
        others = (job.labels[LABELS.index(label)] for job in replayed.submitted.values() if job.labels)
        known = dict.fromkeys(text for text in others if text is not None and text != value)
        hint = did_you_mean(value, list(known)) if known else f"Its workload has no {label}s."
        raise ExplainError(
            f"no job of this run has {' and '.join(f'the {name} {printable(text)!r}' for name, text in of.items())}",
            where=str(files.folder),
            hint=hint,
        )
    waits: list[float] = []
    seconds: dict[Limit, float] = {}
    jobs: dict[Limit, int] = {}
    longest: list[Longest] = []
    for name in names:
        seen = replayed.of(name)
        line: JobLine = files.jobs.get(name) or unfinished(files, name, seen)
        begin, end = line.submit, files.wait_ends(line)
        waits.append(max(end - begin, 0.0))
        if end <= begin:
            continue
        mine: dict[Limit, float] = {}
        depends_on = index.depends_on.get(name.partition("#")[0], "")
        for stretch in timeline_of(files, line, seen, begin, end, depends_on, index.polls):
            mine[stretch.limit] = mine.get(stretch.limit, 0.0) + stretch.end - stretch.begin
        for limit, time in mine.items():
            seconds[limit] = seconds.get(limit, 0.0) + time
            jobs[limit] = jobs.get(limit, 0) + 1
        longest.append(Longest(name, line.size, begin, end - begin, max(mine, key=lambda limit: mine[limit])))
    longest.sort(key=lambda one: -one.waited)
    total = fsum(waits)
    return Shares(
        dict(of),
        files.of_workload("epoch"),
        files.of_workload("timezone"),
        len(names),
        len(longest),
        total,
        total / len(names),
        float(np.median(waits)),
        [
            Share(limit, time, time / total, jobs[limit])
            for limit, time in sorted(seconds.items(), key=lambda item: -item[1])
        ],
        longest[:_MOST_LONGEST],
    )
