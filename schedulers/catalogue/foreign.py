"""Schedulers in other languages: folders with a ``scheduler.toml``.

The file says how to build and run the scheduler.
"""

import os
import shlex
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from pipistrelle.protocol.base.errors import PipistrelleError, printable
from pipistrelle.protocol.base.shapes import misfit
from pipistrelle.protocol.base.toml import read_toml
from pipistrelle.protocol.base.whole import read_whole_text
from pipistrelle.schedulers.catalogue.names import FOREIGN_FILE, PLACEHOLDER

#: placeholder for the folder in command lines
_FOLDER: Final = "{folder}"
_MANUAL: Final = "'pipistrelle help foreign-schedulers' lists every key."


class ForeignError(PipistrelleError):
    """The scheduler's folder is incomplete, or its program is not built."""


class ForeignScheduler(Struct, frozen=True, forbid_unknown_fields=True):
    """The keys of ``scheduler.toml``.

    ``{folder}`` in a value means the folder of that file.

    Attributes:
        argv: the program and its arguments; ``{endpoint}`` must be in one of them.
        name: the scheduler's name in outputs; empty: the folder's name.
        build: build command, or empty.
        built: file or folder that exists after the build; empty: unknown.
    """

    argv: Annotated[tuple[str, ...], Meta(min_length=1)]
    name: str = ""
    build: tuple[str, ...] = ()
    built: str = ""

    def __post_init__(self) -> None:
        """Raise ValueError if argv has no ``{endpoint}``, or ``built`` has no ``build``."""
        if not any(PLACEHOLDER in word for word in self.argv):
            raise ValueError(f"expected {PLACEHOLDER} in one of the words of argv, found {shlex.join(self.argv)}")
        if self.built and not self.build:
            raise ValueError(f"expected build together with built, found only {self.built}")


def read_text(path: Path, error: type[PipistrelleError]) -> tuple[str, str]:
    """Return (text, name for messages) of a user's file.

    Raise ``error`` if the file cannot be read.
    """
    where = printable(str(path))
    try:
        return read_whole_text(path), where
    except FileNotFoundError:
        raise error("there is no such file", where=where) from None
    except UnicodeDecodeError as fault:
        raise error("the file is not UTF-8 text", where=f"{where}, byte {fault.start}") from None
    except OSError as fault:
        raise error(f"cannot read the file ({fault.strerror or fault})", where=where) from None
    except ValueError as fault:  # a null character in the name
        raise error(f"cannot read the file ({fault})", where=where) from None


def read_foreign(folder: str) -> ForeignScheduler:
    """Return the keys of a folder's ``scheduler.toml``, with defaults.

    Raise ForeignError if the file is invalid.
    """
    path = Path(folder, FOREIGN_FILE)
    text, where = read_text(path, ForeignError)
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
    """Raise ForeignError if a folder's program is known not to be built."""
    found = read_foreign(folder)
    if found.built and not os.path.exists(found.built):
        raise ForeignError(
            "the scheduler is not built",
            where=printable(folder),
            found=f"no {printable(found.built)}",
            hint=f"Build it: {printable(shlex.join(found.build))}",
        )
