"""Inputs and storage of the papers' computations.

They are the simulation size, real logs, and a journal of finished parts.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, Self

import msgspec
from msgspec import Struct

from pipistrelle.papers.entry import PapersError
from pipistrelle.protocol.base.errors import printable
from pipistrelle.protocol.base.shapes import convert_table
from pipistrelle.protocol.base.toml import read_toml
from pipistrelle.protocol.base.whole import read_whole
from pipistrelle.protocol.fields import package_version
from pipistrelle.server.outputs.lock import sole_writer
from pipistrelle.studies.inference.trials import TrialTable
from pipistrelle.studies.trials.line_file import LineFile, open_lines, read_lines
from pipistrelle.studies.trials.study import Study
from pipistrelle.studies.workers.campaign import Headway, run

#: environment variable that names the folder of real logs
TRACES_VARIABLE: Final = "PIPISTRELLE_TRACES"
_JOURNAL: Final = "parts.jsonl"
_encoder: Final = msgspec.json.Encoder()


class PapersSize(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much is simulated for the papers.

    Values computed from formulas do not depend on it.

    Attributes:
        repairs, replicas: repair times simulated at each failure rate, and number of replicas of each (paper 000).
        backfilled, backfilled_replicas: length and number of the job streams for both EASY algorithms (paper 000).
        hours, seeds: simulated hours with partitions, and number of seeds (paper 001).
        stepped, steps, weeks: length of the job stream, the scheduler's time steps, weeks of a real log (paper 002).
        failures: number of failures simulated for each yield (paper 003).
        waits: waits (h) for which yields are simulated (paper 003).
        months, draws: number of simulated months of jobs, and of failures (paper 004).
    """

    name: str
    repairs: tuple[str, ...]
    replicas: int
    backfilled: str
    backfilled_replicas: int
    hours: float
    seeds: int
    stepped: str
    steps: tuple[str, ...]
    weeks: tuple[int, ...]
    failures: int
    waits: tuple[float, ...]
    months: int
    draws: int


def _read_sizes() -> Mapping[str, PapersSize]:
    text = (files("pipistrelle.papers") / "library" / "sizes.toml").read_text(encoding="utf-8")
    raw = read_toml(text, "sizes.toml", PapersError, manual="", hint="")
    return {
        name: convert_table({"name": name, **size}, PapersSize, f"sizes.toml: {name}", PapersError)
        for name, size in raw.items()
    }


SIZES: Final[Mapping[str, PapersSize]] = _read_sizes()


class PartsJournal:
    """Finished parts of results.

    Each part is written to a line of a file as soon as it is finished.

    Args:
        lines: the open file; None keeps nothing.
        done: {name: value} of the parts read so far.
    """

    def __init__(self, lines: LineFile | None = None, done: dict[str, Any] | None = None) -> None:
        self._lines = lines
        self.done: dict[str, Any] = {} if done is None else done

    def keep(self, name: str, value: Any) -> Any:
        """Store the value of a part, and return it as plain JSON values.

        Raises:
            OutputFailed: if it cannot be stored.
        """
        line = _encoder.encode({"part": name, "value": value})
        if self._lines is not None:
            self._lines.append([line])
        self.done[name] = msgspec.json.decode(line)["value"]
        return self.done[name]


@contextmanager
def open_parts(folder: Path, size: PapersSize) -> Iterator[PartsJournal]:
    """Open the journal of finished parts in a folder; lock the folder meanwhile.

    If the file's last line is incomplete, it is dropped, and its part is computed again.

    Raises:
        PapersError: if the folder has parts of another version or size, or a broken line.
        OutputFailed: if the folder cannot be written or another process has locked it.
    """
    identity = _encoder.encode({"version": package_version(), "size": size})
    path = folder / _JOURNAL
    with sole_writer(str(folder / "papers")):
        lines, length = read_lines(path, "what is kept", PapersError)
        done = _parts(lines, path, identity)
        with open_lines(path, length) as file:
            if not lines:
                file.append([identity])
            yield PartsJournal(file, done)


def _parts(lines: Sequence[bytes], path: Path, identity: bytes) -> dict[str, Any]:
    """Return {name: value} of the parts in a journal's lines."""
    done: dict[str, Any] = {}
    for number, line in enumerate(lines, 1):
        try:
            told = msgspec.json.decode(line)
            if number > 1:
                done[told["part"]] = told["value"]
        except (msgspec.DecodeError, UnicodeDecodeError, LookupError, TypeError):
            raise PapersError(
                "a line of the saved parts is broken",
                where=f"{path}, line {number}",
                found=printable(line.decode(errors="replace"))[:80],
                hint="Remove the line. Its part is then computed again.",
            ) from None
        if number == 1 and line != identity:
            raise PapersError(
                "the folder has parts of another size, or of another version of Pipistrelle",
                where=str(path),
                hint="Choose another folder, or remove this one.",
            )
    return done


@dataclass
class Bench:
    """Inputs of the functions that compute a paper's results.

    Args:
        parts: finished parts, and where new ones are stored.
        folder: folder of studies, which resume there; None keeps nothing.
        traces: folder of real logs, if any.
        jobs: worker processes of studies; None means one per processor.
        tell: called with a line of text when a long step begins.
    """

    size: PapersSize
    parts: PartsJournal = field(default_factory=PartsJournal)
    folder: Path | None = None
    traces: Path | None = None
    jobs: int | None = None
    tell: Callable[[str], None] = lambda text: None
    #: results of studies that several entries use
    _studies: dict[str, TrialTable] = field(default_factory=dict)

    @classmethod
    def alone(cls, size: PapersSize = SIZES["small"]) -> Self:
        """Return a bench that stores nothing and has no real logs."""
        return cls(size)

    def part(self, name: str, make: Callable[[], Any]) -> Any:
        """Return the value called ``name`` from the journal of finished parts.

        If the journal does not have it, ``make`` computes it.

        The result is plain JSON values. ``name`` must state everything that determines the value, except the simulation
        size.
        """
        if name in self.parts.done:
            return self.parts.done[name]
        self.tell(name)
        return self.parts.keep(name, make())

    def study(self, name: str, study: Study) -> TrialTable:
        """Run a study, or resume it if it was interrupted; return its trials."""
        if name not in self._studies:
            self.tell(name)
            folder = None if self.folder is None else self.folder / name

            def watch(headway: Headway) -> None:
                self.tell(f"{name}: {headway.done:,} of {headway.known:,} trials")

            results = run(study, folder, jobs=self.jobs, watch=watch)
            self._studies[name] = TrialTable.of(results.table, name)
        return self._studies[name]

    def missing(self, needs: Sequence[str]) -> str | None:
        """Return the reason to leave out a result that needs these real logs.

        Return None if all logs exist.
        """
        for name in needs:
            if self.traces is None:
                return f"it needs {name}, and no folder of real logs is named: --traces DIR, or {TRACES_VARIABLE}"
            if not (self.traces / name).is_file():
                return f"it needs {name}, which is not in {printable(str(self.traces))}"
        return None

    def trace(self, name: str) -> tuple[str, str]:
        """Return the path of a real log and a digest of its content."""
        assert self.traces is not None
        path = self.traces / name
        try:
            content = read_whole(path)
        except OSError as error:
            raise PapersError(f"the log cannot be read ({error.strerror or error})", where=str(path)) from None
        return str(path), hashlib.sha256(content).hexdigest()[:12]
