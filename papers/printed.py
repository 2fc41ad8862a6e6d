"""Read a paper's tables, figures, claims and numbers from a TOML file.

The file also has notes about them.
"""

from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from pipistrelle.papers.entry import ChartKind, Finding, PapersError, Said, Tolerance, Verdict
from pipistrelle.protocol.base.errors import did_you_mean, printable
from pipistrelle.protocol.base.shapes import convert_table
from pipistrelle.protocol.base.toml import read_toml

_MANUAL: Final = "pipistrelle.papers.printed describes every key."


class PrintedFigure(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One number or claim of a paper.

    Its texts may have labels in braces, which the code replaces.

    Attributes:
        what: what the number or claim is about.
        paper: the paper's number or claim in words; None if the number is given elsewhere in the entry of the
            collection (key ``printed``), or if the paper makes the claim without a number.
        absolute, relative: the tolerance, in the unit of the paper's number and as a share of this number; the larger
            counts.
        ours: what Pipistrelle finds about a claim.
        otherwise: the text that replaces ``ours`` if the claim does not hold; default: ``ours``.
    """

    what: str
    paper: int | Said = None
    unit: str = ""
    absolute: float = 0.0
    relative: float = 0.0
    ours: str = ""
    otherwise: str | None = None

    @property
    def tolerance(self) -> Tolerance:
        """Return the accepted difference from the paper's number."""
        return Tolerance(self.absolute, self.relative)


class PrintedChart(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The title and axes of a chart; see `Chart`."""

    title: str
    x: str
    y: str
    kind: ChartKind = "lines"
    names: tuple[str, ...] = ()
    log_x: bool = False
    log_y: bool = False


class Entry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table, figure or claim of a paper.

    Attributes:
        id: unique in the paper, such as ``table-4.3`` or ``figure-7``.
        title: its subject in a few words.
        place: where the paper has it.
        shows: what the paper reports, in a sentence or two.
        command: the command line or import that reproduces it; empty if it cannot be computed.
        expects: the expected verdict if all its logs exist.
        reason: why our result differs or is impossible.
        needs: file names of the real logs that it reads.
        notes: texts printed below its numbers; attributes of `PapersSize` in braces are replaced by their values.
        figures, charts: its numbers or claims, and its charts, by the names that the code uses.
        printed: tables of numbers that its code reads.
    """

    id: str
    title: str
    place: str
    shows: str
    command: str = ""
    expects: Literal["reproduced", "differs", "made anew"] = "reproduced"
    reason: str = ""
    needs: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    figures: dict[str, PrintedFigure] = {}
    charts: dict[str, PrintedChart] = {}
    printed: dict[str, Any] = {}


class Paper(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A paper with all its tables and figures.

    Attributes:
        id: number of the paper, ``000`` to ``004``.
        name: its subject in a few words.
        citation: authors, title, place and year.
        page: the page of our documentation about it.
        entries: its tables, figures and claims, in the paper's order.
        texts: shared parts of commands, reasons and log names, which other texts name in braces.
        figures, charts, printed: as in `Entry`, but shared by several entries.
    """

    id: str
    name: str
    citation: str
    page: str
    entries: tuple[Entry, ...]
    texts: dict[str, str] = {}
    figures: dict[str, PrintedFigure] = {}
    charts: dict[str, PrintedChart] = {}
    printed: dict[str, Any] = {}

    def entry(self, name: str) -> Entry:
        """Return an entry by its id.

        If it does not exist, raise PapersError, which suggests the closest id.
        """
        for one in self.entries:
            if one.id == name:
                return one
        names = [one.id for one in self.entries]
        raise PapersError(
            f"paper {self.id} has no entry '{printable(name)}'",
            expected=f"one of {', '.join(names)}",
            hint=did_you_mean(name, names),
        )


@dataclass(frozen=True)
class EntryResult:
    """The result of a table, figure or claim of a paper."""

    paper: Paper
    entry: Entry
    verdict: Verdict
    reason: str
    finding: Finding = field(default_factory=Finding)

    @property
    def compared(self) -> tuple[int, int]:
        """Return how many numbers and claims agree with the paper's.

        Also return how many are compared.
        """
        told = [row.agrees for row in self.finding.rows if row.agrees is not None]
        return sum(told), len(told)


def read_paper(number: str) -> Paper:
    """Return a bundled paper by its number."""
    file = files("pipistrelle.papers") / "library" / f"{number}.toml"
    return parse_paper(file.read_text(encoding="utf-8"), file.name)


def parse_paper(text: str, where: str) -> Paper:
    """Parse a paper from a TOML text; error messages call the text ``where``.

    Raises:
        PapersError: if it is not TOML, a key is unknown, missing or repeated, a value is invalid, two entries have the
            same id, or a shared text does not exist.
    """
    raw = read_toml(
        text, where, PapersError, manual=_MANUAL, hint="Text needs quotes; an entry begins with [[entries]]."
    )
    paper = convert_table(raw, Paper, where, PapersError, _MANUAL)
    entries: list[Entry] = []
    for one in paper.entries:
        if one.id in (other.id for other in entries):
            raise PapersError(f"two entries have the id '{printable(one.id)}'", where=where)
        try:
            command, reason, *needs = (text.format_map(paper.texts) for text in (one.command, one.reason, *one.needs))
        except (KeyError, ValueError, IndexError) as error:
            raise PapersError(
                f"a shared text does not exist: {printable(str(error))}",
                where=f"{where}: entry {printable(one.id)}",
                expected=f"names of [texts] in braces: {', '.join(paper.texts) or 'there are none'}",
            ) from None
        entries.append(msgspec.structs.replace(one, command=command, reason=reason, needs=tuple(needs)))
    return msgspec.structs.replace(paper, entries=tuple(entries))
