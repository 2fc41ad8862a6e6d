"""Read and write workloads; the content or the suffix determines the format."""

import os
from collections.abc import Sequence
from importlib import import_module
from typing import Final, Unpack

from pipistrelle.protocol.base.errors import did_you_mean, quoted
from pipistrelle.traces.errors import TraceError, counted
from pipistrelle.traces.files import PathText, open_trace, write_trace
from pipistrelle.traces.logs.job_table import JobLog, LogOptions, LogReading
from pipistrelle.traces.logs.kinds import kind_of
from pipistrelle.traces.logs.labels import written_labels
from pipistrelle.traces.logs.swf import parse_swf
from pipistrelle.traces.workload import LABELS, NODE_LIST, OPTIONS, PER_NODE, REQUEST, WHOLE, Workload

#: {kind of log: module and class of its reader}; `_reader` imports only the one that is needed
_LOGS: Final = {
    "haizea": ("logs.haizea", "HaizeaLog"),
    "helios": ("clusters.helios", "HeliosLog"),
    "maui": ("logs.maui", "MauiLog"),
    "pbs": ("logs.pbs", "PbsLog"),
    "philly": ("clusters.philly", "PhillyLog"),
    "pods": ("clusters.pods", "PodLog"),
    "sacct": ("slurm.sacct", "SacctLog"),
    "slurm events": ("slurm.events", "EventsLog"),
}
#: {suffix: module and function of its writer}
_WRITERS: Final = {
    f"{suffix}{packing}": write
    for suffix, write in (
        (".swf", ("logs.swf", "swf_chunks")),
        (".json", ("batsim.text", "batsim_chunks")),
        (".sacct", ("slurm.sacct_text", "sacct_chunks")),
        (".maui", ("logs.maui", "maui_chunks")),
    )
    for packing in ("", ".gz", ".xz")
}

#: {suffix of a format that cannot be written: hint}
_ONLY_READ: Final = {
    ".pbs": "PBS accounting files can be read, but not written.",
    ".events": "Files of Slurm events can be read, but not written.",
    ".xml": "Haizea leases can be read, but not written.",
    ".lwf": "Haizea leases can be read, but not written.",
    ".toml": "A .toml file is a platform, which 'workload convert' makes of a Maui resource trace.",
}

#: suffixes that `save` accepts
SUFFIXES = tuple(_WRITERS)

#: {suffix: the labels, columns and measures that the format can hold}
_KEPT = {
    ".swf": {"user", "group", "queue", "partition", "dependency", "state"},
    ".json": set(LABELS) | {PER_NODE, WHOLE, REQUEST},
    ".sacct": set(LABELS) - {"partition", OPTIONS} | {"wait", REQUEST},
    ".maui": set(LABELS) - {"partition", "dependency", NODE_LIST, OPTIONS} | {"wait"},
}
#: {column of numbers: the label with the same information}
_STANDS_FOR = {"preceding": "dependency", "status": "state"}


def load(path: PathText, *, sort: bool = False, **reading: Unpack[LogReading]) -> Workload:
    """Read a workload, plain or compressed; the content determines the format.

    Args:
        sort: accept an SWF file that is not sorted by submit time; other formats are always sorted.
        units: what job sizes of a log count: ``nodes``, ``processors``, or ``gpus`` if the log has requested GPUs.
        timezone: the time zone of the log's clock, e.g. ``Europe/Prague``; None: UTC.
        columns: comma-separated column names for sacct output without a header.
        strict: reject unreadable records. Otherwise, logs of sacct, PBS and GPU clusters leave them out and list
            them in `Workload.faults`.
    """
    options = LogOptions(**reading)
    options.zone()
    with open_trace(path) as stream:
        kind = kind_of(stream.peek(), columns=options.columns is not None)
        if kind == "batsim":
            from pipistrelle.traces.batsim.workload import parse_batsim

            return parse_batsim(stream.read(), path)
        if kind == "swf":
            return parse_swf(stream, path, sort=sort)
        if kind == "maui resources":
            raise TraceError(
                "is a Maui resource trace: a machine, not its jobs",
                where=os.fspath(path),
                expected="a workload",
                hint="'pipistrelle workload convert' makes a platform of it: name a .toml file to write.",
            )
        if kind == "nodes":
            raise TraceError(
                "is a list of nodes: a machine, not its jobs",
                where=os.fspath(path),
                expected="a workload",
                hint="Give it with --platform.",
            )
        return _reader(kind).parse(stream, path, options)


