"""Recognise text files that are not workloads.

The error can then say what they are.
"""

from pathlib import Path
from typing import Final

from pipistrelle.protocol.base.errors import InputError
from pipistrelle.traces.files import beginning
from pipistrelle.traces.logs.kinds import kind_of

#: (columns of a CSV header, what the file is, what to do)
_TABLES: Final = (
    (
        {"node", "down", "up"},
        "a list of outages",
        "'--outages FILE' replays it in a run, and 'pipistrelle failures show FILE' describes it.",
    ),
    ({"job_id", "submission_time"}, "a run's table of jobs", "'pipistrelle report FOLDER' describes the run."),
    ({"cpu_milli", "memory_mib"}, "a list with resources, but neither of pods nor of nodes", ""),
    ({"name"}, "a table with names, but not of nodes", ""),
    ({"location"}, "a table with places, but not of nodes", ""),
)
_NODES: Final = "A table of nodes has a column class, mttf, age or installed, or both name and location."
_MANUAL: Final = "'pipistrelle help workloads' and 'pipistrelle help platforms' describe the formats."
_TOML: Final = "A platform is given with --platform, and a run as 'pipistrelle run FILE'."
#: the first key of a slurm.conf is one of these
_SLURM: Final = ("clustername", "nodename", "slurmctldhost", "include")


def require_workload(path: Path, expected: str = "a workload: SWF, Batsim's JSON or an accounting log") -> None:
    """Raise InputError for a text file that is certainly not a workload.

    The error names the kind of the file if it is known. A file that looks like no other format must be SWF, so its
    first line must begin with a number. A file with the suffix ``.swf`` is not checked.
    """
    if ".swf" in path.suffixes:
        return
    head = beginning(path)
    lines = head.decode("utf-8-sig", "replace").splitlines()
    first = next((line for line in lines if line.strip() and not line.lstrip().startswith((";", "#"))), "")
    if kind_of(head) != "swf" or "|" in first or not first or _is_number(first.split()[0]):
        return
    cells = {cell.strip().strip('"') for cell in first.split(",")}
    what, hint = next(((what, hint or _NODES) for columns, what, hint in _TABLES if columns <= cells), ("", _MANUAL))
    if first.split("=")[0].strip().lower() in _SLURM:
        what = "a slurm.conf"
    elif path.suffix == ".toml":
        what, hint = "a TOML file", _TOML
    fault = f"this is {what}" if what else "the kind of this file is not recognised"
    raise InputError(fault, where=str(path), expected=expected, hint=hint)


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
