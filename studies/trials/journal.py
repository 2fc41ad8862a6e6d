"""The output folder of a study.

It has the study's identity and the journal of finished trials.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from pipistrelle.protocol.base.errors import printable
from pipistrelle.protocol.base.whole import read_whole
from pipistrelle.protocol.fields import package_version
from pipistrelle.server.outputs.lock import sole_writer
from pipistrelle.server.outputs.once import remove_outputs
from pipistrelle.studies.errors import StudyError
from pipistrelle.studies.trials.grid import Prepared
from pipistrelle.studies.trials.line_file import LineFile, open_lines, read_lines, write_table
from pipistrelle.studies.trials.results import TRIALS
from pipistrelle.studies.trials.study import Study
from pipistrelle.studies.trials.trial import Outcome

STUDY: Final = "study.json"
_HINT: Final = "Choose another folder, or replace the results with --overwrite."
JOURNAL: Final = "journal.jsonl"
#: {part of a study's identity: its name in errors}
_PARTS: Final = {
    "version": "another version of Pipistrelle",
    "run": "another run",
    "axes": "other axes",
    "metrics": "other metrics",
    "engine": "another engine",
    "seed": "another seed",
    "files": "other contents of its files",
    "objects": "other workloads or machines",
    "engines": "trials that other engines ran",
}
_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(Outcome)


class Journal:
    """The file that lists a study's finished trials, so that the study can continue.

    Each line is on disk before the next trial is requested. When the journal is opened, an incomplete last line is
    dropped, and its trial is repeated.

    Args:
        lines: the journal's file.
        outcomes: the outcomes in the file so far.
    """

    def __init__(self, lines: LineFile, outcomes: Iterable[Outcome]) -> None:
        self._lines = lines
        #: {(point, replica): outcome}
        self.outcomes = {(one.point, one.replica): one for one in outcomes}

    def append(self, outcomes: Iterable[Outcome]) -> None:
        """Write ended trials to disk, or raise OutputFailed."""
        new = [one for one in outcomes if (one.point, one.replica) not in self.outcomes]
        self._lines.append(map(_encoder.encode, new))
        self.outcomes |= {(one.point, one.replica): one for one in new}


@contextmanager
def open_folder(
    folder: Path, study: Study, grid: tuple[Prepared, ...], *, overwrite: bool = False
) -> Iterator[Journal]:
    """Open or make a study's folder as its only writer, and yield its journal.

    Args:
        overwrite: remove the results of another study first.

    Raises:
        StudyError: the folder has the results of another study, or its journal is damaged.
        OutputFailed: the folder is not writable, or another process writes to it.
    """
    with sole_writer(str(folder / "study")):
        identity = identity_of(study, grid)
        if overwrite:
            _remove_other(folder, identity, all_of_them=study.objects.has_schedulers)
        if _is_claimed(folder, identity):
            _refuse_objects(folder, study)
        else:
            write_table(folder / STUDY, _text(identity))
        path = folder / JOURNAL
        outcomes, length = read_journal(path)
        with open_lines(path, length) as lines:
            yield Journal(lines, outcomes)


def _refuse_objects(folder: Path, study: Study) -> None:
    """Raise StudyError if schedulers are Python objects, whose code may have changed."""
    if study.objects.has_schedulers:
        raise StudyError(
            "a study whose schedulers are Python objects cannot continue, because their code may have changed",
            where=str(folder),
            hint=f"{_HINT} Schedulers in files, as FILE.py:CLASS, can continue.",
        )


def _remove_other(folder: Path, identity: Mapping[str, Any], *, all_of_them: bool) -> None:
    """Remove the results of another study than ``identity`` from the folder.

    With ``all_of_them``, results of the same study are removed, too.
    """
    try:
        _is_claimed(folder, identity)
        wrong = all_of_them
    except StudyError:
        wrong = True
    if wrong:
        remove_outputs(folder / name for name in (TRIALS, JOURNAL, STUDY))


def identity_of(study: Study, grid: tuple[Prepared, ...]) -> dict[str, Any]:
    """Return everything that determines a study's results, as plain values.

    The number of replicas is not included.
    """
    files: dict[str, str] = {}
    for one in grid:
        files |= one.point.spec.files
    engines = [one.engine for one in grid]
    return {"version": package_version(), **study.identity, "files": files, "engines": engines}


def look_into(folder: Path, study: Study, grid: tuple[Prepared, ...]) -> dict[tuple[int, int], Outcome]:
    """Return {(point, replica): outcome} of the finished trials in a study's folder.

    Nothing is written to the folder.
    """
    if not _is_claimed(folder, identity_of(study, grid)):
        return {}
    return {(one.point, one.replica): one for one in read_journal(folder / JOURNAL)[0]}


def _is_claimed(folder: Path, identity: Mapping[str, Any]) -> bool:
    text = _text(identity)
    try:
        there = read_whole(folder / STUDY)
    except FileNotFoundError:
        left = next((name for name in (JOURNAL, TRIALS) if (folder / name).exists()), None)
        if left is not None:
            raise StudyError(f"the folder has {left}, but no {STUDY}", where=str(folder), hint=_HINT) from None
        return False
    except OSError as error:
        raise StudyError(f"the folder cannot be read ({error.strerror or error})", where=str(folder)) from None
    if there == text:
        return True
    try:
        told = json.loads(there)
        other = [name for part, name in _PARTS.items() if told.get(part) != json.loads(text).get(part)]
    except (ValueError, AttributeError, RecursionError):
        other = ["an unreadable description"]
    raise StudyError(
        "the folder has the results of another study",
        where=str(folder),
        found=" and ".join(other) or "another description",
        hint=_HINT,
    )


def _text(identity: Mapping[str, Any]) -> bytes:
    return msgspec.json.format(_encoder.encode(identity), indent=2) + b"\n"


def read_journal(path: Path) -> tuple[list[Outcome], int]:
    """Return the outcomes of trials in a journal.

    Also return the number of bytes of its complete lines.
    """
    lines, length = read_lines(path, "the journal", StudyError)
    outcomes: list[Outcome] = []
    for number, line in enumerate(lines, 1):
        try:
            outcomes.append(_decoder.decode(line))
        except (ValueError, RecursionError) as error:
            raise StudyError(
                "a line of the journal is damaged",
                where=f"{path}, line {number}",
                found=printable(str(error))[:100],
                hint="Remove the line. Its trial will be repeated.",
            ) from None
    return outcomes, length
