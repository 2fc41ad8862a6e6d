"""Schedulers in other languages: a folder with a file that says how its program is built and run."""

import os
import shlex
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from pipistrelle.protocol.base.errors import PipistrelleError, printable
from pipistrelle.protocol.base.shapes import misfit
from pipistrelle.protocol.base.toml import read_toml
from pipistrelle.schedulers.catalogue.names import FOREIGN_FILE, PLACEHOLDER

#: stands for the folder in a program's words
_FOLDER: Final = "{folder}"
_MANUAL: Final = "'pipistrelle help foreign-schedulers' lists every key."


class ForeignError(PipistrelleError):
    """A folder that does not say how its scheduler is run, or whose program was not built yet."""


class ForeignScheduler(Struct, frozen=True, forbid_unknown_fields=True):
    """The keys of ``scheduler.toml``; ``{folder}`` in them stands for the folder.

    Parameters
    ----------
    argv
        the program and its arguments, one of which has ``{endpoint}`` in it.
    name
        what to call a run of it; empty: as the folder is called.
    build
        the command that builds it; none: it need not be built.
    built
        a file or folder that is there once it was; empty: nothing tells.
    """

    argv: Annotated[tuple[str, ...], Meta(min_length=1)]
    name: str = ""
    build: tuple[str, ...] = ()
    built: str = ""

    def __post_init__(self) -> None:
        """Refuse a program that would not know where its server is."""
        if not any(PLACEHOLDER in word for word in self.argv):
            raise ValueError(f"expected {PLACEHOLDER} in one of the words of argv, found {shlex.join(self.argv)}")
        if self.built and not self.build:
            raise ValueError(f"expected build beside built, found only {self.built}")


def read_foreign(folder: str) -> ForeignScheduler:
    """Return what a folder says of its scheduler, with the folder's name in its words.

    Raises
    ------
    ForeignError
        if the file cannot be read, has an unknown key or a value of the wrong type, or names no ``{endpoint}``.
    """
    path = Path(folder, FOREIGN_FILE)
    where = printable(str(path))
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ForeignError(f"cannot read the file ({error.strerror or error})", where=where) from None
    except UnicodeDecodeError as error:
        raise ForeignError("the file is not UTF-8 text", where=f"{where}, byte {error.start}") from None
    raw = read_toml(text, where, ForeignError, manual=_MANUAL, hint='Texts need quotes, as in name = "mine".')
    try:
        found = msgspec.convert(raw, ForeignScheduler)
    except msgspec.ValidationError as error:
        raise misfit(error, raw, ForeignScheduler, where, ForeignError, _MANUAL) from None
    home = folder.rstrip("/")
    return ForeignScheduler(
        argv=tuple(word.replace(_FOLDER, home) for word in found.argv),
        name=found.name or Path(folder).resolve().name,
        build=tuple(word.replace(_FOLDER, home) for word in found.build),
        built=found.built.replace(_FOLDER, home),
    )


def check_built(folder: str) -> None:
    """Raise ForeignError if a folder's program was not built yet, as far as one can tell."""
    found = read_foreign(folder)
    if found.built and not os.path.exists(found.built):
        raise ForeignError(
            "the scheduler was not built yet",
            where=printable(folder),
            found=f"no {printable(found.built)}",
            hint=f"Build it: {printable(shlex.join(found.build))}",
        )
