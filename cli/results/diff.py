"""``pipistrelle diff``: the first difference of two runs, and the waits of their jobs side by side."""

from math import isfinite
from pathlib import Path
from typing import Final

import click

from pipistrelle.cli.options.sections import Command
from pipistrelle.cli.terminal.console import import_numpy, print_json, print_table, show
from pipistrelle.cli.terminal.exits import DIFFERENT
from pipistrelle.cli.terminal.guard import FILE_OR_FOLDER

#: jobs that are shown
_MOST_JOBS: Final = 20


@click.command(cls=Command)
@click.argument("a", type=FILE_OR_FOLDER)
@click.argument("b", type=FILE_OR_FOLDER)
@click.option("--json", "as_json", is_flag=True, help="Write JSON, all of it.")
@click.pass_context
def command(ctx: click.Context, /, a: Path, b: Path, as_json: bool) -> None:
    """Compare two runs by their outputs.

    A and B are folders of outputs. Told are the first decision that differs, and the jobs that waited longer or
    shorter, those that changed most first. Reasons do not count. The exit code is 1 if the runs differ.

    \b
    pipistrelle diff pipistrelle-out/demo-easy-1 pipistrelle-out/demo-fcfs-1
    """
    import_numpy()

    from pipistrelle.reports.report.differences import difference

    found = difference(a, b)
    if as_json:
        from msgspec import to_builtins

        told = {"equal": found.equal, **to_builtins(found)}
        print_json(told)
        ctx.exit(0 if found.equal else DIFFERENT)
    if found.equal:
        show(f"the same decisions, and the same waits of {found.same:,} jobs")
        return
    if found.number is None:
        show("the same decisions")
    else:
        show(f"decision {found.number} is the first that differs", "bold")
        for name, row in (("A", found.first), ("B", found.second)):
            show(f"  {name}  {'nothing more' if row is None else row}")
    for name, jobs in (("A", found.only_first), ("B", found.only_second)):
        if jobs:
            show(f"{len(jobs):,} jobs are in {name} alone, such as {jobs[0]}")
    if found.mean_first is not None:
        show(f"mean wait: {found.mean_first:,.3f} s in A, {found.mean_second:,.3f} s in B")
    rows: list[tuple[str, ...]] = [
        (
            pair.job,
            _seconds(pair.first),
            _seconds(pair.second),
            f"{pair.change:+,.6g}" if isfinite(pair.change) else "-",
        )
        for pair in found.waits[:_MOST_JOBS]
    ]
    if len(found.waits) > _MOST_JOBS:
        rows.append((f"... {len(found.waits) - _MOST_JOBS:,} more (--json)",))
    title = f"Waits: {len(found.waits):,} jobs differ, {found.same:,} do not"
    print_table(title, ("job", "in A, s", "in B, s", "change, s"), rows, ("job",))
    ctx.exit(DIFFERENT)


def _seconds(wait: float | None) -> str:
    return "not started" if wait is None else f"{wait:,.6g}"
