"""``pipistrelle check scheduler``: test a scheduler with difficult situations."""

import json
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from pipistrelle.cli.options.names import completed
from pipistrelle.cli.options.sections import Command
from pipistrelle.cli.schedulers.verdicts import junit_option, name_option, print_verdict, write_junit
from pipistrelle.cli.terminal.console import import_numpy, show
from pipistrelle.cli.terminal.guard import FOLDER

if TYPE_CHECKING:
    from pipistrelle.protocol.base.errors import PipistrelleError
    from pipistrelle.runs.conformance.script import Script
    from pipistrelle.runs.conformance.suite import ScriptOutcome

#: the scheduler that gets a slurm.conf of each test's machine
_SLURM: Final = "slurm"
#: exit code if a script failed
_FAILED: Final = 1
_STYLES: Final = {"passed": "green", "failed": "bold red", "skipped": "dim"}
_MARKS: Final = {"server": "<", "scheduler": ">"}
#: most frames shown of a failed script, and characters of each; the log has all
_MOST_FRAMES: Final = 8
_LONGEST: Final = 300
#: most frames of a failed script in JSON, and characters of each
_MOST_TOLD: Final = 200
_LONGEST_TOLD: Final = 10_000
#: seconds for each reply
_LIMIT: Final = 60.0


def _names(ctx: click.Context) -> list[str]:
    from pipistrelle.runs.conformance.scripts import SCRIPTS

    return [script.name for script in SCRIPTS]


@click.command(cls=Command)
@click.argument("words", nargs=-1, metavar="NAME | -- CMD...", shell_complete=completed("scheduler", or_file=True))
@click.option(
    "--dialect",
    type=click.Choice(["native", "batsim"]),
    default="native",
    help="Protocol of the scheduler: Pipistrelle's own, or Batsim's (the scheduler then listens).",
)
@name_option("tests", "*node*", _names)
@click.option("--list", "as_list", is_flag=True, help="List the tests and the situation of each; run none.")
@click.option(
    "--limit",
    type=click.FloatRange(min=0, min_open=True),
    default=_LIMIT,
    help="Seconds to wait for the scheduler: until it connects, for each reply, and until it exits.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with all messages of failed tests.")
@junit_option("test")
@click.option(
    "--logs",
    type=FOLDER,
    metavar="FOLDER",
    help="For failed tests, write the scheduler's messages and output to FOLDER.",
)
def command(
    words: tuple[str, ...],
    dialect: str,
    names: tuple[str, ...],
    as_list: bool,
    limit: float,
    as_json: bool,
    junit: Path | None,
    logs: Path | None,
) -> int:
    """Test a scheduler with difficult situations, each in a new process.

    CMD is a program with {endpoint} among its arguments, as for 'pipistrelle run --scheduler'. NAME is a bundled
    scheduler or a folder with a scheduler.toml. The exit code is 0 if all tests that apply pass, 1 if some fail and 2
    if the scheduler cannot be started.

    \b
    pipistrelle check scheduler -- ./my_scheduler {endpoint}
    pipistrelle check scheduler --dialect batsim -- batsched -v easy_bf -s {endpoint}
    """
    from pipistrelle.runs.conformance.scripts import SCRIPTS

    scripts = _chosen(SCRIPTS, names)
    import_numpy()

    if as_list:
        if words or as_json or junit is not None or logs is not None:
            raise click.UsageError("--list runs nothing: omit the scheduler and output files.")
        for script in scripts:
            show(script.name, "bold")
            show(f"  {script.situation}")
        return 0
    configured = words == (_SLURM,)
    command_words = _command(words, dialect)
    from pipistrelle.runs.conformance.suite import play_script

    outcomes, seconds = [], []
    for script in scripts:
        began = time.perf_counter()
        outcomes.append(
            play_script(script, command_words, dialect=dialect, limit=limit, configured=configured)  # type: ignore[arg-type]
        )
        seconds.append(time.perf_counter() - began)
        if not outcomes[-1].log and outcomes[-1].verdict == "failed":
            raise _never_came(outcomes[-1])
        if not as_json:
            _print(outcomes[-1])
        if logs is not None:
            _write_log(logs, outcomes[-1])
    if junit is not None:
        write_junit(junit, "pipistrelle check scheduler", map(_junit_line, outcomes, seconds))
    verdicts: list[str] = [outcome.verdict for outcome in outcomes]
    counts = {verdict: verdicts.count(verdict) for verdict in _STYLES}
    if as_json:
        told = {**counts, "dialect": dialect, "scripts": [_plain(outcome) for outcome in outcomes]}
        click.echo(json.dumps(told, indent=2))
    else:
        passed, failed, skipped = counts.values()
        rest = f", {skipped} not run, because they do not apply" if skipped else ""
        show(f"{passed} passed, {failed} failed{rest}", "bold")
    return _FAILED if counts["failed"] else 0


