"""Read Batsim's usage traces: what each rank of a job computes, phase by phase."""

import os

from pipistrelle.protocol.base.errors import printable, quoted
from pipistrelle.traces.errors import TraceError, line_fault, out_of_range
from pipistrelle.traces.files import is_inside, open_trace

#: phases of a rank, in order: (share of the host's cores, flops on each of them)
Phases = tuple[tuple[float, float], ...]

_ACTION = "m_usage"
_FORM = "a line 'RANK m_usage SHARE FLOPS'"
#: more flops than any real job has, but products stay finite
_MOST_FLOPS = 1e30


def read_usage_trace(name: str, folder: str) -> tuple[Phases, ...]:
    """Read a usage trace; file ``name`` lists one file per rank.

    A rank's file has the phases of that rank. ``name`` is relative to ``folder``, the workload's folder. The ranks'
    files are relative to the folder of ``name``. No file may be outside ``folder``. As in Batsim, lines of other ranks
    in a rank's file are ignored.
    """
    path = _inside(folder, "", name)
    beside = os.path.dirname(name.lstrip("/"))
    ranks: list[Phases] = []
    with open_trace(path) as stream:
        for line in stream:
            rank = line.decode("utf-8", "surrogateescape").strip()
            if rank:
                ranks.append(_read_rank(_inside(folder, beside, rank), len(ranks)))
    if not ranks:
        raise TraceError(
            "lists no files",
            where=str(path),
            expected="the file of each rank, one per line",
            hint="A job has at least one rank.",
        )
    return tuple(ranks)


def _inside(folder: str, beside: str, name: str) -> str:
    """Return the path of a usage trace's file.

    Raise TraceError if it is outside the workload's folder. ``name`` is relative to ``beside``, which is relative to
    ``folder``, the workload's folder.
    """
    # as in Batsim, a leading slash is ignored
    relative = os.path.normpath(os.path.join(beside, name.lstrip("/")))
    path = f"{folder}/{relative}"
    elsewhere = os.path.exists(path) and not (os.path.isdir(path) or is_inside(path, folder))
    if elsewhere or relative.split(os.sep)[0] == os.pardir:
        raise TraceError(
            "the usage trace is no file in the workload's folder",
            where=printable(folder),
            found=quoted(name),
            hint="Copy it into the workload's folder; links may not lead out of it.",
        )
    return path


def _read_rank(path: str, rank: int) -> Phases:
    phases: list[tuple[float, float]] = []
    with open_trace(path) as stream:
        for number, raw in enumerate(stream, start=1):
            line = raw.decode("utf-8", "replace")
            fields = line.split()
            if not fields or line.startswith("#"):
                continue
            where = f"{printable(path)}, line {number}"
            if len(fields) != 4 or fields[1] != _ACTION:
                hint = "Other actions are not supported."
                raise line_fault(where, "is not a phase of a usage trace", _FORM, line.strip(), hint)
            if fields[0] == str(rank):
                share = _number(fields[2], "share", "a number from 0 to 1", 1.0, where)
                flops = _number(fields[3], "work", f"flops from 0 to {_MOST_FLOPS:g}", _MOST_FLOPS, where)
                phases.append((share, flops))
    if not phases:
        raise TraceError(
            f"has no phase of rank {rank}",
            where=printable(path),
            expected=f"{_FORM}, RANK being {rank}",
            hint="Ranks are numbered from 0, in the order of their files.",
        )
    return tuple(phases)


def _number(text: str, what: str, expected: str, most: float, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if 0 <= value <= most:
        return value + 0.0
    raise out_of_range(what, where, expected, quoted(text), "Correct the value.")
