"""``pipistrelle explain``: why a job of a run waited."""

import json
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipistrelle.cli.console import relax_collector
from pipistrelle.cli.guard import FilledPath
from pipistrelle.protocol.base.lengths import seconds_of

if TYPE_CHECKING:
    from pipistrelle.cli.asked import Asked
    from pipistrelle.server.setup import Setup
    from pipistrelle.studies.explain.explanation import Explanation
    from pipistrelle.studies.explain.files import ExplainError, JobLine, RunFiles
    from pipistrelle.studies.explain.replay import Look, Seen


def _moment(ctx: click.Context, param: click.Parameter, text: str | None) -> float | None:
    if text is None:
        return None
    with suppress(ValueError):
        if float(text) == 0:  # a time, if no length of time
            return 0.0
    try:
        return seconds_of(text.removesuffix(" s"))
    except ValueError as error:
        raise click.BadParameter(f"'{text}' is no time: {error}.", ctx, param) from None


@click.command()
@click.argument("run", type=FilledPath(path_type=Path))
@click.argument("job")
@click.option(
    "--at", callback=_moment, metavar="TIME", help="Show one moment: seconds since time 0, or as 36h or 12:30:00."
)
@click.option("--json", "as_json_", is_flag=True, help="Write JSON, all of it.")
@click.option(
    "--no-replay",
    is_flag=True,
    help="Explain from the outputs alone, without repeating the run to see what its scheduler saw.",
)
def command(run: Path, job: str, at: float | None, as_json_: bool, no_replay: bool) -> None:
    """Explain why a job of a run waited.

    RUN is the folder of a run's outputs, JOB an id as in out_decisions.csv, or without its prefix.

    \b
    pipistrelle explain pipistrelle-out/demo-easy-1 w0!17
    """
    # Here and below, not above: help needs none of these, and an explanation without a replay not all.
    from pipistrelle.studies.explain.explanation import as_json
    from pipistrelle.studies.explain.files import read_run

    relax_collector()
    files = read_run(run)
    explanation, look = _explain(files, job, at, repeat=not no_replay)
    if as_json_:
        click.echo(json.dumps(as_json(explanation, look), indent=2, allow_nan=False))
    else:
        from rich.console import Console

        from pipistrelle.cli.explain_text import print_explanation

        print_explanation(explanation, at, look, Console(highlight=False, emoji=False))


def _explain(files: "RunFiles", job: str, at: float | None, *, repeat: bool) -> "tuple[Explanation, Look | None]":
    from pipistrelle.cli.asked import read_asked
    from pipistrelle.studies.explain.explanation import explain, look_at
    from pipistrelle.studies.explain.replay import replay

    asked = read_asked(files) if repeat else None
    reason = _why_not(asked, repeat=repeat)
    setup = asked.setup(files) if asked is not None and reason is None else None
    name = _find(files, job, setup)
    line = files.jobs.get(name)
    by_server = line is not None and line.state == "REJECTED" and name not in files.rejections
    if line is not None and files.wait_ends(line) <= line.submit and (setup is None or not by_server):
        if at is not None:
            raise _not_then(f"{name} never waited", at, None)
        return explain(files, line, None), None
    seen: Seen | None = None
    if asked is not None and setup is not None:
        until = inf if line is not None or name in files.starts else files.until
        seen = replay(setup, asked.policy(), files, name, poll=asked.settings.poll, until=until)
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
        polls=asked is not None and asked.settings.poll is not None,
    )
    return explanation, None if at is None or seen is None else look_at(seen, at)


def _why_not(asked: "Asked | None", *, repeat: bool) -> str | None:
    """Return why a run cannot be repeated, None if it can."""
    if not repeat:
        return "--no-replay was given"
    if asked is None:
        return "its folder has no out_command.json, which says how it was called"
    return asked.foreign


def _find(files: "RunFiles", job: str, setup: "Setup | None") -> str:
    """Return the job's id; ExplainError if there is none."""
    from pipistrelle.studies.explain.files import find_job

    known = dict.fromkeys([*files.jobs, *files.starts])
    if setup is not None:
        known |= {f"{prefix}!{one}": None for prefix, workload in setup.workloads.items() for one in workload.ids}
    return find_job(job, list(known), str(files.folder), files.left_out)


def _unfinished(files: "RunFiles", name: str, seen: "Seen | None") -> "JobLine":
    """Return what is known of a job that had not ended when the run did."""
    from pipistrelle.studies.explain.files import ExplainError, JobLine

    if seen is None or name not in seen.submitted:
        raise ExplainError(
            f"{name} had not {'ended' if seen is None else 'joined the queue'} when the run ended",
            where=str(files.folder),
            hint="Nothing tells when it was submitted." if seen is None else None,
        )
    job, start = seen.submitted[name], files.starts.get(name)
    state = "SUBMITTED" if start is None else "RUNNING"
    return JobLine(name, job.size, job.submit, job.submit, job.walltime, state, start, None)


def _not_then(what: str, at: float, expected: str | None) -> "ExplainError":
    from pipistrelle.studies.explain.files import ExplainError

    return ExplainError(what, where="--at", expected=expected, found=f"{at:.10g} s")
