"""Run conformance tests, each with a new scheduler process, and judge the result."""

import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Final, Literal

from msgspec.structs import replace as changed

from pipistrelle.protocol.base.whole import write_whole
from pipistrelle.protocol.fields import TAKEOVER, Feature
from pipistrelle.runs.conformance.judge import failure_text, problems_of, refusal_problems
from pipistrelle.runs.conformance.script import Dialect, Script
from pipistrelle.runs.conformance.second import taken_over, told_again
from pipistrelle.runs.conformance.stage import Audience, LacksFeature, Stage, Staged
from pipistrelle.runs.description.setup import SetupCache, load_setup
from pipistrelle.runs.execution.run import RunOptions, run
from pipistrelle.runs.slurm.files import read_slurm_files
from pipistrelle.runs.slurm.written import slurm_conf_text
from pipistrelle.server.errors import Interrupted, RunError

#: the only feature without which the server refuses a scheduler
_RESOURCES: Final[Feature] = "resources"
#: maximum characters kept of a scheduler's output
_PRINTED: Final = 2000


@dataclass(frozen=True, slots=True)
class ScriptOutcome:
    """The outcome of one conformance test.

    Attributes:
        verdict: ``skipped`` means that the test does not apply to this scheduler or protocol.
        lines: the scheduler's mistakes, one per line; for a skipped test, the reason.
        log: (sender, text) of every message.
        printed: the last part of the output of the process.
    """

    name: str
    situation: str
    verdict: Literal["passed", "failed", "skipped"]
    lines: list[str]
    log: list[tuple[str, str]]
    printed: str = ""


def play_script(
    script: Script, words: Sequence[str], *, dialect: Dialect = "native", limit: float, configured: bool = False
) -> ScriptOutcome:
    """Run one conformance test with a scheduler.

    Args:
        words: the scheduler's program and arguments, including ``{endpoint}``.
        configured: whether to append ``--config FILE`` to the arguments, where FILE is a slurm.conf of the test's
            machine.
        limit: how long to wait for the scheduler, for each reply, and for its end (wall-clock s).

    Raises:
        PipistrelleError: the scheduler cannot be started.
        KeyboardInterrupt: the user interrupted the test.
    """
    if (why := script.absent.get(dialect)) is not None:
        return ScriptOutcome(script.name, script.situation, "skipped", [why], [])
    if configured:
        with tempfile.TemporaryDirectory(prefix="pipistrelle-") as folder:
            conf = Path(folder) / "slurm.conf"
            write_whole(conf, [slurm_conf_text(script.machine).encode()])
            machine = changed(read_slurm_files(str(conf)).platform, classes=())  # the jobs name no partition
            script = replace(script, platform=machine)
            return play_script(script, [*words, "--config", str(conf)], dialect=dialect, limit=limit)
    lacks: str = _RESOURCES
    with tempfile.TemporaryFile() as printed:
        stage, problems = Stage(script, dialect), None
        with suppress(LacksFeature):
            if script.hand_over:
                stage, problems = taken_over(script, words, limit, printed)
                lacks = TAKEOVER
            else:
                problems = _played(stage, words, limit, printed)
        said = _end_of(printed)
    if problems is None:
        why = f"its HELLO does not name the feature '{lacks}'"
        return ScriptOutcome(script.name, script.situation, "skipped", [why], [])
    return ScriptOutcome(script.name, script.situation, "failed" if problems else "passed", problems, stage.log, said)


def _played(stage: Stage, words: Sequence[str], limit: float, printed: IO[bytes]) -> list[str]:
    script, audience = stage.script, Audience()
    staged = Staged(stage, words, limit, printed)
    spec, given = script.spec(words, stage.dialect), script.inputs()
    setup = load_setup(spec, given, SetupCache(silent=True))
    options = RunOptions(connection=staged, given=given, setup=setup, observers=[audience], check=False)
    try:
        result = run(spec, options)
    except LacksFeature:
        raise
    except RunError as error:  # the simulation has not begun
        return refusal_problems(stage, limit) if script.refuses else [failure_text(error, words)]
    if isinstance(result.failure, Interrupted):
        raise KeyboardInterrupt from result.failure
    problems = problems_of(stage, audience, result, words, limit)
    if script.again and not problems:
        return told_again(stage, words, limit, printed)
    return problems


def _end_of(printed: IO[bytes]) -> str:
    with suppress(OSError):
        printed.seek(max(printed.seek(0, 2) - _PRINTED, 0))
        return printed.read().decode("utf-8", "replace")
    return ""
