"""The command ``pipistrelle``: its groups, its errors, its exit codes."""

import atexit
import io
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from types import FrameType
from typing import Any, Final, NamedTuple, NoReturn, TextIO

import click

from pipistrelle.cli.terminal.exits import BUG, EXHAUSTED, FULL, GONE, INTERRUPTED, NO_MEMORY, NOT_WRITTEN


class CommandPlace(NamedTuple):
    """Where a command is defined, and what `pipistrelle --help` says of it.

    The place is a module of this package. The command is called `command` there, or as the place says behind a colon.
    """

    place: str
    purpose: str


#: {command: its place}; a module is imported when its command is used, so that the command line starts fast
COMMANDS: Final = {
    "run": CommandPlace("run.run", "Simulate a workload: server and scheduler as two processes."),
    "serve": CommandPlace("run.serve", "Serve one simulation to one scheduler."),
    "schedule": CommandPlace("schedulers.schedule", "Take the decisions for one simulation."),
    "list": CommandPlace("inputs.library:list_command", "List the schedulers, platforms, workloads there are."),
    "show": CommandPlace("inputs.library:show_command", "Print a bundled platform, scheduler or workload."),
    "help": CommandPlace("manual", "Print a page of the documentation, or the help of a command."),
    "validate": CommandPlace("inputs.validate", "Say what a file is, what is in it, what is wrong with it."),
    "workload": CommandPlace("workload.group", "Make workloads, describe them, change them."),
    "convert": CommandPlace("inputs.convert", "Convert a workload or a centre's log to another format."),
    "explain": CommandPlace("results.explain", "Explain why a job of a run waited."),
    "compare": CommandPlace("results.compare", "Compare runs of the same jobs; tell where they part."),
    "ci": CommandPlace("schedulers.ci", "Replay cases, and compare what comes of them with golden results."),
    "conformance": CommandPlace("schedulers.conformance", "Play awkward situations to your scheduler."),
    "report": CommandPlace("results.report", "Show runs as one page that opens anywhere."),
    "accuracy": CommandPlace("results.accuracy", "Tell how near a run comes to what really happened."),
    "steps": CommandPlace("study.steps", "Tell what it costs to decide at time steps only."),
    "study": CommandPlace("study.group", "Carry out many runs, and tell what they say together."),
    "papers": CommandPlace("study.papers", "Make the tables and figures of five papers anew."),
    "resume": CommandPlace("run.resume", "Go on with a run from its last snapshot."),
    "diff": CommandPlace("results.diff", "Compare two runs: the first difference, and the waits of jobs."),
    "replay": CommandPlace("run.replay", "Play a recorded session to a scheduler, or to the server."),
    "batsim": CommandPlace("run.batsim", "Simulate as Batsim 4 does, from its command line."),
    "placement": CommandPlace("results.placement", "Tell where a run's jobs were, and what another order would do."),
    "outages": CommandPlace("inputs.outages", "Make, describe and fit streams of failures."),
    "reliability": CommandPlace("inputs.reliability", "Tell how reliable nodes must be, and size partitions of them."),
    "keys": CommandPlace("schedulers.keys", "Make keys for a scheduler on another machine."),
    "new": CommandPlace("schedulers.new", "Write a scheduler to begin with, in a language of your choice."),
    "yield": CommandPlace("inputs.yields", "Tell the yield of a long-lasting application."),
}


