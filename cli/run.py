"""``pipistrelle run``: server and scheduler from one command."""

import shlex
import time
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from pipistrelle.cli.console import import_numpy, relax_collector
from pipistrelle.cli.guard import FilledPath, output_files, refuse_overwriting
from pipistrelle.cli.options.parts import PolicySettings, part_options
from pipistrelle.cli.options.reliability import reliability_options, take_reliability
from pipistrelle.cli.options.shared import make_setup, policy_options, policy_words, simulation_options
from pipistrelle.protocol.base.errors import PipistrelleError, did_you_mean
from pipistrelle.schedulers.catalogue.names import is_ours, is_policy_name, registered
from pipistrelle.studies.runs.child import PLACEHOLDER, own_command
from pipistrelle.traces.logs.kinds import Units

if TYPE_CHECKING:
    from pipistrelle.schedulers.policy.interfaces import Policy
    from pipistrelle.server.setup import Setup
    from pipistrelle.server.simulation import Result

_OUTPUTS: Final = "pipistrelle-out"
#: characters of a name that go into a folder's name
_NAME_PART: Final = 50


class RunCommand(click.Command):
    """A command whose ``--scheduler`` takes the rest of the line when its value is a program, not a name."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Cut the scheduler's own arguments off before click sees them."""
        ctx.obj = None
        place = next((i for i, word in enumerate(args) if word.partition("=")[0] == "--scheduler"), None)
        if place is not None:
            _, mark, value = args[place].partition("=")
            words = [*([value] if mark else []), *args[place + 1 :]]
            if words and not words[0].startswith("-") and not is_policy_name(words[0]):
                whole = PLACEHOLDER in words[0]  # quoted: the command is one word, options may follow
                ctx.obj = _split(words[0]) if whole else words
                args = args[:place] + (words[1:] if whole else [])
        return super().parse_args(ctx, args)


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise click.UsageError(f"the scheduler's command cannot be split into words ({error}): {text}") from None


@click.command(cls=RunCommand)
@simulation_options
@reliability_options
@click.option(
    "--scheduler",
    default="easy",
    show_default=True,
    metavar="NAME|CMD...",
    help=f"A scheduler ('list schedulers'), file.toml, file.py:CLASS, or a program with {PLACEHOLDER} among its "
    "arguments; a program takes the rest of the line.",
)
@policy_options
@part_options
@click.option("--in-process", is_flag=True, help="Run the scheduler inside the server, without a socket.")
@click.option(
    "-o",
    "--out",
    type=FilledPath(path_type=Path, file_okay=False),
    help=f"Folder for the outputs; default: a new one under {_OUTPUTS}/.",
)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    platform: str | None,
    workload: str,
    sort: bool,
    units: Units,
    timezone: str | None,
    strict: bool,
    dialect: str,
    scheduler: str,
    order: str | None,
    backfill: str | None,
    placement: str | None,
    settings: PolicySettings,
    in_process: bool,
    out: Path | None,
    progress: bool | None,
    timings: Path | None,
    **connection: Any,
) -> None:
    """Simulate a workload: server and scheduler as two processes, or one.

    Without options: the bundled workload on its bundled machine under EASY backfilling.

    \b
    pipistrelle run -w KTH-SP2-1996-2.1-cln.swf.gz -p kth-sp2
    pipistrelle run --scheduler ./my_scheduler {endpoint}
    """
    words: list[str] | None = ctx.obj
    if not in_process or words is not None or is_ours(scheduler):  # a policy of the user's own may want threads
        import_numpy()
    # Here, not above: help needs none of these.
    from pipistrelle.cli.asked import Asked
    from pipistrelle.cli.execute import progress_observers, report
    from pipistrelle.server.outputs.once import prepare_folder
    from pipistrelle.studies.runs.run import run_with_child

    reliability = take_reliability(connection)
    if words is not None and not any(PLACEHOLDER in word for word in words):
        raise _unknown(words[0])
    if in_process:
        _check_in_process(ctx, words, dialect, connection)
    parts: dict[str, Any] = {"order": order, "backfill": backfill, "placement": placement}
    if words is not None and any(parts.values()):
        raise click.UsageError("--order, --backfill and --placement go with a scheduler of ours, not with a program.")
    if words is not None and settings != PolicySettings():
        raise click.UsageError(f"{settings.words[0]} goes with a scheduler of ours, not with a program.")
    policy = settings.make_policy(scheduler, **parts) if words is None else None
    if connection["allow_remote"] and connection["endpoint"] is None:
        raise click.UsageError("--allow-remote goes with --endpoint: a private socket is never remote.")
    own_files = [scheduler if words is None else None, settings.config, *reliability.files]
    refuse_overwriting([platform, workload, *own_files], [*(output_files(out) if out is not None else ()), timings])
    reading: dict[str, Any] = {"sort": sort, "units": units, "timezone": timezone}
    setup = make_setup(platform, workload, **reading, strict=strict, dialect=dialect, reliability=reliability)
    asked = Asked.of(
        platform,
        workload,
        **reading,
        strict=strict,
        dialect=dialect,
        reliability=reliability,
        scheduler=scheduler if words is None else None,
        program=words,
        parts=parts,
        settings=settings,
    ).to_json()
    folder = prepare_folder(out) if out is not None else _new_folder(setup, _short_name(scheduler, words))
    observers = progress_observers(setup, progress)
    relax_collector()
    if in_process and policy is not None:
        result = _in_process(setup, policy, out=folder, observers=observers, asked=asked)
    else:
        if words is None:
            batsim = dialect == "batsim"
            more = ["--allow-remote"] if batsim and connection["allow_remote"] else []
            child = own_command(
                scheduler,
                *policy_words(parts),
                *settings.words,
                *more,
                verbose=ctx.find_root().params["verbose"],
                batsim=batsim,
            )
        else:
            child = words
        name = _short_name(scheduler, words) if policy is None else policy.name
        try:
            result = run_with_child(setup, child, out=folder, observers=observers, name=name, asked=asked, **connection)
        except (PipistrelleError, KeyboardInterrupt):
            if out is None:  # the scheduler never came: the folder that was made for the run is of no use
                with suppress(OSError):
                    folder.rmdir()
            raise
    report(result, setup, folder, timings)


