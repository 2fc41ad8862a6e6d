"""Errors for files of kinds that ``pipistrelle validate`` does not read."""

from pathlib import Path
from typing import Any, Final

from msgspec.structs import fields

from pipistrelle.platforms.description import Platform
from pipistrelle.protocol.base.errors import InputError, PipistrelleError, did_you_mean, quoted
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.description.spec_file import read_raw
from pipistrelle.schedulers.catalogue.presets import Preset
from pipistrelle.traces.files import read_text

#: what `pipistrelle validate` reads
KINDS_READ: Final = "a platform, a workload, a table of nodes, a run, a study, or a model"
#: how many unknown keys are compared with known ones
_MOST_KEYS: Final = 100
#: keys of the files that are recognised by them
_KEYS: Final = [
    *("jobs", "profiles", "node_table", "run", "axes", "replicas", "machine_size"),
    *(field.encode_name for kind in (Platform, RunSpec, Preset) for field in fields(kind)),
]


def foreign_fault(path: Path) -> InputError | None:
    """Return an error for TOML or JSON in which no key is known to Pipistrelle.

    Return None for all other files.
    """
    try:
        raw: Any = read_raw(read_text(path), str(path), once=False)
    except PipistrelleError:
        return None
    if not raw or not raw.keys().isdisjoint(_KEYS):
        return None
    for key in list(raw)[:_MOST_KEYS]:
        if (hint := did_you_mean(key, _KEYS)).startswith("Did"):
            return InputError(f"unknown key {quoted(key)}", where=str(path), hint=hint)
    keys = ", ".join(f"'{key[:40]}'" for key in list(raw)[:4])
    return InputError(
        "the kind of this file is not recognised", where=str(path), expected=KINDS_READ, found=f"keys {keys}"
    )
