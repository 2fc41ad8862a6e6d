"""Parse and test dependencies of jobs, as sbatch's --dependency takes them."""

import re
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from pipistrelle.schedulers.slurm.cluster.jobs import COMPLETED, COMPLETING, ENDED, PENDING, RUNNING, SlurmJob

_NUMBER: Final = re.compile("[0-9]{1,15}")
KINDS: Final = ("after", "afterany", "afterok", "afternotok", "aftercorr", "singleton")
WAITS: Final = "waits"
MET: Final = "met"
NEVER: Final = "never"


class Depends(Struct, frozen=True):
    """One condition of a job's dependency.

    Attributes:
        number, task: job id and array index of the other job; number 0 for singleton, task None for all tasks.
        delay: s after the other job's start (``after:ID+MINUTES``).
        any_of: whether one met condition suffices ("?" between the conditions).
    """

    kind: str
    number: int = 0
    task: int | None = None
    delay: int = 0
    any_of: bool = False


def parse_dependency(text: str) -> list[Depends]:
    """Return the conditions of a --dependency text.

    Raise ValueError if the text cannot be parsed.
    """
    found: list[Depends] = []
    any_of = "?" in text
    for part in text.replace("?", ",").split(","):
        kind, _, rest = part.strip().partition(":")
        kind = kind.lower()
        if not kind:
            continue
        if kind == "singleton":
            found.append(Depends(kind, any_of=any_of))
            continue
        if kind not in KINDS or not rest:
            raise ValueError(f"dependency {part!r}: expected one of {', '.join(KINDS)}, with job ids")
        for one in rest.split(":"):
            name, _, minutes = one.partition("+")
            number, _, task = name.partition("_")
            if _NUMBER.fullmatch(number) is None or not all(map(_NUMBER.fullmatch, filter(None, (task, minutes)))):
                raise ValueError(f"dependency {part!r}: {one!r} is not a job id")
            found.append(Depends(kind, int(number), int(task) if task else None, 60 * int(minutes or 0), any_of))
    return found


#: returns the records of a job id, of one task if a task is given; None if no such job was submitted
Find = Callable[[int, int | None], Sequence[SlurmJob] | None]


def test_dependencies(job: SlurmJob, find: Find, singles: Callable[[SlurmJob], bool], now: int) -> str:
    """Test a job's dependency, and remove from the job the conditions that are met.

    Return MET if the job may run, WAITS if not yet, and NEVER if it can never run.

    Args:
        find: returns the records of another job.
        singles: returns whether an earlier job of the same name and user is queued or running.
    """
    left: list[Depends] = []
    never = False
    for one in job.depends:
        state = _test(job, one, find, singles, now)
        if state == MET:
            if one.any_of:
                job.depends = []
                return MET
            continue
        never |= state == NEVER
        if not (state == NEVER and one.any_of):
            left.append(one)
    if never and not (left and left[0].any_of):
        return NEVER
    if not (job.depends and job.depends[0].any_of):
        job.depends = left
    return WAITS if left else MET


def _test(job: SlurmJob, one: Depends, find: Find, singles: Callable[[SlurmJob], bool], now: int) -> str:
    if one.kind == "singleton":
        return WAITS if singles(job) else MET
    if one.kind == "aftercorr" and job.array_task is not None and one.task is None:
        others = find(one.number, job.array_task)
    else:
        others = find(one.number, one.task)
    if others is None:
        return MET if one.kind != "afternotok" else NEVER
    if one.kind == "after":
        states = [_started(other, one.delay, now) for other in others]
        return MET if all(states) else WAITS
    if any(other.state in (PENDING, RUNNING, COMPLETING) for other in others):
        if one.kind in ("afterok", "aftercorr") and any(other.state in ENDED - {COMPLETED} for other in others):
            return NEVER
        return WAITS
    if one.kind == "afterany":
        return MET
    fine = all(other.state == COMPLETED for other in others)
    return MET if fine == (one.kind != "afternotok") else NEVER


def _started(other: SlurmJob, delay: int, now: int) -> bool:
    if other.state == PENDING:
        return False
    return (other.state in ENDED and not other.start) or now >= other.start + delay
