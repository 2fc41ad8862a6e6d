"""The account of one job's wait, or of many: from the index of a run."""

from msgspec.structs import replace

from pipistrelle.reports.explain.explanation import Explanation, explain, look_at
from pipistrelle.reports.explain.looks import Look, RunIndex, Seen
from pipistrelle.runs.folders.files import ExplainError, JobLine, RunFiles, find_job


def account(index: RunIndex, job: str, at: float | None) -> tuple[Explanation, Look | None]:
    """Return why a job waited, and how it was at one moment (s), if one is given and the run was repeated.

    ``job`` is its id, or that without its prefix.

    Raises
    ------
    ExplainError
        when there is no such job, or it did not wait then.
    """
    files, replayed = index.files, index.replayed
    known = dict.fromkeys([*files.jobs, *files.starts, *(replayed.submitted if replayed else ()), *index.others])
    name = find_job(job, list(known), str(files.folder), files.left_out)
    line = files.jobs.get(name)
    seen = None if replayed is None else replayed.of(name)
    if line is not None and files.wait_ends(line) <= line.submit:
        if at is not None:
            raise _not_then(f"{name} never waited", at, None)
        return explain(files, line, None), None
    line = line or unfinished(files, name, seen)
    end = files.wait_ends(line)
    if at is not None and not line.submit <= at < end:
        raise _not_then(f"{name} did not wait then", at, f"a time from {line.submit:.10g} s to before {end:.10g} s")
    explanation = explain(
        files,
        line,
        seen,
        not_replayed=index.not_replayed,
        depends_on=index.depends_on.get(name.partition("#")[0], ""),
        polls=index.polls,
    )
    return explanation, None if at is None or seen is None else look_at(seen, at)


def unfinished(files: RunFiles, name: str, seen: Seen | None) -> JobLine:
    """Return what is known of a job that had not ended when the run did."""
    if seen is None or name not in seen.submitted:
        raise ExplainError(
            f"{name} had not {'ended' if seen is None else 'joined the queue'} when the run ended",
            where=str(files.folder),
            hint="Nothing tells when it was submitted." if seen is None else None,
        )
    start = files.starts.get(name)
    return replace(seen.submitted[name], state="SUBMITTED" if start is None else "RUNNING", start=start)


def _not_then(what: str, at: float, expected: str | None) -> ExplainError:
    return ExplainError(what, where="--at", expected=expected, found=f"{at:.10g} s")