class LazyGroup(click.Group):
    """A group whose commands are imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command."""
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].place.partition(":")
        command: click.Command = getattr(import_module(f"pipistrelle.cli.{module}"), name or "command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands as the table has them: none need be imported."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, place.purpose) for name, place in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Name the closest command when there is none of this name."""
        from pipistrelle.protocol.base.errors import did_you_mean

        if args[0] not in COMMANDS and not args[0].startswith("-"):
            ctx.fail(f"there is no command '{args[0]}'. {did_you_mean(args[0], list(COMMANDS))}")
        return super().resolve_command(ctx, args)


def _version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from pipistrelle.protocol.fields import PROTOCOL_VERSION, package_version

        compiled = ", compiled" if _is_compiled() else ""
        click.echo(f"pipistrelle {package_version()} (protocol {PROTOCOL_VERSION}{compiled})")
        ctx.exit()


def _is_compiled() -> bool:
    """Tell whether the modules that setup.py names are extensions; they are all or none."""
    found = find_spec("pipistrelle.server.simulation.loop")
    return found is not None and found.origin is not None and not found.origin.endswith(".py")


@click.command(
    cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "show_default": True}, no_args_is_help=True
)
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version.")
@click.option(
    "-v", "--verbose", count=True, show_default=False, help="Log more to standard error; twice for debugging."
)
def cli(verbose: int) -> None:
    """Emulate an HPC cluster with a scheduler in the loop.

    'pipistrelle run' simulates a bundled workload under EASY backfilling, as two processes. With 'serve' and
    'schedule' the two run in terminals of their own.
    """
    from pipistrelle.cli.terminal.console import configure_log

    configure_log(verbose)


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit: see docs/reference/cli.md for the exit codes."""
    atexit.register(_ignore_interrupts)  # all is done then: a late one must not change the exit code
    try:
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        _open_streams()
        code = _run(args)
    except (click.Abort, KeyboardInterrupt):
        code = INTERRUPTED
        with suppress(KeyboardInterrupt):
            _last_words("interrupted")
    except MemoryError:
        code = NO_MEMORY
        _last_words("out of memory; give it more (ulimit -v, a batch system's limit), or less to do.")
    except BrokenPipeError:  # whoever reads what we say has gone while we said what was wrong
        code = GONE
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
            continue
        _abandon(stream)
    sys.exit(code)


def _open_streams() -> None:
    """Let standard streams that are closed lead nowhere: a file of ours would take the place of one, and its text."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # it takes the lowest number that is free, which is this one
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 - for good


def _last_words(text: str) -> None:
    """Say something where nothing more can be counted on."""
    with suppress(OSError):
        os.write(2, f"pipistrelle: {text}\n".encode())


def _run(args: Sequence[str] | None) -> int:
    from pipistrelle.protocol.base.errors import PipistrelleError

    for number in (signal.SIGTERM, signal.SIGHUP):  # a polite request to end keeps the outputs, as Ctrl-C does
        if signal.getsignal(number) is signal.SIG_DFL:  # nohup has the second ignored
            signal.signal(number, _terminated)
    for stream in (sys.stdout, sys.stderr):  # a file's name may be no text, and a terminal may lack a letter
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code: Any = cli.main(args=args, prog_name="pipistrelle", standalone_mode=False)
        sys.stdout.flush()
    except PipistrelleError as error:
        from pipistrelle.cli.terminal.console import print_error

        print_error(error)
        return error.exit_code
    except getattr(click.exceptions, "NoArgsIsHelpError", ()) as error:  # click before 8.2 has none, and exits itself
        error.show()
        return int(error.exit_code)
    except click.ClickException as error:
        from pipistrelle.cli.terminal.console import print_usage_error

        print_usage_error(error)
        return error.exit_code
    except BrokenPipeError:  # the reader of our output, such as `head`, has gone; often click exits first, with 1
        return GONE
    except (click.Abort, MemoryError):
        raise
    except ImportError as error:
        if "failed to map segment" in str(error):  # a library for which no memory is left
            raise MemoryError from None
        return _bug(error)
    except Exception as error:
        from pipistrelle.cli.terminal.console import say

        if isinstance(error, OSError) and error.errno in FULL and error.filename is None:
            # Our files have errors of their own, so this is standard output.
            _abandon(sys.stdout)
            say(f"cannot write to standard output ({error.strerror}).")
            return NOT_WRITTEN
        if isinstance(error, OSError) and error.errno in EXHAUSTED:
            say(f"{error.strerror}; give it more (ulimit, a batch system's limit), or less to do.")
            return NO_MEMORY
        return _bug(error)
    return code if isinstance(code, int) else 0


def _bug(error: Exception) -> int:
    """Say that whatever else comes is our fault, and still show no traceback to the user."""
    from pipistrelle.cli.terminal.console import print_bug

    print_bug(error)
    return BUG


def _abandon(stream: TextIO) -> None:
    """Let what is still buffered go nowhere: the interpreter would fail to write it once more at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _ignore_interrupts() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def _terminated(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
