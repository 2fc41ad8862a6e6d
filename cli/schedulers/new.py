"""``pipistrelle new scheduler``: a working scheduler to start from."""

import shlex
from importlib.resources import files
from pathlib import Path
from typing import Final, NamedTuple

import click

from pipistrelle.cli.options.fields import Choice
from pipistrelle.cli.options.files import output_option
from pipistrelle.cli.options.sections import OUTPUTS, SCHEDULER, Command, in_section
from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.protocol.base.whole import whole_file


class _Language(NamedTuple):
    """The file suffix of a programming language, and its commands.

    They build and run a program. The commands contain ``{source}`` and ``{program}`` in place of the file names.
    """

    suffix: str
    build: str | None
    run: str

    def commands(self, path: Path) -> list[str]:
        """Return the commands that build and run the scheduler in this file."""
        program = path.with_suffix("" if path.suffix else ".out")
        names = {
            "source": shlex.quote(str(path)),
            "program": shlex.quote(f"{'' if path.is_absolute() else './'}{program}"),
        }
        build = [] if self.build is None else [self.build.format(**names)]
        return [*build, f"pipistrelle run --strict --scheduler {self.run.format(**names)} {{endpoint}}"]


_LANGUAGES: Final = {
    "python": _Language(".py", None, "python {source}"),
    "js": _Language(".js", None, "node {source}"),
    "go": _Language(".go", "go build -o {program} {source}", "{program}"),
    "rust": _Language(".rs", "rustc -O -o {program} {source}", "{program}"),
    "cpp": _Language(".cpp", "g++ -std=c++17 -O2 -o {program} {source}", "{program}"),
}


class AlreadyThere(PipistrelleError):
    """The file to write already exists, or cannot be written."""


@click.command("scheduler", cls=Command)
@click.argument("name", default="scheduler", required=False)
@in_section(
    SCHEDULER,
    click.option(
        "--language",
        type=Choice(list(_LANGUAGES)),
        default="python",
        help="Programming language (only python needs a package: pyzmq).",
    ),
)
@in_section(OUTPUTS, output_option("File to write, instead of NAME and the language's suffix.", required=False))
def command(name: str, language: str, output: Path | None) -> None:
    """Write a small working scheduler, and show how to run it.

    The scheduler starts jobs first come, first served. It supports nodes that jobs share, and uses Pipistrelle's own
    protocol. NAME is the file's name without the suffix.

    \b
    pipistrelle new scheduler mine --language cpp
    """
    chosen = _LANGUAGES[language]
    path = Path(name if name.endswith(chosen.suffix) else f"{name}{chosen.suffix}") if output is None else output
    text = (files("pipistrelle.cli") / "skeletons" / f"fcfs{_kept_as(chosen.suffix)}").read_text(encoding="utf-8")
    commands = chosen.commands(path)
    for usual, own in zip(chosen.commands(Path(f"scheduler{chosen.suffix}")), commands, strict=True):
        text = text.replace(usual, own)
    from pipistrelle.server.outputs.csv_file import unwritable

    try:
        with whole_file(path, fresh=True) as file:
            file.write(text.encode())
    except FileExistsError:
        raise AlreadyThere("the file exists", where=str(path), hint="Choose another NAME or --out.") from None
    except OSError as error:
        raise unwritable(path, error) from error
    click.echo(f"Wrote {path}. Run it with:")
    for line in commands:
        click.echo(f"  {line}")


def _kept_as(suffix: str) -> str:
    """Return the suffix under which the package stores a template.

    It is ``.python`` instead of ``.py``, because a .py file would count as a module of the package.
    """
    return ".python" if suffix == ".py" else suffix
