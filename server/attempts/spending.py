"""What the units of one attempt spent their time on."""

from math import isnan

from pipistrelle.server.attempts.attempt import Attempt, Spending
from pipistrelle.server.engine.jobs import Job


def spending_of(job: Job) -> Spending:
    """Return what an attempt of a job, which has ended and had units, spent them on."""
    attempt = job.attempt
    assert attempt is not None, f"{job.id} was not admitted"
    if attempt.spending is None:
        attempt.spending = _spending_of(job, attempt)
    return attempt.spending


def has_worked(job: Job, attempt: Attempt) -> bool:
    """Tell whether a job that has ended had done all its work: even if it returned a failure, or in its epilogue."""
    if job.state == "COMPLETED_SUCCESSFULLY":
        return True
    if job.state == "COMPLETED_FAILED":
        return not attempt.cause
    return job.in_time and job.end >= attempt.work_ends


def _spending_of(job: Job, attempt: Attempt) -> Spending:
    units = len(job.alloc)
    whole = units * (job.end - job.start)
    began, account = attempt.began, attempt.account
    if isnan(began):
        return Spending(waiting=whole)
    waiting = units * (began - job.start - job.prologue) if attempt.waited else 0.0
    has_overhead = bool(job.prologue or job.epilogue)
    if account is None:  # without dumps: all of it is done, or nothing
        work = units * max(min(job.end, attempt.work_ends) - began, 0.0)
        overhead = whole - waiting - work if has_overhead else 0.0
        if attempt.cause:
            return Spending(lost=work, waiting=waiting, overhead=overhead)
        if has_worked(job, attempt):
            return Spending(useful=work, waiting=waiting, overhead=overhead)
        return Spending(unsaved=work, waiting=waiting, overhead=overhead)
    each = units / account.nodes
    inside = each * account.node_seconds
    return Spending(
        useful=each * account.node_useful,
        unsaved=each * account.node_unsaved,
        lost=each * account.node_lost,
        dumping=each * account.node_dumping,
        reading=each * account.node_reading,
        spare=each * account.node_spare,
        down=each * account.node_down,
        waiting=waiting,
        overhead=whole - waiting - inside if has_overhead else 0.0,
    )
