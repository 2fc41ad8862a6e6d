"""Read an outage log of any supported format, which is recognized by its content."""

import io
from collections.abc import Callable
from typing import Final

from pipistrelle.protocol.base.errors import quoted
from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.files import PathText, open_trace
from pipistrelle.traces.outages import lanl, pbs, titan
from pipistrelle.traces.outages.batsim import read_batsim_outages
from pipistrelle.traces.outages.log import OutageLog
from pipistrelle.traces.outages.slurm import parse_sacctmgr, parse_scontrol
from pipistrelle.traces.outages.table import parse_outage_csv

Parser = Callable[[io.BufferedReader, PathText], OutageLog]
_EXPECTED: Final = (
    "node,down,up,cause CSV, LA-UR-05-7318's table, Titan's GPU lives, Batsim's events, "
    "'sacctmgr show event', 'scontrol show node', or PBS's server log"
)


def load_outage_log(path: PathText) -> OutageLog:
    """Read an outage log, plain or compressed with gzip, xz or bzip2."""
    with open_trace(path, may_be_empty=True, what="a file of outages") as stream:
        head = stream.peek()
        if not head:
            raise TraceError("is empty", where=str(path), expected=_EXPECTED)
        if not head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{"):
            return _parser(head, path)(stream, path)
    return read_batsim_outages(path)


def _parser(head: bytes, path: PathText) -> Parser:
    """Return the parser for an outage log that begins with `head`."""
    lines = map(str.strip, head.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").split("\n"))
    first = next((line for line in lines if line and not line.startswith("#")), "")
    columns = {cell.strip() for cell in first.split(",")}
    if columns.issuperset(lanl.SIGNS):
        return lanl.parse_lanl
    if columns.issuperset(titan.SIGNS):
        return titan.parse_titan
    if columns & {"node", "down", "up"}:
        return parse_outage_csv
    if first.startswith("NodeName="):
        return parse_scontrol
    if "NodeName" in first or "TimeStart" in first:
        return parse_sacctmgr
    if pbs.SIGN.match(head):
        return pbs.parse_pbs
    raise TraceError("unknown format of outages", where=str(path), expected=_EXPECTED, found=quoted(first))
