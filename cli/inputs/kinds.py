"""Errors for files that are not of any kind that `pipistrelle validate` reads."""

from pathlib import Path
from typing import Any, Final

from msgspec.structs import fields

from pipistrelle.platforms.description import Platform
from pipistrelle.protocol.base.errors import InputError, PipistrelleError, did_you_mean, quoted
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.description.spec_file import read_raw
from pipistrelle.schedulers.catalogue.presets import Preset
from pipistrelle.traces.files import open_trace, read_text
from pipistrelle.traces.logs.kinds import kind_of

#: (columns of a CSV header, what the file is, what to do)
_TABLES: Final = (
    ({"node", "down", "up"}, "a list of outages", "'pipistrelle failures show FILE' describes it."),
    ({"job_id", "submission_time"}, "a run's table of jobs", "'pipistrelle report FOLDER' describes the run."),
    ({"cpu_milli", "memory_mib"}, "a list of pods or nodes with their resources", ""),
    ({"name"}, "a table with names, but not of nodes", ""),
    ({"location"}, "a table with places, but not of nodes", ""),
)
_NODES: Final = "A table of nodes has a column class, mttf, age or installed, or both name and location."
_KINDS: Final = "a platform, a workload, a table of nodes, a run, a study, or a model"
_MANUAL: Final = "'pipistrelle help workloads' and 'pipistrelle help platforms' describe the formats."
#: keys of the files that are recognised by them
_KEYS: Final = [
    *("jobs", "profiles", "node_table", "run", "axes", "replicas", "machine_size"),
    *(field.encode_name for kind in (Platform, RunSpec, Preset) for field in fields(kind)),
]


def require_workload(path: Path) -> None:
    """Raise InputError, naming the kind if possible, if a text file is certainly not a workload.

    SWF is the format of files without a sign of another one, so their first line must begin with a number. A file with
    SWF's suffix is left to SWF's reader.
    """
    if ".swf" in path.suffixes:
        return
    with open_trace(path) as stream:
        head = stream.peek()
    lines = head.decode("utf-8-sig", "replace").splitlines()
    first = next((line for line in lines if line.strip() and not line.lstrip().startswith((";", "#"))), "")
    if kind_of(head) != "swf" or "|" in first or not first or _is_number(first.split()[0]):
        return
    cells = {cell.strip().strip('"') for cell in first.split(",")}
    for columns, what, hint in _TABLES:
        if columns <= cells:
            raise InputError(f"this is {what}", where=str(path), expected=_KINDS, hint=hint or _NODES)
    if first.split("=")[0].strip().lower() in ("clustername", "nodename", "slurmctldhost", "include"):
        raise InputError("this is a slurm.conf", where=str(path), expected=_KINDS, hint=_MANUAL)
    raise InputError("the kind of this file is not recognised", where=str(path), expected=_KINDS, hint=_MANUAL)


def foreign_fault(path: Path) -> InputError | None:
    """Return the error for TOML or JSON without a known key; None for other files."""
    try:
        raw: Any = read_raw(read_text(path), str(path), once=False)
    except PipistrelleError:
        return None
    if not raw or not raw.keys().isdisjoint(_KEYS):
        return None
    for key in raw:
        if (hint := did_you_mean(key, _KEYS)).startswith("Did"):
            return InputError(f"unknown key {quoted(key)}", where=str(path), hint=hint)
    keys = ", ".join(f"'{key[:40]}'" for key in list(raw)[:4])
    return InputError("the kind of this file is not recognised", where=str(path), expected=_KINDS, found=f"keys {keys}")


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
