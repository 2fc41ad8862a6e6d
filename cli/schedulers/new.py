"""``pipistrelle new``: a scheduler of one's own to begin with, in the language of one's choice."""

from importlib.resources import files
from pathlib import Path
from typing import Final, NamedTuple

import click

from pipistrelle.cli.options.fields import Choice
from pipistrelle.cli.options.files import output_option
from pipistrelle.cli.options.sections import OUTPUTS, SCHEDULER, Group, in_section
from pipistrelle.protocol.base.errors import PipistrelleError


class _Language(NamedTuple):
    """The suffix of its files, how a scheduler is built, and how it is run; ``{}`` stands for the file's name."""

    suffix: str
    build: str | None
    run: str


_LANGUAGES: Final = {
    "python": _Language(".py", None, "python {}"),
    "js": _Language(".js", None, "node {}"),
    "go": _Language(".go", "go build -o scheduler {}", "./scheduler"),
    "rust": _Language(".rs", "rustc -O -o scheduler {}", "./scheduler"),
    "cpp": _Language(".cpp", "g++ -std=c++17 -O2 -o scheduler {}", "./scheduler"),
}


class AlreadyThere(PipistrelleError):
    """What is new must not replace what there is."""


@click.group(cls=Group)
def command() -> None:
    """Write a scheduler to begin with, in a language of your choice."""


@command.command("scheduler")
@in_section(
    SCHEDULER,
    click.option(
        "--language",
        type=Choice(list(_LANGUAGES)),
        default="python",
        help="What it is written in; each needs nothing but the language, python also pyzmq.",
    ),
)
@in_section(OUTPUTS, output_option("File to write; default: scheduler, with the language's suffix.", required=False))
def scheduler_command(language: str, output: Path | None) -> None:
    """Write a scheduler, first come, first served, that speaks the native protocol, and say how it is run."""
    chosen = _LANGUAGES[language]
    path = Path(f"scheduler{chosen.suffix}") if output is None else output
    text = (files("pipistrelle.cli") / "skeletons" / f"fcfs{_kept_as(chosen.suffix)}").read_text(encoding="utf-8")
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError:
        raise AlreadyThere("the file is there already", where=str(path), hint="Name another with --output.") from None
    except OSError as error:
        raise AlreadyThere(f"cannot write the file ({error.strerror or error})", where=str(path)) from None
    click.echo(f"written to {path}; it is run so:")
    if chosen.build is not None:
        click.echo(f"  {chosen.build.format(path)}")
    click.echo(f"  pipistrelle run --strict --scheduler {chosen.run.format(path)} {{endpoint}}")


def _kept_as(suffix: str) -> str:
    """Return the suffix of the file in the package: what is Python there would count as a module of it."""
    return ".python" if suffix == ".py" else suffix
