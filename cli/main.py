"""The command ``pipistrelle`` and its global options.

Errors and exit codes of all programs are handled here.
"""

import atexit
import gc
import io
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from types import FrameType
from typing import Any, NoReturn, TextIO

import click

from pipistrelle.cli.doors import GROUPS, SETTINGS, LazyGroup
from pipistrelle.cli.terminal.exits import BUG, FULL, GONE, INTERRUPTED, NO_MEMORY, NOT_WRITTEN, exhausted
from pipistrelle.runs.execution import seldom_collected


def _version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from pipistrelle.protocol.fields import PROTOCOL_VERSION, package_version

        compiled = ", compiled" if _is_compiled() else ""
        click.echo(f"pipistrelle {package_version()} (protocol {PROTOCOL_VERSION}{compiled})")
        ctx.exit()


def _is_compiled() -> bool:
    """Return whether this is a compiled build.

    In a compiled build, mypyc has compiled all modules listed in setup.py. In any other build it has compiled none.
    """
    found = find_spec("pipistrelle.server.simulation.loop")
    return found is not None and found.origin is not None and not found.origin.endswith(".py")


@click.command("pipistrelle", cls=LazyGroup, sections=GROUPS, context_settings=SETTINGS, no_args_is_help=True)
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version.")
@click.option(
    "-v", "--verbose", count=True, show_default=False, help="Log more to standard error; -vv logs debugging details."
)
def cli(verbose: int) -> None:
    """Simulate an HPC cluster under a scheduler, bundled or your own.

    'pipistrelle run' simulates a bundled workload under EASY backfilling. 'pipistrelle COMMAND --help' shows the
    options of a command.
    """
    from pipistrelle.cli.terminal.console import configure_log

    configure_log(verbose)


def main(args: Sequence[str] | None = None, program: click.Command = cli) -> NoReturn:
    """Run a command line and exit; docs/reference/cli.md lists the exit codes.

    Args:
        args: the arguments without the program's name; None: the arguments of this process.
        program: the command to run: ``pipistrelle`` or ``pipistrelle-batsim``.
    """
    atexit.register(_ignore_interrupts)  # a late interrupt must not change the exit code
    atexit.register(gc.freeze)  # the operating system frees the memory faster than a last collection of garbage
    try:
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        _open_streams()
        with seldom_collected():
            code = _run(args, program)
    except (click.Abort, KeyboardInterrupt):
        code = INTERRUPTED
        with suppress(KeyboardInterrupt):
            _last_words("interrupted")
    except MemoryError:
        code = NO_MEMORY
        _last_words("out of memory; raise the limit (ulimit -v, batch system) or reduce the work.")
    except BrokenPipeError:  # the reader of the error message is gone
        code = GONE
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
            continue
        _abandon(stream)
    sys.exit(code)


def _open_streams() -> None:
    """Open closed standard streams as /dev/null.

    Otherwise the next opened file would get their descriptor numbers.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 - for good


def _last_words(text: str) -> None:
    """Write a message to standard error.

    This takes as little memory and as few descriptors as possible.
    """
    with suppress(OSError):
        os.write(2, f"pipistrelle: {text}\n".encode())


def _run(args: Sequence[str] | None, program: click.Command) -> int:
    from pipistrelle.protocol.base.errors import PipistrelleError

    for number in (signal.SIGTERM, signal.SIGHUP):  # termination keeps the outputs, like Ctrl-C
        if signal.getsignal(number) is signal.SIG_DFL:  # nohup ignores SIGHUP
            signal.signal(number, _terminated)
    for stream in (sys.stdout, sys.stderr):  # a file name may not be valid text
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code: Any = program.main(args=args, prog_name=program.name, standalone_mode=False)
        sys.stdout.flush()
    except PipistrelleError as error:
        if (lack := exhausted(error)) is not None:
            return _without(lack)
        from pipistrelle.cli.terminal.console import print_error

        print_error(error)
        return error.exit_code
    except getattr(click.exceptions, "NoArgsIsHelpError", ()) as error:  # click before 8.2 exits itself
        error.show()
        return int(error.exit_code)
    except click.ClickException as error:
        if (lack := exhausted(error)) is not None:
            return _without(lack)
        from pipistrelle.cli.terminal.console import print_usage_error

        print_usage_error(error)
        return error.exit_code
    except BrokenPipeError:  # the reader, such as `head`, is gone; click may exit first, with 1
        return GONE
    except (click.Abort, MemoryError):
        raise
    except ImportError as error:
        if "failed to map segment" in str(error):  # no memory to load a library
            raise MemoryError from None
        return _bug(error, program) if (lack := exhausted(error)) is None else _without(lack)
    except Exception as error:
        if (lack := exhausted(error)) is not None:
            return _without(lack)
        from pipistrelle.cli.terminal.console import say

        if isinstance(error, OSError) and error.errno in FULL:
            if error.filename is not None:  # outputs raise their own errors, so this is a temporary file
                from pipistrelle.protocol.base.errors import printable

                say(f"{printable(str(error.filename))}: cannot be written ({error.strerror}). Free space there.")
                return NOT_WRITTEN
            _abandon(sys.stdout)
            say(f"cannot write to standard output ({error.strerror}).")
            return NOT_WRITTEN
        return _bug(error, program)
    return code if isinstance(code, int) else 0


def _without(text: str) -> int:
    """Report that memory or descriptors have run out, and return the exit code.

    ``text`` is the message. The report opens no file.
    """
    _last_words(text)
    return NO_MEMORY


def _bug(error: Exception, program: click.Command) -> int:
    """Report an unexpected exception as a bug, and return the exit code.

    No traceback is printed.
    """
    from pipistrelle.cli.terminal.console import print_bug

    print_bug(error, f"{program.name} {'-vv' if program is cli else '-v debug'} ...")
    return BUG


def _abandon(stream: TextIO) -> None:
    """Discard a stream's buffered output.

    Otherwise the interpreter would fail to write it at exit.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _ignore_interrupts() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def _terminated(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
