"""The machines that come with the package, by name."""

from importlib.resources import files

from pipistrelle.platforms.description import Platform
from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.read import parse_platform
from pipistrelle.protocol.base.errors import did_you_mean, shown

_SUFFIX = ".toml"


def names() -> tuple[str, ...]:
    """Return the names of the machines in the library, in alphabetical order."""
    entries = (files("pipistrelle.platforms") / "library").iterdir()
    return tuple(sorted(entry.name.removesuffix(_SUFFIX) for entry in entries if entry.name.endswith(_SUFFIX)))


def get(name: str) -> Platform:
    """Return the machine called `name`.

    Raises
    ------
    PlatformError
        if the library has none of that name.
    """
    known = names()
    if name not in known:
        raise PlatformError(f"the library has no platform {shown(name)}", hint=did_you_mean(name, list(known)))
    file = files("pipistrelle.platforms") / "library" / f"{name}{_SUFFIX}"
    return parse_platform(file.read_text(encoding="utf-8"), file.name)


def describe(name: str) -> str:
    """Return one line on the machine called `name`: what it is and its size.

    Raises
    ------
    PlatformError
        if the library has none of that name.
    """
    platform = get(name)
    size = f"{platform.nodes} nodes"
    if platform.units != platform.nodes:
        size += f", {platform.units} units"
    return f"{platform.description} ({size})"
