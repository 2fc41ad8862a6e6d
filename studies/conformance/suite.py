"""The suite: each script is played to a process of its own, and judged."""

import shlex
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Final, Literal

from pipistrelle.protocol.base.errors import cut, printable
from pipistrelle.protocol.fields import package_version
from pipistrelle.schedulers.wire.interrupts import Interrupts
from pipistrelle.server.errors import Interrupted, RunError, SchedulerFailed
from pipistrelle.server.simulation import Result
from pipistrelle.studies.conformance.script import Dialect, Script
from pipistrelle.studies.conformance.stage import SERVER, Audience, Stage, Staged
from pipistrelle.studies.runs.run import run
from pipistrelle.studies.runs.spec import RunSpec
from pipistrelle.studies.sessions.replay import parting

#: the end of a run by which a scheduler says itself that it cannot go on
_GIVES_UP: Final = "scheduler_error"
#: characters of what a scheduler printed that are kept
_PRINTED: Final = 2000
_NAMED: Final = 60


@dataclass(frozen=True, slots=True)
class ScriptOutcome:
    """What came of a script.

    Parameters
    ----------
    name, situation
        the script's.
    verdict
        ``passed``, ``failed``, or ``skipped`` if it does not apply.
    lines
        what was wrong, one line each; why it does not apply; or a remark.
    log
        every frame: who says it, and its text.
    printed
        what the scheduler's process printed, the end of it.
    """

    name: str
    situation: str
    verdict: Literal["passed", "failed", "skipped"]
    lines: list[str]
    log: list[tuple[str, str]]
    printed: str = ""


def play_script(script: Script, words: Sequence[str], *, dialect: Dialect = "native", limit: float) -> ScriptOutcome:
    """Play a script to a scheduler.

    Parameters
    ----------
    words
        the scheduler's program and arguments, ``{endpoint}`` among them.
    limit
        how long to wait for the scheduler, for each of its replies and for its end, in seconds of the wall clock.

    Raises
    ------
    PipistrelleError
        when it cannot be started.
    KeyboardInterrupt
        when the user wants it to end.
    """
    if (why := script.absent.get(dialect)) is not None:
        return ScriptOutcome(script.name, script.situation, "skipped", [why], [])
    stage, audience = Stage(script, dialect), Audience()
    with tempfile.TemporaryFile() as printed:
        staged = Staged(stage, words, limit, printed)
        spec = RunSpec(scheduler=tuple(words), dialect=dialect)
        problems: list[str]
        try:
            result = run(spec, connection=staged, setup=script.setup(dialect), observers=[audience], check=False)
        except RunError as error:  # before the simulation has begun
            problems = _refused(stage, limit) if script.refuses else [_failure(error, words)]
        else:
            if isinstance(result.failure, Interrupted):
                raise KeyboardInterrupt from result.failure
            problems = _problems(stage, audience, result, words, limit)
            if script.again and not problems:
                problems = _told_again(stage, words, limit, printed)
        said = _end_of(printed)
    verdict: Literal["passed", "failed"] = "failed" if problems else "passed"
    return ScriptOutcome(script.name, script.situation, verdict, problems, stage.log, said)


def _problems(stage: Stage, audience: Audience, result: Result, words: Sequence[str], limit: float) -> list[str]:
    """Return what was wrong with how a scheduler has played a script, in words."""
    script, failure = stage.script, result.failure
    own = [one for one in audience.rejections if stage.meddling is None or not stage.meddling.is_added(one[0])]
    problems = [f"an illegal decision ({rejected.code}): {_text(rejected.message)}" for _, rejected in own]
    if failure is not None:
        gives_up = script.may_give_up and failure.reason == _GIVES_UP
        return problems if gives_up else [*problems, _failure(failure, words)]
    if result.summary.reason != script.ends:
        problems.append(f"the run ends as '{result.summary.reason}', not as '{script.ends}'")
    problems += _job_problems(script, audience)
    gone = stage.ended_as
    if gone is None:
        problems.append(f"its process still ran {limit:g} s after the simulation had ended")
    elif gone.reason != "scheduler_left":
        problems.append(f"after the simulation had ended, {_how(gone)}")
    return problems


def _failure(error: RunError, words: Sequence[str]) -> str:
    """Return what ended a run, without the socket's name and the command, which the user knows."""
    what = error.what.removesuffix(f": {shlex.join(words)}")
    where = None if error.where is not None and error.where.startswith("ipc://") else error.where
    return _text(str(RunError(what, where=where, expected=error.expected, found=error.found, hint=error.hint)))


def _told_again(before: Stage, words: Sequence[str], limit: float, printed: IO[bytes]) -> list[str]:
    """Tell a new process what one was told before, and return what is wrong with how it answers, in words."""
    stage = Stage(before.script, before.dialect)
    before.log.append((SERVER, "(a new process is told the same)"))
    staged = Staged(stage, words, limit, printed)
    spec = RunSpec(scheduler=tuple(words), dialect=before.dialect)
    last = before.notice
    assert last is not None, "the run has come to its end"
    try:
        with (
            Interrupts() as interrupts,
            staged.open(spec, before.script.setup(before.dialect), lambda: interrupts.struck) as transport,
        ):
            transport.greet("conformance", f"pipistrelle {package_version()}")
            for notice, reply in before.exchanges:
                transport.send(notice)
                found = transport.receive()
                if parting(reply, found) is not None:
                    return [f"told the same once more, it answers notice {notice.seq} otherwise"]
            transport.farewell(last)
    except RunError as error:
        return [f"told the same once more: {_failure(error, words)}"]
    finally:
        before.log += stage.log
    return []


def _job_problems(script: Script, audience: Audience) -> list[str]:
    problems = []
    rejected = {_name_of(job) for job, state in audience.over.items() if state == "REJECTED"}
    for job in script.jobs:
        named = _text(job.name, _NAMED)
        if job.name in script.rejects:
            if job.name not in rejected:
                problems.append(f"job {named} was not rejected, though it can never run")
        elif job.name in rejected:
            problems.append(f"job {named} was rejected, though it can run")
        elif job.name not in audience.begun and script.ends == "completed":
            problems.append(f"job {named} never ran")
    return problems


def _refused(stage: Stage, limit: float) -> list[str]:
    if stage.ended_as is not None:
        return []
    return [f"its process still ran {limit:g} s after its HELLO was refused"]


def _name_of(job_id: str) -> str:
    return job_id.partition("!")[2].partition("#")[0]


def _how(gone: SchedulerFailed) -> str:
    """Return how a process has ended that had nothing more to do."""
    return gone.what.partition(" before the simulation was over")[0]


def _text(text: str, length: int = 500) -> str:
    return cut(printable(text), length)


def _end_of(printed: IO[bytes]) -> str:
    with suppress(OSError):
        printed.seek(max(printed.seek(0, 2) - _PRINTED, 0))
        return printed.read().decode("utf-8", "replace")
    return ""
