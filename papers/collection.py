"""The five papers, and functions that select and compute their entries.

Entries are tables, figures and claims.
"""

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Final

from pipistrelle.papers.bench import Bench
from pipistrelle.papers.entry import PapersError, verdict_of
from pipistrelle.papers.printed import Entry, EntryResult, Paper, read_paper
from pipistrelle.papers.sheet import Compute, Sheet
from pipistrelle.protocol.base.errors import did_you_mean, printable

#: {paper: the module that computes its entries}; the papers' numbers and texts are in ``library``
_MODULES: Final = {
    "000": "repair_time",
    "001": "guided",
    "002": "maui_simulator",
    "003": "moldable",
    "004": "gpu_age",
}
#: {required module: the extra that installs it}
_EXTRAS: Final = {"matplotlib": "report", "scipy": "study", "pyarrow": "study"}


def paper_ids() -> list[str]:
    """Return the papers' numbers."""
    return list(_MODULES)


def get_paper(number: str) -> Paper:
    """Return a paper by its number.

    Raise PapersError if it does not exist.
    """
    if number not in _MODULES:
        raise PapersError(
            f"there is no paper '{printable(number)}'",
            expected=f"one of {', '.join(_MODULES)}",
            hint=did_you_mean(number, list(_MODULES)),
        )
    return read_paper(number)


def computations(number: str) -> Mapping[str, Compute]:
    """Return {entry id: function that computes the entry} of a paper.

    Entries are the tables, figures and claims.
    """
    table: Mapping[str, Compute] = import_module(f"pipistrelle.papers.{_MODULES[number]}").COMPUTED
    return table


def chosen_entries(papers: Sequence[Paper], only: Sequence[str]) -> list[tuple[Paper, Entry]]:
    """Return all entries of the papers, or those named in ``only``.

    They are in the order of the papers.

    Raises:
        PapersError: if entries are named for several papers, or a named entry does not exist.
    """
    if not only:
        return [(paper, entry) for paper in papers for entry in paper.entries]
    if len(papers) != 1:
        raise PapersError(
            "entries are chosen of one paper", expected="one number of a paper beside them", found=str(len(papers))
        )
    (paper,) = papers
    names = {paper.entry(name).id for name in only}
    return [(paper, entry) for entry in paper.entries if entry.id in names]


def check_extras() -> None:
    """Check that all required modules are installed.

    If not, raise PapersError, which names what to install.
    """
    for module, extra in _EXTRAS.items():
        try:
            import_module(module)
        except ImportError:
            raise PapersError(
                f"the papers need {module}, which is not installed",
                hint=f"Install it with: pip install 'pipistrelle[{extra}]'",
            ) from None


def check_logs(bench: Bench, chosen: Sequence[tuple[Paper, Entry]]) -> None:
    """Check that the real logs of the chosen entries exist.

    Raise PapersError if one is missing.
    """
    for paper, entry in chosen:
        if (why := bench.missing(entry.needs)) is not None:
            raise PapersError(f"entry {entry.id} of paper {paper.id} cannot be computed: {why}")


def make_entries(bench: Bench, chosen: Sequence[tuple[Paper, Entry]]) -> Iterator[EntryResult]:
    """Compute entries one by one and yield each result.

    Raises:
        PipistrelleError: if a run or a study of an entry fails; finished parts are kept.
    """
    for paper, entry in chosen:
        if not entry.command:
            yield EntryResult(paper, entry, "not computable", entry.reason)
        elif (why := bench.missing(entry.needs)) is not None:
            yield EntryResult(paper, entry, "left out", why)
        else:
            sheet = Sheet(paper, entry)
            computations(paper.id)[entry.id](bench, sheet)
            finding = sheet.finding(bench.size)
            yield EntryResult(paper, entry, verdict_of(finding), entry.reason, finding)