def _check_in_process(ctx: click.Context, words: list[str] | None, dialect: str, connection: dict[str, Any]) -> None:
    """Raise a usage error for options that a run in one process has no use for."""
    if words is not None:
        raise click.UsageError("a program cannot run inside the server: leave out --in-process.")
    for name in connection:
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--in-process uses no --{name.replace('_', '-')}: leave one of the two out.")
    if dialect == "batsim":
        raise click.UsageError("--in-process speaks no dialect at all: leave out --dialect batsim.")


def _unknown(scheduler: str) -> click.UsageError:
    return click.UsageError(
        f"there is no scheduler '{scheduler}'. {did_you_mean(scheduler, list(registered()))} "
        f"A program needs {PLACEHOLDER} among its arguments, and takes the rest of the line."
    )


def _in_process(setup: "Setup", policy: "Policy", **outputs: Any) -> "Result":
    from pipistrelle.protocol.fields import package_version
    from pipistrelle.schedulers.policy.runtime import Runtime
    from pipistrelle.server.simulation import simulate
    from pipistrelle.server.transport.in_process import InProcessTransport
    from pipistrelle.studies.runs.run import deferred_interrupts

    runtime = Runtime(policy, package_version())
    with deferred_interrupts() as interrupted:
        return simulate(setup, InProcessTransport(runtime, interrupted), clock=time.perf_counter, **outputs)


def _short_name(scheduler: str, words: list[str] | None) -> str:
    """Return what to call a run: a policy's name, or that of the script or program that decides."""
    if words is None:
        return scheduler.removeprefix("./")
    scripts = [word for word in words[1:] if Path(word).suffix and not word.startswith("-") and PLACEHOLDER not in word]
    return Path(scripts[0] if scripts else words[0]).stem


def _new_folder(setup: "Setup", scheduler: str) -> Path:
    """Make a new folder named after the run; numbers, not times, tell runs apart."""
    from pipistrelle.server.outputs.once import prepare_folder
    from pipistrelle.server.outputs.recorder import unwritable

    name = f"{setup.name[:_NAME_PART]}-{Path(scheduler).name[:_NAME_PART]}".replace(":", "-")
    prepare_folder(Path(_OUTPUTS))
    for number in count(1):
        folder = Path(_OUTPUTS) / f"{name}-{number}"
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        except OSError as error:
            raise unwritable(folder, error) from None
        return folder
    raise AssertionError("unreachable")
