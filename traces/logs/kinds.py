"""Recognize the formats of workload files.

The units that job sizes can count are defined here, too.
"""

import re
from typing import Final, Literal

Units = Literal["nodes", "processors", "gpus"]


Kind = Literal[
    "batsim",
    "haizea",
    "helios",
    "maui",
    "maui resources",
    "nodes",
    "pbs",
    "philly",
    "pods",
    "sacct",
    "slurm events",
    "swf",
]

#: sacct columns that may identify a job
IDS: Final = ("JobID", "JobIDRaw")
#: first word of the lines that describe nodes in a Maui resource trace
NODE_SIGN: Final = "COMPUTENODE"

#: {kind: columns of its CSV header}
_TABLES: Final[dict[Kind, set[str]]] = {
    "pods": {"name", "cpu_milli", "memory_mib", "num_gpu"},
    "nodes": {"sn", "cpu_milli", "memory_mib", "gpu"},
    "helios": {"job_id", "gpu_num", "submit_time"},
}

_BOM: Final = b"\xef\xbb\xbf"
_PBS: Final = re.compile(rb"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d(?:\.\d+)?;[A-Za-z];")
_VERSION: Final = re.compile(r"VERSION[ \t=]", re.IGNORECASE)
#: the first event of a file of the University at Buffalo's simulator of Slurm
_EVENT: Final = re.compile(r"\s*-(?:dt\s+\S+\s+-e|e\s+\S+\s+-dt)\s")
_LEAST_FIELDS: Final = 30  # recognizes truncated lines of Maui workload traces; SWF has 18 fields, nodes' lines 21


def kind_of(head: bytes, *, columns: bool = False) -> Kind:
    """Return the format of a workload file from its beginning.

    If no other format fits, it is SWF. If `columns` are given, lines with bars are sacct output even without a header.
    """
    head = head.removeprefix(_BOM).lstrip()
    if head[:1] in (b"{", b"["):
        return "philly" if head[:1] == b"[" and b'"attempts"' in head else "batsim"
    if head[:1] == b"<":
        return "haizea"
    if _PBS.match(head):
        return "pbs"
    lines = head.decode("utf-8", "replace").splitlines()
    first = next((line for line in lines if line.strip() and not line.lstrip().startswith("#")), "")
    if _EVENT.match(first):
        return "slurm events"
    if is_sacct_header(first) or (columns and "|" in first):
        return "sacct"
    cells = {cell.strip().strip('"') for cell in first.split(",")}
    table = next((kind for kind, columns in _TABLES.items() if columns <= cells), None)
    if table is not None:
        return table
    if next((line for line in lines if line.strip() and not is_remark(line)), "").split()[:1] == [NODE_SIGN]:
        return "maui resources"
    return "maui" if _VERSION.match(first) or len(first.split()) >= _LEAST_FIELDS else "swf"


def is_sacct_header(line: str) -> bool:
    """Return whether a line is a header of ``sacct --parsable2`` or ``--parsable``."""
    cells = [cell.strip() for cell in line.split("|")]
    return len(cells) > 1 and any(name in cells for name in IDS)


def is_remark(line: str) -> bool:
    """Return whether a line of a Maui trace is a comment or the trace's version."""
    return line.lstrip().startswith("#") or bool(_VERSION.match(line))
