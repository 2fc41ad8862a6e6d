"""Conformance tests with a second process that repeats a run or takes it over."""

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO

from pipistrelle.platforms.read import to_toml
from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.protocol.base.whole import write_whole
from pipistrelle.protocol.fields import TAKEOVER, package_version
from pipistrelle.runs.conformance.judge import failure_text, problems_of
from pipistrelle.runs.conformance.script import Script, workload_json
from pipistrelle.runs.conformance.stage import SERVER, Audience, LacksFeature, Stage, Staged
from pipistrelle.runs.description.setup import load_setup
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.run import RunOptions
from pipistrelle.runs.sessions.replay import parting
from pipistrelle.runs.sessions.resume import KeptRun, run_kept, take_over
from pipistrelle.runs.sessions.snapshot import Every, Keeping, read_snapshot
from pipistrelle.schedulers.wire.interrupts import Interrupts
from pipistrelle.server.errors import Interrupted, RunError
from pipistrelle.server.outputs.folder import OUTPUT_PREFIX, snapshots_in


def told_again(before: Stage, words: Sequence[str], limit: float, printed: IO[bytes]) -> list[str]:
    """Replay a finished run's notices to a second scheduler process, and compare its replies.

    Args:
        before: the messages of the finished run; the messages of the second process are appended to ``before.log``.
        words, limit, printed: as in `Staged`.

    Returns:
        The mistakes of the second process, one sentence each.
    """
    stage = Stage(before.script, before.dialect)
    before.log.append((SERVER, "(a new process gets the same notices)"))
    staged = Staged(stage, words, limit, printed)
    spec, inputs = before.script.spec(words, before.dialect), before.script.inputs()
    last = before.notice
    assert last is not None, "the run has ended"
    try:
        with (
            Interrupts() as interrupts,
            staged.open(spec, load_setup(spec, inputs), lambda: interrupts.struck) as transport,
        ):
            transport.greet("conformance", f"pipistrelle {package_version()}")
            for notice, reply in before.exchanges:
                transport.send(notice)
                found = transport.receive()
                if parting(reply, found) is not None:
                    return [f"replayed to a new process, it answers notice {notice.seq} differently"]
            transport.farewell(last)
    except RunError as error:
        return [f"replayed to a new process: {failure_text(error, words)}"]
    finally:
        before.log += stage.log
    return []


def taken_over(
    script: Script, words: Sequence[str], limit: float, printed: IO[bytes]
) -> tuple[Stage, list[str] | None]:
    """Run a conformance test in which a second process takes over the run halfway.

    Args:
        words, limit, printed: as in `Staged`.

    Returns:
        A pair: the recorded messages, and the mistakes as sentences. The mistakes are None if the scheduler does not
        support takeovers.

    Raises:
        LacksFeature: the scheduler cannot run the machine of the test.
    """
    first, audience = Stage(script, "native"), Audience()
    with tempfile.TemporaryDirectory(prefix="pipistrelle-") as name:
        home = Path(name)
        nodes = script.nodes if script.platform is None else script.platform.units
        write_whole(home / "jobs.json", [workload_json(script.jobs, nodes)])
        machine = None
        if script.platform is not None:
            machine = str(home / "machine.toml")
            write_whole(home / "machine.toml", [to_toml(script.platform).encode()])
        (home / "first").mkdir()
        spec = RunSpec(scheduler=tuple(words), workload=(str(home / "jobs.json"),), platform=machine)
        keeping = Keeping(every=Every(simulated=script.jobs[len(script.jobs) // 2].submit), most=100, leave=True)
        options = RunOptions(connection=Staged(first, words, limit, printed), out=home / "first", observers=[audience])
        try:
            result = run_kept(spec, options, keeping)
        except LacksFeature:
            raise
        except RunError as error:  # the simulation has not begun
            return first, [failure_text(error, words)]
        _check_interrupt(result.failure)
        if problems := problems_of(first, audience, result, words, limit):
            return first, problems
        if TAKEOVER not in result.scheduler.features:
            return first, None
        header, state = read_snapshot(snapshots_in(home / "first")[1])
        kept = KeptRun(spec, header, state, home / "first", OUTPUT_PREFIX)
        second = Stage(script, "native", [*first.log, (SERVER, "(a new process takes the run over)")])
        options = replace(options, connection=Staged(second, words, limit, printed), out=home / "second")
        try:
            result = take_over(spec, kept, options, Keeping(most=1, leave=True))
        except PipistrelleError as error:
            return second, [failure_text(error, words)]
    _check_interrupt(result.failure)
    return second, problems_of(second, audience, result, words, limit)


def _check_interrupt(failure: RunError | None) -> None:
    if isinstance(failure, Interrupted):
        raise KeyboardInterrupt from failure