def _reader(kind: str) -> type[JobLog]:
    """Return the reader of a kind of log."""
    module, name = _LOGS[kind]
    reader: type[JobLog] = getattr(import_module(f"pipistrelle.traces.{module}"), name)
    return reader


def load_parts(paths: Sequence[PathText], **reading: Unpack[LogReading]) -> Workload:
    """Read one log from several files in time order, such as daily PBS accounting.

    PBS accounting and sacct output are supported. A job may begin in one file and end in a later one. The workload gets
    the first file's name. `load` describes the other arguments.
    """
    options = LogOptions(**reading)
    first = ""
    log: JobLog | None = None
    for path in paths:
        with open_trace(path) as stream:
            kind = kind_of(stream.peek(), columns=options.columns is not None)
            if not first:
                first = kind
                log = _reader(kind)(options) if kind in _LOGS and _reader(kind).in_parts else None
            if log is None or kind != first:
                raise TraceError(
                    "the file cannot be part of a log in several files",
                    where=os.fspath(path),
                    expected="PBS accounting or sacct's output, the same in all files",
                    hint="'pipistrelle workload merge' merges workloads of any format.",
                )
            log.read(stream, os.fspath(path))
    if log is None:
        raise ValueError("no files")
    return log.workload(paths[0])


def save(workload: Workload, path: PathText) -> None:
    """Write a workload in the format of the path's suffix.

    Equal workloads give equal bytes.
    """
    where = os.fspath(path)
    suffix = _suffix(where)
    if suffix is not None:
        module, name = _WRITERS[suffix]
        write_trace(path, getattr(import_module(f"pipistrelle.traces.{module}"), name)(workload))
        return
    name = os.path.basename(where)
    ending = os.path.splitext(name)[1]
    raise TraceError(
        "the file's suffix names no format",
        where=where,
        expected="a name that ends in the suffix of a format",
        found=quoted(name),
        hint=_ONLY_READ.get(ending) or did_you_mean(ending or name, list(SUFFIXES)),
    )


def not_kept(workload: Workload, path: PathText) -> list[str]:
    """Return the labels, columns and measures that the path's format cannot hold."""
    suffix = _suffix(os.fspath(path)) or ""
    ending, kept = next(((ending, kept) for ending, kept in _KEPT.items() if suffix.startswith(ending)), ("", set()))
    from pipistrelle.traces.logs import maui, swf_numbers  # most runs write no workload

    lost = [label for label in written_labels(workload) if label not in kept]
    if ending == ".swf":
        if swf_numbers.loses_dependencies(workload):
            lost.append("dependency (except for the end of one job)")
        if swf_numbers.loses_states(workload):
            lost.append("state (except for success, failure and cancellation)")
        lost += [name for name in (PER_NODE, WHOLE) if name in workload.columns]
        return [*lost, *_lost_requests(workload, kept)]
    if ending == ".maui" and maui.loses_states(workload):
        lost.append("state (except for removed jobs and jobs that never ran)")
    if ending == ".maui" and maui.loses_constraints(workload):
        lost.append("constraint (except for required node features)")
    numbers = {_STANDS_FOR.get(name, name) for name in (*workload.columns, *workload.measures)}
    lost += sorted(numbers - kept - set(lost))
    if ending in (".sacct", ".maui") and workload.machine_size is not None:
        lost.append("the machine's size")
    return [*lost, *_lost_requests(workload, kept)]


def _lost_requests(workload: Workload, kept: set[str]) -> list[str]:
    count = sum(request is not None for request in workload.requests or ())
    return [f"requests for cores, memory and GPUs of {counted(count, 'job')}"] if count and REQUEST not in kept else []


def _suffix(where: str) -> str | None:
    return next((suffix for suffix in _WRITERS if where.endswith(suffix)), None)
