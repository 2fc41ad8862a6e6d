"""Where entries are computed: how large, which logs there are, what is kept of parts that are done."""

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final, Self

import msgspec

from pipistrelle.papers.entry import PapersError
from pipistrelle.protocol.base.errors import printable
from pipistrelle.protocol.fields import package_version
from pipistrelle.server.errors import OutputFailed
from pipistrelle.server.outputs.lock import sole_writer
from pipistrelle.studies.inference.trials import TrialTable
from pipistrelle.studies.trials.study import Study
from pipistrelle.studies.workers.campaign import Headway, run

#: names the folder of real logs
TRACES_VARIABLE: Final = "PIPISTRELLE_TRACES"
_JOURNAL: Final = "parts.jsonl"
_encoder: Final = msgspec.json.Encoder()


@dataclass(frozen=True, kw_only=True)
class PapersSize:
    """How much is simulated; what is computed from formulas is the same in every size.

    Parameters
    ----------
    name
        what it is called.
    repairs, replicas
        the grid of repair times for each failure rate, and the replicas of each point (paper 000).
    backfilled, backfilled_replicas
        how long a stretch of jobs both algorithms of EASY backfill, and how many of these (paper 000).
    hours, seeds
        of the simulation with partitions, in hours, and how many there are (paper 001).
    stepped, steps, weeks
        how long a stretch of jobs is decided at time steps, the steps, and the weeks of a real log (paper 002).
    failures
        that are simulated for each yield (paper 003).
    waits
        for which yields are simulated, h (paper 003).
    months, draws
        months of jobs, and of failures (paper 004).
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


_DAYS: Final = tuple(f"{day}d" for day in range(1, 21))
SIZES: Final[Mapping[str, PapersSize]] = {
    "small": PapersSize(
        name="small",
        repairs=("1min", "5d", "13d", "20d"),
        replicas=4,
        backfilled="14d",
        backfilled_replicas=4,
        hours=40.0,
        seeds=1,
        stepped="14d",
        steps=("60s", "5s"),
        weeks=(7,),
        failures=5_000,
        waits=(1.0, 24.0),
        months=1,
        draws=1,
    ),
    "full": PapersSize(
        name="full",
        repairs=("1min", "1h", "12h", *_DAYS),
        replicas=1000,
        backfilled="90d",
        backfilled_replicas=10,
        hours=1824.0,
        seeds=3,
        stepped="28d",
        steps=("60s", "30s", "10s", "5s", "1s"),
        weeks=(6, 7, 29),
        failures=100_000,
        waits=(0.1, 1.0, 10.0, 24.0, 100.0),
        months=6,
        draws=12,
    ),
}


class PartsJournal:
    """Parts that are done, by their names: a line of a file each, which is on the disk before the next part begins.

    Parameters
    ----------
    file
        to append to; None: nothing is kept.
    path
        its name, for messages.
    done
        what it holds so far.
    """

    def __init__(
        self, file: BinaryIO | None = None, path: Path | None = None, done: dict[str, Any] | None = None
    ) -> None:
        self._file, self._path = file, path
        self.done: dict[str, Any] = {} if done is None else done

    def keep(self, name: str, value: Any) -> Any:
        """Keep a part and return it as it will be read: plain values of JSON; OutputFailed if it cannot be kept."""
        line = _encoder.encode({"part": name, "value": value})
        plain = msgspec.json.decode(line)["value"]
        if self._file is not None:
            try:
                self._file.write(line + b"\n")
                self._file.flush()
                os.fsync(self._file.fileno())
            except OSError as error:
                raise _unwritable(self._path, error) from None
        self.done[name] = plain
        return plain


@contextmanager
def open_parts(folder: Path, size: PapersSize) -> Iterator[PartsJournal]:
    """Yield the journal of a folder's parts; nobody else writes there meanwhile.

    A last line that was cut off is dropped; its part is repeated.

    Raises
    ------
    PapersError
        if the folder has parts of another version or size, or a line is broken.
    OutputFailed
        if nothing can be written there, or another process does.
    """
    identity = {"version": package_version(), "size": msgspec.json.decode(_encoder.encode(asdict(size)))}
    path = folder / _JOURNAL
    with sole_writer(str(folder / "papers")):
        done, length = _read(path, identity)
        try:
            file = path.open("ab")
            file.truncate(length)
            if not length:
                file.write(_encoder.encode(identity) + b"\n")
                file.flush()
        except OSError as error:
            raise _unwritable(path, error) from None
        try:
            yield PartsJournal(file, path, done)
        finally:
            with suppress(OSError):
                file.close()


def _read(path: Path, identity: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
    """Return the parts in a file, and how many of its bytes are whole lines."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return {}, 0
    except OSError as error:
        raise PapersError(f"what is kept cannot be read ({error.strerror or error})", where=str(path)) from None
    lines = content.split(b"\n")
    length = len(content) - len(lines.pop())
    done: dict[str, Any] = {}
    for number, line in enumerate(lines, 1):
        try:
            told = msgspec.json.decode(line)
            if number > 1:
                done[told["part"]] = told["value"]
        except (msgspec.DecodeError, LookupError, TypeError):
            raise PapersError(
                "a line of what is kept is broken",
                where=f"{path}, line {number}",
                found=printable(line.decode(errors="replace"))[:80],
                hint="Remove the line: its part is computed again then.",
            ) from None
        if number == 1 and told != identity:
            raise PapersError(
                "the folder keeps parts of another size, or of another version of Pipistrelle",
                where=str(path),
                hint="Choose another folder, or remove this one.",
            )
    return done, length


