"""A study's folder: what study it is of, and the journal of its trials, which only grows."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from pipistrelle.protocol.base.errors import printable
from pipistrelle.protocol.fields import package_version
from pipistrelle.server.outputs.lock import sole_writer
from pipistrelle.studies.trials.axes import StudyError
from pipistrelle.studies.trials.grid import Prepared
from pipistrelle.studies.trials.line_file import LineFile, open_lines, read_lines, write_whole
from pipistrelle.studies.trials.study import Study
from pipistrelle.studies.trials.trial import Outcome

STUDY: Final = "study.json"
JOURNAL: Final = "journal.jsonl"
#: {part of what a study is: what to call it}
_PARTS: Final = {
    "version": "another version of Pipistrelle",
    "run": "another run",
    "axes": "other axes",
    "metrics": "other metrics",
    "engine": "another engine",
    "seed": "another seed",
    "files": "other contents of its files",
    "engines": "trials that other engines ran",
}
_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(Outcome)


class Journal:
    """The trials of a study that have ended, on disk.

    A line is on the disk before the next trial is asked for. A last line that was cut off is dropped when the journal
    is opened; its trial is repeated.

    Parameters
    ----------
    lines
        the journal's file.
    outcomes
        what it holds so far.
    """

    def __init__(self, lines: LineFile, outcomes: Iterable[Outcome]) -> None:
        self._lines = lines
        #: {(point, replica): what came out}
        self.outcomes = {(one.point, one.replica): one for one in outcomes}

    def append(self, outcomes: Iterable[Outcome]) -> None:
        """Let trials that have ended reach the disk; OutputFailed if they cannot."""
        new = [one for one in outcomes if (one.point, one.replica) not in self.outcomes]
        self._lines.append(map(_encoder.encode, new))
        self.outcomes |= {(one.point, one.replica): one for one in new}


@contextmanager
def open_folder(folder: Path, study: Study, grid: tuple[Prepared, ...]) -> Iterator[Journal]:
    """Yield the journal of a study in its folder, which is made if need be; nobody else writes there meanwhile.

    Raises
    ------
    StudyError
        if the folder has the results of another study, or its journal is broken.
    OutputFailed
        if nothing can be written there, or another process does.
    """
    with sole_writer(str(folder / "study")):
        identity = identity_of(study, grid)
        if not _is_claimed(folder, identity):
            write_whole(folder / STUDY, _text(identity))
        path = folder / JOURNAL
        outcomes, length = read_journal(path)
        with open_lines(path, length) as lines:
            yield Journal(lines, outcomes)


def identity_of(study: Study, grid: tuple[Prepared, ...]) -> dict[str, Any]:
    """Return all that decides a study's results but for how many replicas there are, in plain values."""
    files: dict[str, str] = {}
    for one in grid:
        files |= one.point.spec.files
    engines = [one.engine for one in grid]
    return {"version": package_version(), **study.identity, "files": files, "engines": engines}


def look_into(folder: Path, study: Study, grid: tuple[Prepared, ...]) -> dict[tuple[int, int], Outcome]:
    """Return the trials of a study in a folder, {(point, replica): what came out}, without writing there.

    Raises
    ------
    StudyError
        as of `open_folder`.
    """
    if not _is_claimed(folder, identity_of(study, grid)):
        return {}
    return {(one.point, one.replica): one for one in read_journal(folder / JOURNAL)[0]}


def _is_claimed(folder: Path, identity: Mapping[str, Any]) -> bool:
    """Return whether a folder is this study's already; StudyError if it is another's."""
    text = _text(identity)
    try:
        there = (folder / STUDY).read_bytes()
    except FileNotFoundError:
        if (folder / JOURNAL).exists():
            raise StudyError("there is a journal, and nothing says of which study", where=str(folder)) from None
        return False
    except OSError as error:
        raise StudyError(f"the folder cannot be read ({error.strerror or error})", where=str(folder)) from None
    if there == text:
        return True
    try:
        told = json.loads(there)
        other = [name for part, name in _PARTS.items() if told[part] != json.loads(text)[part]]
    except (ValueError, LookupError, TypeError):
        other = ["what cannot be read"]
    raise StudyError(
        "the folder has the results of another study",
        where=str(folder),
        found=" and ".join(other) or "another description",
        hint="Choose another folder, or remove this one.",
    )


def _text(identity: Mapping[str, Any]) -> bytes:
    return msgspec.json.format(_encoder.encode(identity), indent=2) + b"\n"


def read_journal(path: Path) -> tuple[list[Outcome], int]:
    """Return the trials in a journal, and how many of its bytes are whole lines; none if it is not there.

    Raises
    ------
    StudyError
        if a line but the last is broken.
    """
    lines, length = read_lines(path, "the journal", StudyError)
    outcomes: list[Outcome] = []
    for number, line in enumerate(lines, 1):
        try:
            outcomes.append(_decoder.decode(line))
        except msgspec.DecodeError as error:
            raise StudyError(
                "a line of the journal is broken",
                where=f"{path}, line {number}",
                found=printable(str(error))[:100],
                hint="Remove the line: its trial is repeated then.",
            ) from None
    return outcomes, length
