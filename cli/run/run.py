"""``pipistrelle run``: simulate with server and scheduler."""

import os
import re
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from pipistrelle.cli.options.parts import part_options
from pipistrelle.cli.options.sections import CONNECTION, OUTPUTS, Command, in_section
from pipistrelle.cli.options.shared import (
    folder_option,
    live_options,
    overwrite_option,
    record_option,
    scheduler_option,
    snapshot_options,
)
from pipistrelle.cli.run.described import blamed, described, reliability_options, simulation_options, spec_file
from pipistrelle.cli.run.simulate import Ways, read_inputs, simulate
from pipistrelle.cli.terminal.console import import_numpy
from pipistrelle.cli.terminal.guard import output_files
from pipistrelle.protocol.base.errors import PipistrelleError, did_you_mean
from pipistrelle.runs.description.policy import short_name, split_words
from pipistrelle.schedulers.catalogue.names import (
    FOREIGN_FILE,
    PLACEHOLDER,
    classes_in,
    is_ours,
    is_policy_name,
    registered,
)

if TYPE_CHECKING:
    from pipistrelle.runs.description.spec import RunSpec
    from pipistrelle.server.setup.setup import Setup

_OUTPUTS: Final = "pipistrelle-out"
#: most characters of each part of the folder's name, and of the name
_NAME_PART: Final = 50
_NAME: Final = 200
_ODD: Final = re.compile(r"[:/\s\0]+")


class RunCommand(Command):
    """The class of the command ``pipistrelle run``.

    If ``--scheduler`` is a program, all words after it are its arguments. The first argument of the command may be a
    scheduler's name instead of a run description.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Remove the program's arguments before click parses the rest."""
        ctx.obj = None
        place = next((i for i, word in enumerate(args) if word.partition("=")[0] == "--scheduler"), None)
        if place is not None:
            _, mark, value = args[place].partition("=")
            words = [*([value] if mark else []), *args[place + 1 :]]
            if words and not words[0].startswith("-") and not is_policy_name(words[0]):
                whole = PLACEHOLDER in words[0]  # quoted: the command is one word, options may follow
                ctx.obj = list(split_words(words[0], "--scheduler")) if whole else words
                args = args[:place] + (words[1:] if whole else [])
        rest = super().parse_args(ctx, args)
        name = str(ctx.params.get("spec_file") or "")
        if name and not os.path.exists(name) and name in registered():
            if place is not None:
                ctx.fail(f"the scheduler is given twice, as '{name}' and with --scheduler. Omit one of them.")
            ctx.params |= {"spec_file": None, "scheduler": name}
            ctx.set_parameter_source("scheduler", ParameterSource.COMMANDLINE)
        return rest


