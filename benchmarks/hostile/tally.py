"""Results of sending hostile frames: counts, finds, times and memory.

A find is a frame that was handled badly.
"""

import base64
import os
import resource
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pipistrelle.protocol.base.errors import PipistrelleError, printable

#: a frame that takes longer (wall-clock s) counts as a hang
LIMIT_S = 60
#: a frame that takes more processor time (s) or more memory (KiB) is a find
SLOW_S = 3.0
BIG_KB = 400 * 1024
#: greatest length of an error message about a frame (characters)
LONGEST_MESSAGE = 3000
#: greatest length of a frame that is shown in full (bytes)
_SHOWN = 3000
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Hang(BaseException):
    """Raised when a frame takes longer than `LIMIT_S`."""


@dataclass(frozen=True)
class Find:
    """A hostile frame that the program under test handled badly.

    It caused, for example, a crash, a hang or a changed session.

    Attributes:
        side: the program under test, and the dialect.
        where: seed, run and place in the run, to repeat it.
        what: what happened.
        frame: the bytes of the frame.
    """

    side: str
    where: str
    what: str
    frame: bytes

    def __str__(self) -> str:
        size = len(self.frame)
        coded = (
            base64.b64encode(self.frame).decode() if size < _SHOWN else f"{size:,} bytes, {self.frame[:_SHOWN]!r}..."
        )
        return f"{self.side}, {self.where}: {self.what}\n  {coded}"


@dataclass
class Tally:
    """Counts of the frames that one program under test received.

    It also has the frames that the program handled badly (finds).

    Attributes:
        side: the program under test, and the dialect.
        wanted: number of frames to try.
        frame: the frame under trial.
        where: place of this frame, for reports.
    """

    side: str
    wanted: int
    tried: int = 0
    refused: int = 0
    taken: int = 0
    runs: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    finds: list[Find] = field(default_factory=list)
    frame: bytes = b""
    where: str = ""
    slowest: float = 0.0
    warm_kb: int = 0
    cpu: float = 0.0
    #: {type of event or decision: its number of occurrences in frames before mutation}
    kinds: Counter[str] = field(default_factory=Counter)

    @property
    def done(self) -> bool:
        """Whether the wanted number of frames has been tried."""
        return self.tried >= self.wanted

    def find(self, what: str) -> None:
        """Record that the current frame was handled badly; ``what`` says how."""
        what = printable(what.replace("\n", "\\n")) if len(what) < _SHOWN else f"{printable(what[:_SHOWN])}..."
        self.finds.append(Find(self.side, self.where, what, self.frame))

    @contextmanager
    def trial(self, frame: bytes) -> Iterator[None]:
        """Count a malformed or unexpected frame, and measure how it is processed.

        The ``with`` body processes the frame; its time and memory are measured.
        """
        self.frame = frame
        self.tried += 1
        if self.tried == self.wanted // 4 + 1:
            self.warm_kb = resident_kb()
        signal.alarm(LIMIT_S)
        before, began = peak_kb(), time.process_time()
        try:
            yield
        finally:
            signal.alarm(0)
            took, grown = time.process_time() - began, peak_kb() - before
            self.slowest = max(self.slowest, took)
            if took > SLOW_S or grown > BIG_KB:
                self.find(f"takes {took:.1f} s, and {grown / 1024:.0f} MiB")

    def refuse(self, error: PipistrelleError, *expected: type[PipistrelleError]) -> None:
        """Count a refused frame; record a `Find` if the error's type or text is wrong."""
        self.refused += 1
        if not isinstance(error, expected):
            self.find(f"{type(error).__name__}: {error}")
        self.check_text(error)

    def check_text(self, error: BaseException) -> None:
        """Record a `Find` if an error's text is badly formed.

        The text must not be too long, and must have no line breaks or control characters.
        """
        text = str(error)
        if len(text) > LONGEST_MESSAGE:
            self.find(f"a message of {len(text):,} characters: {text[:200]}...")
        if not text.isprintable():
            self.find(f"a message with control characters: {text!r}")

    def crash(self) -> None:
        """Record the current unexpected exception as a `Find`, with its traceback."""
        lines = traceback.format_exc(limit=-4).splitlines()
        self.find(" | ".join(line.strip() for line in reversed(lines) if "^^" not in line))

    def lines(self) -> list[str]:
        """Return the counts, times and memory use of a program as two lines of text."""
        grown = resident_kb() - self.warm_kb if self.warm_kb else 0
        ends = ", ".join(f"{count:,} {name}" for name, count in self.ends.most_common())
        return [
            f"{self.side}: {self.tried:,} frames, {self.refused:,} refused, {self.taken:,} taken"
            + (f"; {self.runs:,} runs ended: {ends}" if ends else ""),
            f"  {len(self.finds)} finds; the slowest frame {1000 * self.slowest:.0f} ms; {self.cpu:.1f} s; "
            f"resident memory {grown / 1024:+.1f} MiB after the first quarter, {peak_kb() / 1024:.0f} MiB at the most",
        ]


def resident_kb() -> int:
    """Return the resident memory of this process (KiB)."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE // 1024


def peak_kb() -> int:
    """Return the peak resident memory of this process (KiB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _hang(*_: object) -> None:
    raise Hang


def carry_out(tally: Tally, once: Callable[[Tally, int], None], give_up: int = 20) -> Tally:
    """Call ``once`` with run numbers from 0 until enough frames are tried.

    Stop early after ``give_up`` badly handled frames.
    """
    before = signal.signal(signal.SIGALRM, _hang)
    began = time.process_time()
    number = 0
    try:
        while not tally.done and len(tally.finds) < give_up:
            try:
                once(tally, number)
            except Hang:
                tally.find(f"hangs: more than {LIMIT_S} s")
            except Exception:
                tally.crash()
            number += 1
            if tally.wanted >= 20_000 and sys.stderr.isatty():
                print(f"\r{tally.side}: {tally.tried:,}", end="", file=sys.stderr)
    finally:
        signal.signal(signal.SIGALRM, before)
        tally.cpu = time.process_time() - began
    return tally
