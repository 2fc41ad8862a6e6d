"""Checks on file names, before anything is read or written."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import click


class FilledPath(click.Path):
    """A path that must not be empty.

    It would be empty if it came from an unset shell variable.
    """

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        """Return the path; raise a usage error that names the option if the path is empty."""
        if value == "":
            self.fail("the path is empty.", param, ctx)
        return super().convert(value, param, ctx)


#: kinds of paths that options name
FILE: Final = FilledPath(path_type=Path, dir_okay=False)
FOLDER: Final = FilledPath(path_type=Path, file_okay=False)
FILE_OR_FOLDER: Final = FilledPath(path_type=Path)


def output_files(out: Path) -> list[Path]:
    """Return every file that a run may write into its folder."""
    from pipistrelle.server.outputs.folder import OUTPUT_FILES

    return [out / name for name in (*OUTPUT_FILES, "connection.json")]


def refuse_overwriting(inputs: Iterable[str | None], outputs: Iterable[str | Path | None]) -> None:
    """Raise a usage error if an output is also an input or another output."""
    taken = {os.path.realpath(name): "read" for name in inputs if name is not None and os.path.isfile(name)}
    for output in outputs:
        if output is None:
            continue
        real = os.path.realpath(output)
        if real in taken and real != os.devnull:
            raise click.UsageError(
                f"{output} is also {taken[real]} by this command; nothing was overwritten. Name another file."
            )
        taken[real] = "written"
