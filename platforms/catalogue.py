"""Find platforms and other TOML files of the package by name."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from typing import Final, Generic, TypeVar

from pipistrelle.platforms.description import Platform
from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.read import parse_platform
from pipistrelle.protocol.base.errors import did_you_mean, printable, shown

_T = TypeVar("_T")
_SUFFIX: Final = ".toml"


@dataclass(frozen=True)
class Catalogue(Generic[_T]):
    """The TOML files in the folder ``library`` of a package, by name.

    Args:
        package: the package's full name.
        what: the word for an entry in messages.
        parse: parses an entry, given its text and the name of the text in messages.
        error: the class of the errors that the methods raise.
        line: returns one line of text that describes an entry.
    """

    package: str
    what: str
    parse: Callable[[str, str], _T]
    error: type[PlatformError]
    line: Callable[[_T], str]

    def names(self) -> tuple[str, ...]:
        """Return the names of all entries of the library, in alphabetical order."""
        entries = (files(self.package) / "library").iterdir()
        return tuple(sorted(entry.name.removesuffix(_SUFFIX) for entry in entries if entry.name.endswith(_SUFFIX)))

    def get(self, name: str) -> _T:
        """Return the library entry called `name`; raise `error` if it does not exist."""
        known = self.names()
        if name not in known:
            raise self.error(f"the library has no {self.what} {shown(name)}", hint=did_you_mean(name, list(known)))
        file = files(self.package) / "library" / f"{name}{_SUFFIX}"
        return self.parse(file.read_text(encoding="utf-8"), file.name)

    def describe(self, name: str) -> str:
        """Describe the library entry called `name` in one line; same errors as `get`."""
        return self.line(self.get(name))

    def named(self, name: str, read: Callable[[str], str | None], absent: str, expected: str) -> _T:
        """Return the library entry called `name`, or else parse the file of this name.

        ``read`` returns the text of a file, or None if the file does not exist. The error for a missing file begins
        with ``absent`` and says what is ``expected``.
        """
        if name in self.names():
            return self.get(name)
        if (text := read(name)) is None:
            hint = did_you_mean(name, list(self.names()))
            raise self.error(f"{absent} '{printable(name)}'", expected=expected, hint=hint)
        return self.parse(text, printable(name))


def _line(platform: Platform) -> str:
    size = f"{platform.nodes} nodes"
    if platform.units != platform.nodes:
        size += f", {platform.units} units"
    return f"{platform.description} ({size})"


_PLATFORMS: Final = Catalogue("pipistrelle.platforms", "platform", parse_platform, PlatformError, _line)
names: Final = _PLATFORMS.names
get: Final = _PLATFORMS.get
describe: Final = _PLATFORMS.describe