@click.command(
    cls=RunCommand,
    common=(
        *("workload", "platform", "scheduler", "transform", "until", "failures", "seed", "out", "in_process", "live"),
    ),
)
@spec_file("scheduler")
@simulation_options
@reliability_options
@scheduler_option(
    f"Scheduler: bundled name, file.toml, file.py:CLASS, folder, or program (it connects to {PLACEHOLDER}).",
    default="easy",
    metavar="NAME|CMD...",
)
@part_options
@in_section(
    CONNECTION,
    click.option("--in-process", is_flag=True, help="Run scheduler and simulator in one process, which is faster."),
    click.option(
        "--pin/--no-pin", default=True, help="Run simulator and bundled scheduler on the same processor core (Linux)."
    ),
)
@folder_option("Output folder.", show_default=f"a new one in {_OUTPUTS}/")
@overwrite_option("another run")
@record_option
@in_section(OUTPUTS, live_options, snapshot_options)
@click.pass_context
def command(ctx: click.Context, /, spec_file: Path | None, in_process: bool, out: Path | None, **options: Any) -> None:
    """Simulate a workload under a scheduler.

    Without options, this simulates the bundled workload 'demo' under EASY backfilling. SPEC is the name of a scheduler,
    a TOML file that describes a run, or the out_command.json of an earlier run. Options override the values of SPEC.
    'pipistrelle show' lists the bundled workloads, machines and schedulers.

    If --scheduler is a program, the words after it are its arguments. Pipistrelle replaces {endpoint} in them by the
    address to which the program connects.

    \b
    pipistrelle run -w KTH-SP2-1996-2.1-cln.swf.gz -p kth-sp2
    pipistrelle run --scheduler ./my_scheduler {endpoint}
    pipistrelle run pipistrelle-out/demo-easy-1/out_command.json
    """
    words: list[str] | None = ctx.obj
    how = Ways.taken(options)
    if how.overwrite and out is None:
        raise click.UsageError("--overwrite needs --out: without --out, each run gets a new folder.")
    own = words is None and not (spec_file is None and is_ours(options["scheduler"]))
    if not (in_process and own):  # a user's policy may need threads
        import_numpy()
    # Imported late, so that help starts fast.
    from msgspec.structs import replace

    from pipistrelle.runs.execution.connection import Connection, InProcess, WithChild, check_scheduler

    if words is not None and not any(PLACEHOLDER in word for word in words):
        raise unknown_scheduler(words[0])
    spec = described(ctx, spec_file, options, decides=words is None)
    if words is not None:
        spec = replace(spec, scheduler=tuple(words))
    alone = spec.batsim is not None and spec.batsim.no_sched
    with blamed(spec_file, spec, ctx):
        if not alone:
            check_scheduler(spec)
        if in_process:
            _check_in_process(ctx, spec, options)
        policy = None if alone or spec.program is not None else spec.make_policy()
    if options["insecure"] and options["endpoint"] is None:
        raise click.UsageError("--insecure needs --endpoint: without it, other machines cannot connect anyway.")
    spec, setup = read_inputs(
        spec, spec_file, [*(output_files(out) if out is not None else ()), how.timings, how.record]
    )
    if policy is not None:
        name = short_name(spec.scheduler) if spec.code is None else policy.name
    else:
        name = spec.program_name or "none"
    folder = out or _new_folder(spec, setup, name)
    connection: Connection
    if in_process or alone:
        connection = InProcess(policy)
    else:
        verbose = ctx.find_root().params["verbose"]
        called = name if policy is None else policy.name
        connection = WithChild(allow_remote=options.pop("insecure"), **options, verbose=verbose, name=called)
    try:
        simulate(spec, setup, connection, folder, how)
    except (PipistrelleError, KeyboardInterrupt):
        if out is None:  # empty if the scheduler never connected
            with suppress(OSError):
                folder.rmdir()
        raise


def _check_in_process(ctx: click.Context, spec: "RunSpec", connection: dict[str, Any]) -> None:
    """Raise a usage error for options that have no effect in one process."""
    if spec.program is not None:
        raise click.UsageError("a scheduler that is a program cannot run inside the server: omit --in-process.")
    for name in connection:
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--in-process and --{name.replace('_', '-')} exclude each other: omit one of them.")
    if spec.dialect == "batsim":
        raise click.UsageError("--in-process uses no protocol: omit --dialect batsim.")


def unknown_scheduler(scheduler: str) -> click.UsageError:
    """Return the error for an unknown scheduler."""
    if os.path.isdir(scheduler):
        return click.UsageError(
            f"the folder '{scheduler}' has no {FOREIGN_FILE}, which says how to start its scheduler."
        )
    if hint := classes_in(scheduler):
        return click.UsageError(f"there is no scheduler '{scheduler}'. {hint}")
    return click.UsageError(
        f"there is no scheduler '{scheduler}'. {did_you_mean(scheduler, list(registered()))} "
        f"To run a program, write {PLACEHOLDER} among its arguments, and give --scheduler as the last option."
    )


def _new_folder(spec: "RunSpec", setup: "Setup", scheduler: str) -> Path:
    """Create the run's output folder, with a unique name such as ``demo-easy-1``."""
    from pipistrelle.server.outputs.lock import unwritable_folder

    words = [setup.name, Path(scheduler).name, spec.order, spec.backfill, spec.placement, Path(spec.config or "").stem]
    words += [Path(text.partition(",")[0]).stem for text in (*spec.failures, spec.outages or "")]
    if setup.reliability is not None and setup.reliability.failures is not None:
        words.append(f"seed{spec.seed}")
    name = "-".join(_ODD.sub("-", word[:_NAME_PART]) for word in words if word)[:_NAME]
    for number in count(1):
        folder = Path(_OUTPUTS) / f"{name}-{number}"
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise unwritable_folder(Path(_OUTPUTS), error) from None
        return folder
    raise AssertionError("unreachable")
