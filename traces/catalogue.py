"""The bundled workloads, by name."""

from importlib import resources
from typing import Final

from pipistrelle.protocol.base.errors import did_you_mean
from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.load import load
from pipistrelle.traces.workload import Workload

#: {name: description}; the file is library/NAME.swf.gz
_LINES: Final = {
    "demo": "5,000 jobs for 256 units at load 0.85: five weeks of a small cluster, for examples and first tries",
    "seven-jobs": "7 jobs for 4 units: easy starts the last beside the fifth, easy-slices keeps it back for units that "
    "the sixth will not need",
}


def names() -> list[str]:
    """Return the names of the bundled workloads, sorted."""
    return sorted(_LINES)


def describe(name: str) -> str:
    """Return the description of a bundled workload; TraceError if the name is unknown."""
    if name not in _LINES:
        raise TraceError("no bundled workload has this name", where=f"'{name}'", hint=did_you_mean(name, names()))
    return _LINES[name]


def load_bundled(name: str) -> Workload:
    """Read a bundled workload; TraceError if the name is unknown."""
    describe(name)  # raises for an unknown name
    file = resources.files("pipistrelle.traces") / "library" / f"{name}.swf.gz"
    with resources.as_file(file) as path:
        return load(path)
