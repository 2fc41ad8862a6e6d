"""The account of one job's wait: from a run's outputs and, where it can be had, from the same run once more."""

from math import inf
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from pipistrelle.protocol.base.errors import printable
from pipistrelle.server.begin import describe_run
from pipistrelle.server.outputs.folder import COMMAND_FILE
from pipistrelle.studies.explain.explanation import Explanation, explain, look_at
from pipistrelle.studies.explain.files import ExplainError, JobLine, RunFiles, find_job, read_command
from pipistrelle.studies.explain.replay import Look, Seen, replay
from pipistrelle.studies.runs.policy import step_of
from pipistrelle.studies.runs.setup import load_setup
from pipistrelle.studies.runs.spec import RunSpec
from pipistrelle.studies.runs.spec_file import InputChanged, SpecError, convert_spec, with_digests

if TYPE_CHECKING:
    from pipistrelle.server.setup import Setup

#: what decides a run beside its workload and platform, and what to call it
_REST: Final = (
    ("dropped", "the workload"),
    ("hosts_sha256", "the platform"),
    ("reliability", "failures and maintenance"),
    ("batsim", "the dialect"),
)


def account(files: RunFiles, job: str, at: float | None, *, repeat: bool) -> tuple[Explanation, Look | None]:
    """Return why a job waited, and how it was at one moment (s), if one is given and the run was repeated.

    Parameters
    ----------
    job
        its id, or that without its prefix.
    repeat
        whether the run may be repeated.

    Raises
    ------
    PipistrelleError
        when there is no such job, it did not wait then, or the run cannot be repeated though its outputs say how.
    """
    spec = _described(files) if repeat else None
    reason = _why_not(spec, repeat=repeat)
    setup = _setup_again(spec, files) if spec is not None and reason is None else None
    name = _find(files, job, setup)
    line = files.jobs.get(name)
    by_server = line is not None and line.state == "REJECTED" and name not in files.rejections
    if line is not None and files.wait_ends(line) <= line.submit and (setup is None or not by_server):
        if at is not None:
            raise _not_then(f"{name} never waited", at, None)
        return explain(files, line, None), None
    seen: Seen | None = None
    if spec is not None and setup is not None:
        until = inf if line is not None or name in files.starts else files.until
        policy, poll = spec.make_policy(warn=False, polls=False), None if spec.poll is None else step_of(spec.poll)
        seen = replay(setup, policy, files, name, poll=poll, until=until)
        if seen.rejected is not None:
            files.rejections[name] = seen.rejected
    line = line or _unfinished(files, name, seen)
    end = files.wait_ends(line)
    if at is not None and not line.submit <= at < end:
        raise _not_then(f"{name} did not wait then", at, f"a time from {line.submit:.10g} s to before {end:.10g} s")
    conditions = () if setup is None else setup.conditions.get(name.partition("#")[0], ())
    explanation = explain(
        files,
        line,
        seen,
        not_replayed=reason,
        depends_on=" ".join(f"{one.kind}:{one.job_id}" for one in conditions),
        polls=spec is not None and spec.poll is not None,
    )
    return explanation, None if at is None or seen is None else look_at(seen, at)


def _described(files: RunFiles) -> RunSpec | None:
    """Return what the run was, None if nothing tells; ExplainError if what tells makes no sense."""
    raw = read_command(files.folder)
    if raw is None:
        return None
    try:
        return convert_spec(raw, str(files.folder / COMMAND_FILE))
    except SpecError as error:
        raise ExplainError(
            f"this does not say how a run was called: {error.what}",
            where=error.where,
            expected=error.expected,
            found=error.found,
            hint="--no-replay explains what the outputs alone tell.",
        ) from None


def _why_not(spec: RunSpec | None, *, repeat: bool) -> str | None:
    """Return why a run cannot be repeated, None if it can."""
    if not repeat:
        return "--no-replay was given"
    if spec is None:
        return "its folder has no out_command.json, which says how it was called"
    if spec.program:
        return f"its scheduler was a program, {printable(' '.join(spec.program))}"
    if spec.program is not None:
        return "its scheduler was started elsewhere"
    return "it spoke the batsim dialect" if spec.dialect == "batsim" else None


def _setup_again(spec: RunSpec, files: RunFiles) -> "Setup":
    """Return the run's setup once more; PipistrelleError when an input is not there any more, or not what it was."""
    try:
        with_digests(spec)
    except InputChanged as error:
        raise _changed(error.where or "", error.found or "") from None
    setup = load_setup(spec)
    now = msgspec.json.decode(msgspec.json.encode(describe_run(setup)))
    for key, name in (("workloads", " ".join(spec.workload)), ("platform", spec.platform or "the platform"), *_REST):
        if now[key] != files.config.get(key):
            raise _changed(name, "its content is not that of the run")
    return setup


def _changed(name: str, found: str) -> ExplainError:
    return ExplainError(
        "the run cannot be repeated: an input has changed since",
        where=printable(name),
        found=found,
        hint="Bring it back (relative names are looked up from the present folder); --no-replay explains what the "
        "outputs alone tell.",
    )


def _find(files: RunFiles, job: str, setup: "Setup | None") -> str:
    """Return the job's id; ExplainError if there is none."""
    known = dict.fromkeys([*files.jobs, *files.starts])
    if setup is not None:
        known |= {f"{prefix}!{one}": None for prefix, workload in setup.workloads.items() for one in workload.ids}
    return find_job(job, list(known), str(files.folder), files.left_out)


def _unfinished(files: RunFiles, name: str, seen: Seen | None) -> JobLine:
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
