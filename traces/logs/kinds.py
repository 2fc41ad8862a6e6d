"""What kinds of logs of jobs there are: by what one is recognised, and what its sizes may count."""

import re
from typing import Final, Literal

Units = Literal["nodes", "processors", "gpus"]


Kind = Literal["batsim", "haizea", "maui", "maui resources", "pbs", "sacct", "swf"]

#: the columns of Slurm's sacct that may name a job
IDS: Final = ("JobID", "JobIDRaw")
#: the first word of a node's line in a Maui resource trace
NODE_SIGN: Final = "COMPUTENODE"

_BOM: Final = b"\xef\xbb\xbf"
_PBS: Final = re.compile(rb"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d(?:\.\d+)?;[A-Za-z];")
_VERSION: Final = re.compile(r"VERSION[ \t=]", re.IGNORECASE)
_LEAST_FIELDS: Final = 30  # a line of a Maui workload trace that is cut off is still one; SWF has 18, nodes' have 21


def kind_of(head: bytes, *, columns: bool = False) -> Kind:
    """Return how the workload is written that begins so; whatever is nothing else is taken for SWF.

    Where `columns` are known beforehand, lines with bars in them are sacct's, also without a header.
    """
    head = head.removeprefix(_BOM).lstrip()
    if head[:1] in (b"{", b"["):
        return "batsim"
    if head[:1] == b"<":
        return "haizea"
    if _PBS.match(head):
        return "pbs"
    lines = head.decode("utf-8", "replace").splitlines()
    first = next((line for line in lines if line.strip() and not line.lstrip().startswith("#")), "")
    if is_sacct_header(first) or (columns and "|" in first):
        return "sacct"
    if is_node_line(next((line for line in lines if line.strip() and not is_remark(line)), "")):
        return "maui resources"
    return "maui" if _VERSION.match(first) or len(first.split()) >= _LEAST_FIELDS else "swf"


def is_sacct_header(line: str) -> bool:
    """Tell whether a line names columns as ``sacct --parsable2`` and ``--parsable`` do."""
    cells = [cell.strip() for cell in line.split("|")]
    return len(cells) > 1 and any(name in cells for name in IDS)


def is_remark(line: str) -> bool:
    """Tell whether a line of a Maui trace is a remark or names the trace's version."""
    return line.lstrip().startswith("#") or bool(_VERSION.match(line))


def is_node_line(line: str) -> bool:
    """Tell whether a line of a Maui resource trace describes a node."""
    return line.split()[:1] == [NODE_SIGN]