def _unwritable(path: Path | None, error: OSError) -> OutputFailed:
    return OutputFailed(
        f"cannot be written ({error.strerror or error})",
        where=str(path),
        hint="What was written stays: make room, and run the same command to go on.",
    )


@dataclass
class Bench:
    """What an entry has when it is computed.

    Parameters
    ----------
    size
        how much is simulated.
    parts
        what is done already, and where the rest is kept.
    folder
        of studies, which go on there; None: nothing is kept.
    traces
        the folder of real logs; None: there is none.
    jobs
        worker processes of studies; None: one a processor.
    tell
        called with a line whenever something begins that takes its time.
    """

    size: PapersSize
    parts: PartsJournal = field(default_factory=PartsJournal)
    folder: Path | None = None
    traces: Path | None = None
    jobs: int | None = None
    tell: Callable[[str], None] = lambda text: None
    #: results of studies that entries share, while they are computed
    _studies: dict[str, TrialTable] = field(default_factory=dict)

    @classmethod
    def alone(cls, size: PapersSize = SIZES["small"]) -> Self:
        """Return one that keeps nothing and has no logs."""
        return cls(size)

    def part(self, name: str, make: Callable[[], Any]) -> Any:
        """Return a part by its name, as plain values of JSON: kept, or made now and then kept.

        The name says all that decides the value, but for the size.
        """
        if name in self.parts.done:
            return self.parts.done[name]
        self.tell(name)
        return self.parts.keep(name, make())

    def study(self, name: str, study: Study) -> TrialTable:
        """Return the trials of a study, which goes on where it was interrupted."""
        if name not in self._studies:
            self.tell(name)
            folder = None if self.folder is None else self.folder / name

            def watch(headway: Headway) -> None:
                self.tell(f"{name}: {headway.done:,} of {headway.known:,} trials")

            results = run(study, folder, jobs=self.jobs, watch=watch)
            self._studies[name] = TrialTable.of(results.table, name)
        return self._studies[name]

    def missing(self, needs: Sequence[str]) -> str | None:
        """Return why an entry that needs these logs is left out; None: they are there."""
        for name in needs:
            if self.traces is None:
                return f"it needs {name}, and no folder of real logs is named: --traces DIR, or {TRACES_VARIABLE}"
            if not (self.traces / name).is_file():
                return f"it needs {name}, which is not in {printable(str(self.traces))}"
        return None

    def trace(self, name: str) -> tuple[str, str]:
        """Return the path of a real log that is there, and a digest of what is in it, for the names of parts."""
        assert self.traces is not None
        path = self.traces / name
        try:
            content = path.read_bytes()
        except OSError as error:
            raise PapersError(f"the log cannot be read ({error.strerror or error})", where=str(path)) from None
        return str(path), hashlib.sha256(content).hexdigest()[:12]
