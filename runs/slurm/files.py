"""Read the files of a Slurm cluster.

They are slurm.conf, the files that it includes, the files beside it, and accounting files.
"""

import os
import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from msgspec import Struct

from pipistrelle.platforms.description import Platform
from pipistrelle.platforms.slurm.conf import KeyFinding, SlurmConf, SlurmConfigError, is_slurm_conf, read_slurm_conf
from pipistrelle.platforms.slurm.gres import GresLine, read_gres_conf
from pipistrelle.platforms.slurm.lines import MOST_FILES
from pipistrelle.platforms.slurm.machine import slurm_platform
from pipistrelle.platforms.slurm.nodes import nodes_of
from pipistrelle.protocol.base.errors import InputError, printable, quoted
from pipistrelle.traces.files import beginning, is_inside, read_text
from pipistrelle.traces.logs.times import Clock

GRES: Final = "gres.conf"
TOPOLOGY: Final = "topology.conf"
#: largest file of a configuration (bytes)
_LARGEST: Final = 16 * 1024 * 1024
_INCLUDE: Final = re.compile(r"^[ \t]*include[ \t]+(\S+)", re.IGNORECASE | re.MULTILINE)
_START: Final = re.compile(r"^#[ \t]*start[ \t]*[:=][ \t]*(\S+)", re.IGNORECASE | re.MULTILINE)
_ZERO: Final = ",zero="
_DEEPEST: Final = 10


class SlurmFiles(Struct, frozen=True):
    """A slurm.conf and the gres.conf beside it.

    ``findings`` are about keys of gres.conf.
    """

    conf: SlurmConf
    gres: tuple[GresLine, ...] = ()
    findings: tuple[KeyFinding, ...] = ()

    @property
    def platform(self) -> Platform:
        """The machine that the files describe."""
        return slurm_platform(self.conf, self.gres)

    @property
    def nodes(self) -> dict[str, int]:
        """{name of a node: its number in the order of slurm.conf}."""
        return {node.name: number for number, node in enumerate(nodes_of(self.conf, self.gres))}


def is_slurm_file(name: str) -> bool:
    """Return whether a file begins like a slurm.conf; False if it cannot be read."""
    return is_slurm_conf(beginning(name).decode("utf-8-sig", "replace"))


def read_slurm_files(name: str, *, trust: bool = False) -> SlurmFiles:
    """Read a slurm.conf, the files that it includes, and the gres.conf beside it.

    Args:
        trust: follow ``Include`` to files outside the slurm.conf's folder.

    Raises:
        PipistrelleError: a file is unreadable, is outside the folder, or is malformed.
    """
    text = _text(name)
    conf = read_slurm_conf(text, printable(name), Fetching(name, trust))
    beside = file_beside(name, GRES, trust=trust)
    if beside is None:
        return SlurmFiles(conf)
    lines, findings = read_gres_conf(_text(beside), printable(beside), Fetching(beside, trust))
    return SlurmFiles(conf, tuple(lines), tuple(findings))


def file_beside(config: str, name: str, *, trust: bool = False) -> str | None:
    """Return the path of a file beside a slurm.conf, such as gres.conf.

    Return None if it does not exist. A symbolic link must stay in the folder, unless the files are trusted. One other
    target is allowed: if the slurm.conf is itself a link, the file of the same name beside the real slurm.conf.

    Args:
        config: the path of the slurm.conf.
        name: the file's name.
        trust: whether links may lead anywhere.

    Raises:
        InputError: the file is a link to a forbidden target.
    """
    folder = os.path.dirname(config)
    path = os.path.join(folder, name)
    if not os.path.isfile(path):
        return None
    twin = os.path.join(os.path.dirname(os.path.realpath(config)), name)
    if not trust and not is_inside(path, folder) and os.path.realpath(path) != twin:
        raise InputError(
            "the file is a link that leads out of its folder",
            where=printable(path),
            hint="Copy the file to the folder.",
        )
    return path


