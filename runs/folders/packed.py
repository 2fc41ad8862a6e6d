"""Store the rows that a comparison of runs needs in one small compressed file.

A run's tables take about 300 bytes per job, which is too much for a repository. The packed file has only the columns
that comparisons read, one column after another, and takes about ten bytes per job.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Final

import msgspec

from pipistrelle.protocol.base.errors import InputError, printable
from pipistrelle.server.outputs.folder import OUTPUT_PREFIX
from pipistrelle.traces.files import open_trace, write_trace

PACKED_FILE: Final = "rows.json.xz"
#: {table: columns that comparisons read}
_COLUMNS: Final = {
    "decisions": ("time", "decision", "job_id", "alloc", "verdict", "why"),
    "jobs": (
        *("starting_time", "allocated_resources", "workload_name", "job_id", "submission_time"),
        *("requested_number_of_resources", "final_state", "finish_time"),
    ),
}
_TIMES: Final = ("submission_time", "starting_time", "finish_time")
_HINT: Final = "'pipistrelle check cases FOLDER --update' writes it again."

Table = dict[str, list[str]]


class _Rows(msgspec.Struct, forbid_unknown_fields=True):
    """The tables in a packed file, each as {column: cells}."""

    decisions: Table
    jobs: Table


def pack_rows(run: Path, target: Path) -> None:
    """Write the packed rows of a run's folder to the folder ``target``.

    Times of jobs lose their trailing zeros, and jobs are in the order of their starts, because both compress better.

    Raises:
        PipistrelleError: a table is missing, or the file cannot be written.
    """
    decisions, jobs = (_read(run, name) for name in _COLUMNS)
    begun = dict(zip(decisions["job_id"], count(), strict=False))
    names = [f"{prefix}!{name}" for prefix, name in zip(jobs["workload_name"], jobs["job_id"], strict=True)]
    order = sorted(range(len(names)), key=lambda row: begun.get(names[row], len(begun)))
    jobs = {name: [cells[row] for row in order] for name, cells in jobs.items()}
    for name in _TIMES:
        jobs[name] = [repr(float(cell)) if cell else "" for cell in jobs[name]]
    write_trace(target / PACKED_FILE, [msgspec.json.encode(_Rows(decisions, jobs))])


def packed_table(folder: Path, name: str) -> Table | None:
    """Return the packed table ``name``, such as ``jobs``, as {column: cells}.

    Return None if absent.

    Raises:
        PipistrelleError: the file is damaged.
    """
    path = folder / PACKED_FILE
    if name not in _COLUMNS or not path.is_file():
        return None
    with open_trace(path, what="packed rows of a run") as stream:
        raw = stream.read()
    try:
        table: Table = getattr(msgspec.json.decode(raw, type=_Rows), name)
    except (ValueError, RecursionError) as error:
        found = printable(str(error))[:100]
        raise InputError("the packed rows cannot be read", where=str(path), found=found, hint=_HINT) from None
    if set(table) != set(_COLUMNS[name]) or len(set(map(len, table.values()))) != 1:
        raise InputError(f"the packed {name} lack columns or cells", where=str(path), hint=_HINT)
    return table


def packed_rows(folder: Path, name: str) -> Iterator[dict[str, str]] | None:
    """Return the rows of a packed table as dicts; None if the table is absent.

    Raise an error as `packed_table` does.
    """
    table = packed_table(folder, name)
    return None if table is None else (dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True))


def _read(run: Path, name: str) -> Table:
    path = run / f"{OUTPUT_PREFIX}{name}.csv"
    with open_trace(path, may_be_empty=True, what="a table of a run") as stream:
        header, *rows = list(csv.reader(io.StringIO(stream.read().decode(), newline="")))
    columns: dict[str, Sequence[str]] = dict(zip(header, zip(*rows, strict=True), strict=True)) if rows else {}
    return {column: list(columns.get(column, ())) for column in _COLUMNS[name]}
