"""Find a scheduler's mistakes in a conformance test."""

import shlex
from collections.abc import Sequence
from typing import Final

from pipistrelle.protocol.base.errors import PipistrelleError, legible
from pipistrelle.runs.conformance.script import Script
from pipistrelle.runs.conformance.stage import Audience, Stage
from pipistrelle.server.simulation.simulate import Result

#: reason for the end of a run whose scheduler reported an error
_GIVES_UP: Final = "scheduler_error"
_NAMED: Final = 60


def problems_of(stage: Stage, audience: Audience, result: Result, words: Sequence[str], limit: float) -> list[str]:
    """Return the scheduler's mistakes in a conformance test, one sentence each.

    Args:
        stage: the messages of the test, and how the scheduler's process ended.
        audience: what happened to the jobs.
        result: the result of the run.
        words: the scheduler's program and arguments, left out of the sentences.
        limit: how long the scheduler had to end (wall-clock s).
    """
    script, failure = stage.script, result.failure
    own = [one for one in audience.rejections if stage.meddling is None or not stage.meddling.is_added(one[0])]
    problems = [f"an illegal decision ({rejected.code}): {_text(rejected.message)}" for _, rejected in own]
    if failure is not None:
        gives_up = script.may_give_up and failure.reason == _GIVES_UP
        return problems if gives_up else [*problems, failure_text(failure, words)]
    if result.summary.reason != script.ends:
        problems.append(f"the run ended as '{result.summary.reason}', expected '{script.ends}'")
    problems += _job_problems(script, audience)
    gone = stage.ended_as
    if gone is None:
        problems.append(f"its process was still running {limit:g} s after the end of the simulation")
    elif gone.reason != "scheduler_left":
        problems.append(f"after the end of the simulation, {gone.what.partition(' before the simulation was over')[0]}")
    return problems


def _job_problems(script: Script, audience: Audience) -> list[str]:
    problems = []
    rejected = {job.partition("!")[2].partition("#")[0] for job, state in audience.over.items() if state == "REJECTED"}
    for job in script.jobs:
        named = _text(job.name, _NAMED)
        if job.name in script.rejects:
            if job.name not in rejected:
                problems.append(f"job {named} was not rejected, although it can never run")
        elif job.name in rejected:
            problems.append(f"job {named} was rejected, although it can run")
        elif job.name not in audience.begun and job.cancelled_after is None and script.ends == "completed":
            problems.append(f"job {named} never ran")
    return problems


def refusal_problems(stage: Stage, limit: float) -> list[str]:
    """Return the mistakes of a scheduler whose HELLO the server refused: its process must end.

    Args:
        stage: records how the process ended.
        limit: how long the process had to end (wall-clock s).

    Returns:
        A list of one sentence if the process was still running, else an empty list.
    """
    if stage.ended_as is not None:
        return []
    return [f"its process was still running {limit:g} s after its HELLO was refused"]


def failure_text(error: PipistrelleError, words: Sequence[str]) -> str:
    """Return the error that ended a conformance test as text.

    The text leaves out the path of the server's socket and the scheduler's command line.

    Args:
        words: the scheduler's program and arguments.
    """
    what = error.what.removesuffix(f": {shlex.join(words)}")
    where = None if error.where is not None and error.where.startswith("ipc://") else error.where
    return _text(str(PipistrelleError(what, where=where, expected=error.expected, found=error.found, hint=error.hint)))


def _text(text: str, length: int = 500) -> str:
    return legible(text, length)
