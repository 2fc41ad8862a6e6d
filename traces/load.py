"""Reading and writing a workload without saying in which format: content decides on reading, the suffix on writing."""

import io
import os
from collections.abc import Callable, Sequence

from pipistrelle.protocol.errors import did_you_mean
from pipistrelle.traces import haizea, maui_resources, maui_trace, pbs_accounting, sacct
from pipistrelle.traces.batsim_json import parse_batsim
from pipistrelle.traces.batsim_text import batsim_chunks
from pipistrelle.traces.errors import TraceError, shown
from pipistrelle.traces.files import PathText, open_trace, write_trace
from pipistrelle.traces.job_table import LogOptions, Units
from pipistrelle.traces.log_labels import written_labels
from pipistrelle.traces.maui_text import maui_chunks
from pipistrelle.traces.sacct_text import sacct_chunks
from pipistrelle.traces.swf import parse_swf, swf_chunks
from pipistrelle.traces.swf_numbers import loses_dependencies
from pipistrelle.traces.workload import LABELS, Workload

Parser = Callable[[io.BufferedReader, PathText, LogOptions], Workload]

_WRITERS = {
    f"{suffix}{packing}": chunks
    for suffix, chunks in (
        (".swf", swf_chunks),
        (".json", batsim_chunks),
        (".sacct", sacct_chunks),
        (".maui", maui_chunks),
    )
    for packing in ("", ".gz", ".xz")
}

#: Names that `save` understands end in one of these.
SUFFIXES = tuple(_WRITERS)

#: {suffix of a format: the labels, and other things of `Workload.columns` and `measures`, that it has a place for}
_KEPT = {
    ".swf": {"user", "group", "queue", "partition", "dependency", "state"},
    ".json": set(LABELS),
    ".sacct": set(LABELS) - {"partition"} | {"wait"},
    ".maui": set(LABELS) - {"partition", "dependency"} | {"wait"},
}
#: {column of numbers: the label that stands for it where there are words}
_STANDS_FOR = {"preceding": "dependency", "status": "state"}


def load(path: PathText, *, sort: bool = False, units: Units = "nodes", timezone: str | None = None) -> Workload:
    """Read a workload, plain or compressed; its content says in which format it is.

    Parameters
    ----------
    sort
        take an SWF file whose jobs are not in the order of their submit times; all other formats are always sorted.
    units
        what sizes count in a centre's log that has both: ``nodes`` or ``processors``.
    timezone
        the zone of such a log's clock, e.g. ``Europe/Prague``; None: UTC.

    Raises
    ------
    TraceError
        if the file cannot be read or breaks a rule of its format; the message says where and what to do.
    """
    options = LogOptions(units, timezone)
    options.zone()
    with open_trace(path) as stream:
        head = stream.peek().removeprefix(b"\xef\xbb\xbf").lstrip()
        if head[:1] in (b"{", b"["):
            return parse_batsim(stream.read(), path)
        parser = _log_parser(head, path)
        if parser is not None:
            return parser(stream, path, options)
        return parse_swf(stream, path, sort=sort)


def load_parts(paths: Sequence[PathText], *, units: Units = "nodes", timezone: str | None = None) -> Workload:
    """Read one log that is in several files, in the order of time, such as the days of PBS accounting.

    PBS accounting and what sacct prints may be. A job may begin in one file and end in a later one. The workload has
    the first file's name. `units` and `timezone` are as with `load`.

    Raises
    ------
    TraceError
        if a file cannot be read or breaks a rule of its format, or is of another one.
    """
    options = LogOptions(units, timezone)
    first: Parser | None = None
    log: pbs_accounting.PbsLog | sacct.SacctLog | None = None
    for path in paths:
        with open_trace(path) as stream:
            parser = _log_parser(stream.peek().removeprefix(b"\xef\xbb\xbf").lstrip(), path)
            if first is None:
                first = parser
                if parser is pbs_accounting.parse_pbs_accounting:
                    log = pbs_accounting.PbsLog(options)
                elif parser is sacct.parse_sacct:
                    log = sacct.SacctLog(options)
            if log is None or parser is not first:
                raise TraceError(
                    "the file is no part of a log in several files",
                    where=os.fspath(path),
                    expected="PBS accounting or sacct's output, the same in all files",
                    hint="'pipistrelle workload merge' puts workloads of any formats together.",
                )
            log.read(stream, os.fspath(path))
    if log is None:
        raise ValueError("no files")
    return log.workload(paths[0])


def _log_parser(head: bytes, path: PathText) -> Parser | None:
    """Return the reader of the centre's log that begins so, None if it is none of those known."""
    if head.startswith(b"<"):
        return haizea.parse_haizea
    if pbs_accounting.SIGN.match(head):
        return pbs_accounting.parse_pbs_accounting
    lines = head.decode("utf-8", "replace").splitlines()
    first = next((line for line in lines if line.strip() and not line.lstrip().startswith("#")), "")
    if sacct.is_header(first):
        return sacct.parse_sacct
    if maui_trace.is_trace_line(first):
        return maui_trace.parse_maui
    if maui_resources.is_resource_line(first):
        raise TraceError(
            "is a Maui resource trace: a machine, not its jobs",
            where=os.fspath(path),
            expected="a workload",
            hint="'pipistrelle convert' makes a platform of it: name a .toml file to write.",
        )
    return None


def save(workload: Workload, path: PathText) -> None:
    """Write a workload in the format that the path's suffix names, one of `SUFFIXES`; .gz and .xz compress.

    Equal workloads give equal bytes.

    Raises
    ------
    TraceError
        if the suffix is not known, the format cannot keep a job, or the file cannot be written.
    """
    where = os.fspath(path)
    suffix = _suffix(where)
    if suffix is not None:
        write_trace(path, _WRITERS[suffix](workload))
        return
    name = os.path.basename(where)
    raise TraceError(
        "the name does not say which format to write",
        where=where,
        expected=f"a name that ends in one of {', '.join(SUFFIXES)}",
        found=shown(name),
        hint=did_you_mean(os.path.splitext(name)[1] or name, list(SUFFIXES)),
    )


def not_kept(workload: Workload, path: PathText) -> list[str]:
    """Return what of a workload's labels, columns and measures the format that the suffix names has no place for.

    They are names such as ``account``, in the order of `LABELS`, the others by name after them.
    """
    suffix = _suffix(os.fspath(path)) or ""
    ending, kept = next(((ending, kept) for ending, kept in _KEPT.items() if suffix.startswith(ending)), ("", set()))
    lost = [label for label in written_labels(workload) if label not in kept]
    if ending == ".swf":
        if loses_dependencies(workload):
            lost.append("dependency (but for the end of one job)")
        return lost
    numbers = {_STANDS_FOR.get(name, name) for name in (*workload.columns, *workload.measures)}
    return lost + sorted(numbers - kept - set(lost))


def _suffix(where: str) -> str | None:
    return next((suffix for suffix in _WRITERS if where.endswith(suffix)), None)
