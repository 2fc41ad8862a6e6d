"""``pipistrelle study papers``: reproduce tables and figures of five papers."""

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from pipistrelle.cli.options.fields import Choice
from pipistrelle.cli.options.sections import Command
from pipistrelle.cli.study.trials import jobs_option
from pipistrelle.cli.terminal.console import configure_log, import_numpy, print_json, print_table, say, show
from pipistrelle.cli.terminal.guard import FOLDER, FilledPath

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipistrelle.papers.printed import Entry, EntryResult, Paper

_KEPT: Final = "kept"
_COLUMNS: Final = ("paper", "entry", "outcome", "agree", "what it shows")


@click.command(cls=Command)
@click.argument("numbers", nargs=-1, metavar="[000|001|002|003|004]...")
@click.option(
    "--only",
    multiple=True,
    metavar="ENTRY",
    help="Reproduce only this table or figure, such as table-2; repeatable.",
)
@click.option(
    "--size",
    type=Choice(["small", "full"]),
    default="small",
    help="How much to simulate: about a minute per paper (small), or as much as the paper (full).",
)
@click.option(
    "-o",
    "--out",
    type=FOLDER,
    default="papers",
    metavar="DIR",
    help="Folder of the results; interrupted work continues there.",
)
@click.option(
    "--traces",
    type=FilledPath(path_type=Path, file_okay=False, exists=True),
    metavar="DIR",
    envvar="PIPISTRELLE_TRACES",
    show_envvar=True,
    help="Folder with real logs; skip tables and figures whose log is missing.",
)
@jobs_option
@click.option("--list", "as_list", is_flag=True, help="List the tables and figures; compute nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print the list of papers, or the results, as JSON.")
@click.option("-q", "--quiet", is_flag=True, help="Do not show progress.")
def command(
    numbers: tuple[str, ...],
    only: tuple[str, ...],
    size: str,
    out: Path,
    traces: Path | None,
    jobs: int | None,
    as_list: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Reproduce the tables and figures of five papers.

    \b
    000  repair time and reliability at LANL
    001  partitions of nodes by reliability
    002  Maui as a simulator
    003  spare nodes and moldable applications
    004  stable GPUs on Titan

    Without a number, all papers are reproduced. DIR gets one page per paper, with the printed and the computed values.
    All values are also in papers.json and papers.csv.

    \b
    pipistrelle study papers --list
    pipistrelle study papers 001 --only table-4.3
    pipistrelle study papers 000 --size full -o full
    """
    import_numpy()
    from pipistrelle.papers.collection import chosen_entries, get_paper, paper_ids

    papers = [get_paper(number) for number in dict.fromkeys(numbers or paper_ids())]
    chosen = chosen_entries(papers, only)
    if as_list:
        _print_list(chosen, as_json)
        return
    results = _computed(chosen, bool(only), size, out, traces, jobs, quiet)
    from pipistrelle.papers.telling import plain

    document = plain(results, size)
    files = _write(results, document, only, size, out)
    if as_json:
        print_json(document)
        return
    _print_results(results)
    for path in files:
        click.echo(str(path))


def _computed(
    chosen: "Sequence[tuple[Paper, Entry]]",
    named: bool,
    size: str,
    out: Path,
    traces: Path | None,
    jobs: int | None,
    quiet: bool,
) -> "list[EntryResult]":
    from pipistrelle.papers.bench import SIZES, Bench, open_parts
    from pipistrelle.papers.collection import check_extras, check_logs, make_entries

    configure_log(click.get_current_context().find_root().params.get("verbose", 0), once=True)
    check_extras()
    kept = out / _KEPT / size
    with _telling(quiet) as tell:
        bench = Bench(SIZES[size], folder=kept, traces=traces, jobs=jobs, tell=tell)
        if named:
            check_logs(bench, chosen)
        with open_parts(kept, SIZES[size]) as parts:
            bench.parts = parts
            return list(make_entries(bench, chosen))


@contextmanager
def _telling(quiet: bool) -> Iterator[Callable[[str], None]]:
    """Yield a function that shows a text as progress; with ``quiet`` it shows nothing."""
    if quiet:
        yield lambda text: None
    elif sys.stderr.isatty():
        from rich.console import Console

        from pipistrelle.cli.terminal.console import plain

        with Console(stderr=True).status("") as status:
            yield lambda text: status.update(plain(text))
    else:
        said: set[str] = set()

        def tell(text: str) -> None:
            name = text.partition(": ")[0]
            if name not in said:
                said.add(name)
                say(name)

        yield tell


def _write(
    results: "Sequence[EntryResult]", document: dict[str, object], only: tuple[str, ...], size: str, out: Path
) -> list[Path]:
    """Write pages and tables; return their paths."""
    from pipistrelle.papers.page import paper_page
    from pipistrelle.papers.telling import csv_text
    from pipistrelle.server.outputs.once import write_output

    names = "-".join(dict.fromkeys(one.entry.id for one in results)) if only else ""
    files = []
    for paper in {one.paper.id: one.paper for one in results}.values():
        mine = [one for one in results if one.paper is paper]
        files.append(out / (f"{paper.id}-{names}.html" if names else f"{paper.id}.html"))
        write_output(files[-1], paper_page(paper, mine, size))
    stem = f"{results[0].paper.id}-{names}" if names else "papers"
    for suffix, text in (("json", json.dumps(document, indent=2, allow_nan=False) + "\n"), ("csv", csv_text(results))):
        files.append(out / f"{stem}.{suffix}")
        write_output(files[-1], text)
    return files


def _print_list(chosen: "Sequence[tuple[Paper, Entry]]", as_json: bool) -> None:
    from pipistrelle.papers.telling import listed

    rows = listed(chosen)
    if as_json:
        names = ("paper", "entry", "title", "place", "needs", "computable")
        click.echo(json.dumps([dict(zip(names, row, strict=True)) for row in rows], indent=2))
        return

    for paper in {paper.id: paper for paper, _ in chosen}.values():
        show(f"{paper.id} {paper.name}: {paper.citation}", "bold")
        for number, entry, title, _, needs, computable in rows:
            if number == paper.id:
                known = "" if computable else "  (not computable)"
                known += f"  (needs {', '.join(needs)})" if needs else ""
                show(f"  {entry:16} {title}{known}")


def _print_results(results: "Sequence[EntryResult]") -> None:
    rows = []
    for one in results:
        right, every = one.compared
        agree = f"{right} of {every}" if every else ""
        rows.append((one.paper.id, one.entry.id, one.verdict, agree, one.entry.title))
    counts = Counter(one.verdict for one in results)
    title = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    print_table(title, _COLUMNS, rows, ("paper", "entry", "outcome", "what it shows"))
    for one in results:
        if one.verdict == "left out":
            show(f"{one.paper.id} {one.entry.id} is left out: {one.reason}")
