"""Reading and writing a workload without saying in which format: content decides on reading, the suffix on writing."""

import io
import os

from pipistrelle.protocol.errors import did_you_mean
from pipistrelle.traces.batsim_json import parse_batsim
from pipistrelle.traces.batsim_text import batsim_chunks
from pipistrelle.traces.errors import TraceError, shown
from pipistrelle.traces.files import PathText, open_trace, write_trace
from pipistrelle.traces.swf import parse_swf, swf_chunks
from pipistrelle.traces.workload import Workload

_WRITERS = {
    f"{suffix}{packing}": chunks
    for suffix, chunks in ((".swf", swf_chunks), (".json", batsim_chunks))
    for packing in ("", ".gz", ".xz")
}

#: Names that `save` understands end in one of these.
SUFFIXES = tuple(_WRITERS)


def load(path: PathText, *, sort: bool = False) -> Workload:
    """Read a workload, plain or compressed: Batsim's JSON if it starts with a brace, else SWF.

    `sort` takes an SWF file whose jobs are not in the order of their submit times; JSON's are always sorted.

    Raises
    ------
    TraceError
        if the file cannot be read or breaks a rule of its format; the message says where and what to do.
    """
    with open_trace(path) as stream:
        if _is_json(stream):
            return parse_batsim(stream.read(), path)
        return parse_swf(stream, path, sort=sort)


def _is_json(stream: io.BufferedReader) -> bool:
    """Look ahead: neither a comment nor a number of SWF starts with a brace or a bracket."""
    return stream.peek().removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")


def save(workload: Workload, path: PathText) -> None:
    """Write a workload in the format that the path's suffix names, one of `SUFFIXES`; .gz and .xz compress.

    Equal workloads give equal bytes.

    Raises
    ------
    TraceError
        if the suffix is not known, the format cannot keep a job, or the file cannot be written.
    """
    where = os.fspath(path)
    for suffix, chunks in _WRITERS.items():
        if where.endswith(suffix):
            write_trace(path, chunks(workload))
            return
    name = os.path.basename(where)
    raise TraceError(
        "the name does not say which format to write",
        where=where,
        expected=f"a name that ends in one of {', '.join(SUFFIXES)}",
        found=shown(name),
        hint=did_you_mean(os.path.splitext(name)[1] or name, list(SUFFIXES)),
    )
