"""Reading and writing a workload without saying in which format: content decides on reading, the suffix on writing."""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Unpack

from pipistrelle.protocol.base.errors import did_you_mean, quoted
from pipistrelle.traces.batsim.text import batsim_chunks
from pipistrelle.traces.batsim.workload import parse_batsim
from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.files import PathText, open_trace, write_trace
from pipistrelle.traces.logs import maui, swf_numbers
from pipistrelle.traces.logs.haizea import HaizeaLog
from pipistrelle.traces.logs.job_table import JobLog, LogOptions, LogReading
from pipistrelle.traces.logs.kinds import kind_of
from pipistrelle.traces.logs.labels import written_labels
from pipistrelle.traces.logs.pbs import PbsLog
from pipistrelle.traces.logs.sacct import SacctLog, sacct_chunks
from pipistrelle.traces.logs.swf import parse_swf, swf_chunks
from pipistrelle.traces.workload import LABELS, NODE_LIST, PER_NODE, WHOLE, Workload

#: {kind of log: what reads it}
_LOGS: Final[dict[str, type[JobLog]]] = {"haizea": HaizeaLog, "maui": maui.MauiLog, "pbs": PbsLog, "sacct": SacctLog}
#: {suffix: what writes the format}
_WRITERS: Final[dict[str, Callable[[Workload], Iterator[bytes]]]] = {
    f"{suffix}{packing}": write
    for suffix, write in (
        (".swf", swf_chunks),
        (".json", batsim_chunks),
        (".sacct", sacct_chunks),
        (".maui", maui.maui_chunks),
    )
    for packing in ("", ".gz", ".xz")
}

#: {suffix that a user may try: why it is not written}
_ONLY_READ: Final = {
    ".pbs": "PBS accounting is read, but not written.",
    ".xml": "Haizea's leases are read, but not written.",
    ".lwf": "Haizea's leases are read, but not written.",
    ".toml": "A .toml file is a platform, which 'convert' makes of a Maui resource trace.",
}

#: Names that `save` understands end in one of these.
SUFFIXES = tuple(_WRITERS)

#: {suffix of a format: the labels, and other things of `Workload.columns` and `measures`, that it has a place for}
_KEPT = {
    ".swf": {"user", "group", "queue", "partition", "dependency", "state"},
    ".json": set(LABELS) | {PER_NODE, WHOLE},
    ".sacct": set(LABELS) - {"partition"} | {"wait"},
    ".maui": set(LABELS) - {"partition", "dependency", NODE_LIST} | {"wait"},
}
#: {column of numbers: the label that stands for it where there are words}
_STANDS_FOR = {"preceding": "dependency", "status": "state"}


def load(path: PathText, *, sort: bool = False, **reading: Unpack[LogReading]) -> Workload:
    """Read a workload, plain or compressed; its content says in which format it is.

    Args:
        sort: take an SWF file whose jobs are not in the order of their submit times; all other formats are always
            sorted.
        units: what sizes count in a centre's log that has both: ``nodes`` or ``processors``.
        timezone: the zone of such a log's clock, e.g. ``Europe/Prague``; None: UTC.
        columns: the names of the columns of what sacct printed without a header, separated by commas.
        strict: a record of PBS's that cannot be read ends the reading; else it is left out, see `Workload.faults`.

    Raises:
        TraceError: if the file cannot be read or breaks a rule of its format; the message says where and what to do.
    """
    options = LogOptions(**reading)
    options.zone()
    with open_trace(path) as stream:
        kind = kind_of(stream.peek(), columns=options.columns is not None)
        if kind == "batsim":
            return parse_batsim(stream.read(), path)
        if kind == "swf":
            return parse_swf(stream, path, sort=sort)
        if kind == "maui resources":
            raise TraceError(
                "is a Maui resource trace: a machine, not its jobs",
                where=os.fspath(path),
                expected="a workload",
                hint="'pipistrelle convert' makes a platform of it: name a .toml file to write.",
            )
        return _LOGS[kind].parse(stream, path, options)


def load_parts(paths: Sequence[PathText], **reading: Unpack[LogReading]) -> Workload:
    """Read one log that is in several files, in the order of time, such as the days of PBS accounting.

    PBS accounting and what sacct prints may be. A job may begin in one file and end in a later one. The workload has
    the first file's name. The other parameters are as with `load`.

    Raises:
        TraceError: if a file cannot be read or breaks a rule of its format, or is of another one.
    """
    options = LogOptions(**reading)
    first = ""
    log: JobLog | None = None
    for path in paths:
        with open_trace(path) as stream:
            kind = kind_of(stream.peek(), columns=options.columns is not None)
            if not first:
                first = kind
                log = _LOGS[kind](options) if kind in _LOGS and _LOGS[kind].in_parts else None
            if log is None or kind != first:
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


def save(workload: Workload, path: PathText) -> None:
    """Write a workload in the format that the path's suffix names, one of `SUFFIXES`; .gz and .xz compress.

    Equal workloads give equal bytes.

    Raises:
        TraceError: if the suffix is not known, the format cannot keep a job, or the file cannot be written.
    """
    where = os.fspath(path)
    suffix = _suffix(where)
    if suffix is not None:
        write_trace(path, _WRITERS[suffix](workload))
        return
    name = os.path.basename(where)
    ending = os.path.splitext(name)[1]
    raise TraceError(
        "the name does not say which format to write",
        where=where,
        expected=f"a name that ends in one of {', '.join(SUFFIXES)}",
        found=quoted(name),
        hint=_ONLY_READ.get(ending) or did_you_mean(ending or name, list(SUFFIXES)),
    )


def not_kept(workload: Workload, path: PathText) -> list[str]:
    """Return what of a workload's labels, columns and measures the format that the suffix names has no place for.

    They are names such as ``account``, in the order of `LABELS`, the others by name after them, and the machine's size.
    """
    suffix = _suffix(os.fspath(path)) or ""
    ending, kept = next(((ending, kept) for ending, kept in _KEPT.items() if suffix.startswith(ending)), ("", set()))
    lost = [label for label in written_labels(workload) if label not in kept]
    if ending == ".swf":
        if swf_numbers.loses_dependencies(workload):
            lost.append("dependency (but for the end of one job)")
        if swf_numbers.loses_states(workload):
            lost.append("state (but for success, failure and cancellation)")
        lost += [name for name in (PER_NODE, WHOLE) if name in workload.columns]
        return lost
    if ending == ".maui" and maui.loses_states(workload):
        lost.append("state (but for removed jobs and those that never ran)")
    if ending == ".maui" and maui.loses_constraints(workload):
        lost.append("constraint (but for features that nodes must have)")
    numbers = {_STANDS_FOR.get(name, name) for name in (*workload.columns, *workload.measures)}
    lost += sorted(numbers - kept - set(lost))
    if ending in (".sacct", ".maui") and workload.machine_size is not None:
        lost.append("the machine's size")
    return lost


def _suffix(where: str) -> str | None:
    return next((suffix for suffix in _WRITERS if where.endswith(suffix)), None)
