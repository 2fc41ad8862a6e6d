"""A case: a folder that describes a run and its golden (approved) results.

It has the run in ``case.toml``, its input files, and the golden results.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib.resources import files
from pathlib import Path
from typing import Final

from pipistrelle.protocol.base.errors import did_you_mean, printable
from pipistrelle.protocol.base.toml import read_toml
from pipistrelle.reports.cases.tolerances import AllowedChange, CaseError
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.description.spec_file import convert_spec
from pipistrelle.traces.files import read_text

CASE_FILE: Final = "case.toml"
GOLDEN_FOLDER: Final = "golden"
_MANUAL: Final = "'pipistrelle help ci' has an example."
#: {key: its type and the name of the type}
_KEYS: Final[dict[str, tuple[type, str]]] = {
    "proves": (str, "a text"),
    "because": (str, "a text"),
    "run": (dict, "a table"),
    "tolerances": (dict, "a table"),
}


@dataclass(frozen=True, slots=True)
class Case:
    """A run and its expected (golden) results.

    Attributes:
        folder: the folder with ``case.toml``; file names in the run are relative to it.
        proves, because: what the case shows, and why its golden results are right; may be empty.
        tolerances: {metric: allowed change from its golden value}. Without any, all decisions and jobs are compared.
    """

    name: str
    folder: Path
    proves: str
    because: str
    spec: RunSpec
    tolerances: Mapping[str, AllowedChange]

    @property
    def golden(self) -> Path:
        """Return the folder of the case's golden results."""
        return self.folder / GOLDEN_FOLDER


def read_case(folder: Path) -> Case:
    """Read the case in a folder.

    Raises:
        PipistrelleError: if the case is missing or wrong.
    """
    path = folder / CASE_FILE
    where = printable(str(path))
    raw = read_toml(read_text(path), where, CaseError, manual=_MANUAL, hint="")
    for key, value in raw.items():
        if key not in _KEYS:
            raise CaseError(f"unknown key '{printable(key)}'", where=where, hint=did_you_mean(key, list(_KEYS)))
        wanted, what = _KEYS[key]
        if not isinstance(value, wanted):
            raise CaseError("a value of another type", where=f"{where}: {key}", expected=what)
    if "run" not in raw:
        raise CaseError("the case has no run", where=where, expected="a table [run]", hint=_MANUAL)
    spec = convert_spec(raw["run"], f"{where}: run")
    tolerances = {
        name: AllowedChange.parse(value, f"{where}: tolerances.{printable(name)}")
        for name, value in raw.get("tolerances", {}).items()
    }
    here = folder.resolve()
    return Case(here.name, here, raw.get("proves", ""), raw.get("because", ""), spec, tolerances)


def bundled_folder() -> Path:
    """Return the folder of the bundled cases."""
    return Path(str(files("pipistrelle.reports.cases"))) / "library"


def case_folders(folder: Path, patterns: tuple[str, ...] = ()) -> list[Path]:
    """Return the folders of the cases in ``folder``, sorted by name.

    If ``folder`` itself is a case, return only ``folder``.

    Args:
        patterns: return only cases whose names contain or match one of these, such as ``easy`` or ``e*-??``.

    Raises:
        CaseError: if there is no case, or no name matches.
    """
    where = printable(str(folder))
    if not folder.is_dir():
        what = "this is a file, not a folder" if folder.exists() else "there is no such folder"
        raise CaseError(what, where=where, expected=f"folders with a {CASE_FILE} in them")
    single = (folder / CASE_FILE).is_file()
    found = [folder] if single else sorted(path.parent for path in folder.glob(f"*/{CASE_FILE}"))
    if not found:
        raise CaseError("the folder has no case", where=where, expected=f"folders with a {CASE_FILE}", hint=_MANUAL)
    names = [path.resolve().name for path in found]
    chosen = [
        path
        for path, name in zip(found, names, strict=True)
        if not patterns or any(text in name or fnmatch(name, text) for text in patterns)
    ]
    if not chosen:
        wanted = " or ".join(f"'{printable(text)}'" for text in patterns)
        raise CaseError(f"no case is called {wanted}", where=where, hint=did_you_mean(patterns[0], names))
    return chosen