class Fetching:
    """The reader of the files that a configuration includes.

    Unless the files are trusted, they must be in the folder of the configuration.
    """

    def __init__(self, top: str, trust: bool) -> None:
        self._folder = os.path.dirname(top)
        self._trust = trust

    def __call__(self, path: str, by: str) -> tuple[str, str]:
        """Return the name and the content of an included file.

        A relative path starts at the folder of the configuration. A path such as ``/etc/slurm/nodes.conf`` that does
        not exist here means the file of that name in the folder. Raise SlurmConfigError if the file may not be read.
        """
        name = resolved(self._folder, path)
        if not os.path.isfile(name):
            raise SlurmConfigError(
                "the included file does not exist", found=quoted(path), hint="Copy it beside the file."
            )
        if not self._trust and not is_inside(name, self._folder):
            raise SlurmConfigError(
                "the included file is not in the folder of the configuration",
                expected="a regular file; links may not lead out of the folder",
                found=quoted(path),
                hint="Copy it beside the file.",
            )
        return printable(name), _text(name)


def resolved(folder: str, path: str) -> str:
    """Return the file that an Include line names.

    This is ``path`` if it exists, else the file of that name in ``folder``.
    """
    name = os.path.join(folder, path)
    return name if os.path.exists(name) else os.path.join(folder, os.path.basename(path))


def _text(name: str) -> str:
    if os.path.isfile(name) and os.path.getsize(name) > _LARGEST:
        raise InputError("the file is too large for a configuration", where=printable(name), expected="at most 16 MiB")
    return read_text(Path(name))


def files_of(name: str) -> list[str]:
    """Return the files that a slurm.conf includes, and the known files beside it.

    Return [] for any other file.
    """
    if not os.path.isfile(name) or not is_slurm_file(name):
        return []
    folder = os.path.dirname(name)
    found: dict[str, None] = {}
    todo = [name]
    for _ in range(_DEEPEST):
        texts = [beginning_text(one) for one in todo]
        paths = dict.fromkeys(path for text in texts for path in _INCLUDE.findall(text))
        todo = [resolved(folder, path) for path in islice(paths, MOST_FILES)]
        todo = [one for one in dict.fromkeys(todo) if one not in found and is_inside(one, folder)]
        found.update(dict.fromkeys(todo))
    beside = [os.path.join(folder, other) for other in (GRES, TOPOLOGY)]
    return [*found, *(one for one in beside if os.path.isfile(one))]


def beginning_text(name: str) -> str:
    """Return a file's text, or "" if it cannot be read or is too large."""
    try:
        return _text(name)
    except (InputError, OSError):
        return ""


def file_and_zero(text: str) -> tuple[str, str | None]:
    """Split ``FILE,zero=DATE`` into the file and the date of time 0.

    The date is None if it is not given.
    """
    name, mark, date = text.rpartition(_ZERO)
    return (name, date) if mark else (text, None)


def dates_of(zero: str | None, text: str, where: str) -> "SimulatedDates":
    """Return a function that converts dates to simulated time (s).

    Args:
        zero: the date of time 0; None: the date in a comment ``# start: DATE`` of the text, if there is one.

    Raises:
        InputError: the date of time 0 is malformed.
    """
    found = _START.search(text)
    told = zero if zero is not None else found[1] if found is not None else None
    if told is None:
        return SimulatedDates(None)
    from datetime import UTC

    epoch = Clock(UTC).iso(told)
    if epoch is None:
        raise InputError(
            "the date of time 0 is malformed", where=where, expected="as 2026-01-05T00:00:00", found=quoted(told)
        )
    return SimulatedDates(epoch)


class SimulatedDates:
    """A converter of dates to simulated time."""

    def __init__(self, epoch: float | None) -> None:
        self._epoch = epoch

    def __call__(self, text: str) -> float | None:
        """Return the simulated time (s) of a date.

        Return None if the text is no date, or if the date of time 0 is unknown.
        """
        from datetime import UTC

        time = Clock(UTC).iso(text)
        return None if time is None or self._epoch is None else time - self._epoch


def texts_of(names: Sequence[str]) -> list[tuple[str, str]]:
    """Return (name for messages, content) of each file.

    Raise InputError if one is unreadable.
    """
    return [(printable(name), _text(name)) for name in names]