def _never_came(outcome: "ScriptOutcome") -> "PipistrelleError":
    """Return the error that reports a scheduler which never connected."""
    from pipistrelle.protocol.base.errors import PipistrelleError

    printed = outcome.printed.strip().splitlines()
    return PipistrelleError(
        f"the scheduler exchanged no message: {' '.join(outcome.lines).removesuffix('.')}",
        found=f"'{printed[-1]}' as the last line that it printed" if printed else None,
        hint="Does it start without Pipistrelle, and does it connect to the address given as {endpoint}?",
    )


def _chosen(scripts: "Sequence[Script]", names: tuple[str, ...]) -> "list[Script]":
    from fnmatch import fnmatch

    from pipistrelle.protocol.base.errors import did_you_mean

    known = [script.name for script in scripts]
    for text in names:
        if not any(text in name or fnmatch(name, text) for name in known):
            raise click.BadParameter(f"no test is called '{text}'. {did_you_mean(text, known)}", param_hint="-k")
    return [
        script
        for script in scripts
        if not names or any(text in script.name or fnmatch(script.name, text) for text in names)
    ]


def _command(words: tuple[str, ...], dialect: str) -> list[str]:
    """Return the command that starts the scheduler.

    For a bundled name or a folder, this is the command that ``pipistrelle run`` would use.
    """
    from pipistrelle.runs.description.spec import RunSpec
    from pipistrelle.runs.execution.child import check_command, own_command
    from pipistrelle.runs.execution.connection import check_scheduler

    if not words:
        raise click.UsageError(
            "no scheduler is given. Name one, or give a program: pipistrelle check scheduler -- CMD... {endpoint}."
        )
    spec = RunSpec(scheduler=words[0] if len(words) == 1 else words)
    check_scheduler(spec)
    if spec.program is not None:
        return list(spec.program)
    if os.path.isfile(words[0]) and os.access(words[0], os.X_OK):
        check_command(words)  # raises the error that says what is missing
    if words != (_SLURM,):
        spec.make_policy()
    more = [] if dialect == "batsim" else ["--cancellations"]  # they are sent on request only
    return own_command(words[0], *more, batsim=dialect == "batsim")


def _print(outcome: "ScriptOutcome") -> None:
    from pipistrelle.protocol.base.errors import legible

    print_verdict(outcome.verdict, _STYLES[outcome.verdict], outcome.name, outcome.lines)
    if outcome.verdict != "failed":
        return
    show(f"           situation: {outcome.situation}")
    if len(outcome.log) > _MOST_FRAMES:
        show(f"           ... {len(outcome.log) - _MOST_FRAMES} messages before", "dim")
    for side, frame in outcome.log[-_MOST_FRAMES:]:
        show(f"           {_MARKS[side]} {legible(frame, _LONGEST)}", "dim")
    for text in outcome.printed.splitlines()[-3:]:
        show(f"           it printed: {legible(text, _LONGEST)}", "dim")


def _plain(outcome: "ScriptOutcome") -> dict[str, object]:
    from pipistrelle.protocol.base.errors import cut

    told: dict[str, object] = {
        "name": outcome.name,
        "situation": outcome.situation,
        "verdict": outcome.verdict,
        "problems": outcome.lines,
    }
    if outcome.verdict == "failed":
        frames = outcome.log[-_MOST_TOLD:]
        told["messages"] = [{"from": side, "frame": cut(frame, _LONGEST_TOLD)} for side, frame in frames]
        told["printed"] = outcome.printed
    return told


def _write_log(folder: Path, outcome: "ScriptOutcome") -> None:
    """Write the messages of a failed test to its log file.

    If the test passed, remove an old log file.
    """
    from pipistrelle.server.outputs.lock import unwritable_folder
    from pipistrelle.server.outputs.once import write_output

    path = folder / f"{outcome.name}.log"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable_folder(folder, error, "--logs") from None
    if outcome.verdict != "failed":
        with suppress(OSError):
            path.unlink()
        return
    lines = [f"# {outcome.situation}", *(f"# {line}" for line in outcome.lines)]
    lines += [f"{_MARKS[side]} {frame}" for side, frame in outcome.log]
    lines += [f"# it printed: {line}" for line in outcome.printed.splitlines()]
    write_output(path, "\n".join(lines) + "\n", "--logs")


def _junit_line(outcome: "ScriptOutcome", seconds: float) -> tuple[str, str, float, list[str]]:
    lines = [*outcome.lines]
    if outcome.verdict == "failed":
        lines += [f"{_MARKS[side]} {frame[:_LONGEST]}" for side, frame in outcome.log[-_MOST_FRAMES:]]
    return outcome.name, outcome.verdict, seconds, lines
