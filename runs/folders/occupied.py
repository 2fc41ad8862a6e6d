"""Protect the results of a finished run from being replaced by another run's."""

import os
from pathlib import Path
from typing import Any, Final

import msgspec

from pipistrelle.protocol.base.errors import PipistrelleError, printable
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.folders.files import output_json
from pipistrelle.server.outputs.folder import COMMAND_FILE, OUTPUT_PREFIX, SUMMARY_FILE

#: parts of a description that the same command need not repeat: digests of the input files
_MAY_CHANGE: Final = ("files",)
_HINT: Final = "Choose another folder, or replace the results with --overwrite."


class FolderOccupied(PipistrelleError):
    """The output folder has the results of another run."""


def check_prefix(prefix: str, option: str) -> None:
    """Raise FolderOccupied if files would replace those of a finished run.

    The files have a prefix such as ``DIR/out``.

    Args:
        option: command-line option that chooses the prefix.
    """
    folder, name = os.path.split(prefix)
    if f"{name}_" == OUTPUT_PREFIX and (Path(folder) / SUMMARY_FILE).is_file():
        raise FolderOccupied(
            "the folder has the results of a run, with the same prefix",
            where=printable(folder or "."),
            hint=f"Choose another prefix or folder with {option}.",
        )


def check_unoccupied(folder: Path, spec: RunSpec) -> None:
    """Raise FolderOccupied if the folder has a finished run with another description.

    A run without a summary is not finished. Digests of input files are not compared, so changed inputs raise no error.
    """
    if not (folder / SUMMARY_FILE).is_file():
        return
    try:
        found = output_json(folder / COMMAND_FILE)
    except PipistrelleError:
        found = None
    mine: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(spec))
    if found is None:
        raise FolderOccupied(
            "the folder has the results of a run, but no out_command.json that describes it",
            where=printable(str(folder)),
            hint=_HINT,
        )
    others = [key for key in sorted(found.keys() | mine.keys()) if found.get(key) != mine.get(key)]
    others = [key for key in others if key not in _MAY_CHANGE]
    if others:
        raise FolderOccupied(
            "the folder has the results of another run",
            where=printable(str(folder)),
            found=f"another {', '.join(printable(key) for key in others[:4])}" + (", ..." if len(others) > 4 else ""),
            hint=_HINT,
        )
