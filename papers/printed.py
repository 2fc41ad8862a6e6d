"""What a paper prints, read from a TOML file: its entries, their numbers and claims, and what is said of them."""

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
    """A number or claim of a paper; texts may have labels in braces, which the code of the entry fills.

    Parameters
    ----------
    what
        what it is a figure of.
    paper
        the paper's number, or its claim in words; None: the code takes it from a table, or the paper has none.
    unit
        of both numbers.
    absolute, relative
        the tolerance, in the unit and as a share of the paper's number: the larger of both counts.
    ours
        for a claim: what Pipistrelle finds.
    otherwise
        for a claim: what Pipistrelle finds if the claim does not hold, where that is another text.
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
        """How far ours may be from the paper's number."""
        return Tolerance(self.absolute, self.relative)


class PrintedChart(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The title and axes of a chart, as of `Chart`."""

    title: str
    x: str
    y: str
    kind: ChartKind = "lines"
    names: tuple[str, ...] = ()
    log_x: bool = False
    log_y: bool = False


class Entry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table, a figure or a claim of a paper.

    Parameters
    ----------
    id
        ``table-4.3``, ``figure-7``; unique in its paper.
    title
        what it shows, in a few words.
    place
        where it stands in the paper.
    shows
        what the paper reports, in a sentence or two.
    command
        what of ours makes it: a command line, or what to import; none: it cannot be computed, for the `reason`.
    expects
        how it ends, if all its logs are there.
    reason
        why ours differ, or why there can be none.
    needs
        real logs that it reads, by the names of their files.
    notes
        what is said below its figures; may have fields of the size in braces.
    figures, charts
        its numbers, claims and charts, by the names that its code has for them.
    printed
        tables of numbers that its code reads.
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
    """A paper and all its tables and figures.

    Parameters
    ----------
    id
        ``000`` to ``004``.
    name
        what it is about, in a few words.
    citation
        authors, title, where and when.
    page
        the page of our documentation about it.
    entries
        in the paper's order.
    texts
        parts of commands, reasons and names of logs that several entries share; these have their names in braces.
    figures, charts, printed
        those that several entries share.
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
        """Return one of its entries; PapersError, which names a like one, if there is none."""
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
    """What became of an entry."""

    paper: Paper
    entry: Entry
    verdict: Verdict
    reason: str
    finding: Finding = field(default_factory=Finding)

    @property
    def compared(self) -> tuple[int, int]:
        """How many of its figures agree with the paper's, and how many are compared."""
        told = [row.agrees for row in self.finding.rows if row.agrees is not None]
        return sum(told), len(told)


def read_paper(number: str) -> Paper:
    """Return the bundled paper of this number."""
    file = files("pipistrelle.papers") / "library" / f"{number}.toml"
    return parse_paper(file.read_text(encoding="utf-8"), file.name)


def parse_paper(text: str, where: str) -> Paper:
    """Return the paper that a TOML text describes; ``where`` is what the text is called in messages.

    Raises
    ------
    PapersError
        if it is no TOML, has an unknown, missing or repeated key or a value that cannot be, two entries have the same
        id, or a shared text does not exist.
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
