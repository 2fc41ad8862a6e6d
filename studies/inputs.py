"""Platforms and workloads as a user names them: bundled ones by name, own ones by path."""

import os
from collections.abc import Mapping
from pathlib import Path

from pipistrelle.platforms import catalogue as platforms
from pipistrelle.platforms.description import MOST_UNITS, Platform, homogeneous
from pipistrelle.platforms.read import parse_platform
from pipistrelle.platforms.simgrid import SimGridPlatform, is_xml, parse_simgrid
from pipistrelle.protocol.errors import PipistrelleError, did_you_mean
from pipistrelle.traces import catalogue as workloads
from pipistrelle.traces.job_table import Units
from pipistrelle.traces.load import load
from pipistrelle.traces.workload import Workload


class InputError(PipistrelleError):
    """A platform or workload that cannot be had."""


def load_platform(name: str) -> Platform:
    """Return the bundled platform of this name, or the one that a file describes (TOML or SimGrid's XML).

    Raises
    ------
    PipistrelleError
        when there is neither, or the file is wrong.
    """
    machine = load_machine(name)
    return machine.to_platform() if isinstance(machine, SimGridPlatform) else machine


def load_machine(name: str) -> Platform | SimGridPlatform:
    """Return what `load_platform` does, but a file in SimGrid's XML as its single hosts.

    Jobs whose hosts decide how long they take can run on those alone.

    Raises
    ------
    PipistrelleError
        as `load_platform` does.
    """
    if name in platforms.names():
        return platforms.get(name)
    if not os.path.isfile(name):  # pathlib's would raise for a name that is too long
        raise InputError(
            f"there is no platform '{name}'",
            expected="a bundled platform or a TOML file, or one in SimGrid's XML",
            hint=did_you_mean(name, list(platforms.names())),
        )
    require_text(name)
    return read_platform(name)


def load_hosts(name: str, *, master: str = "master_host", roles: Mapping[str, str] | None = None) -> SimGridPlatform:
    """Return the hosts of a platform file in SimGrid's XML, as `pipistrelle batsim` needs them.

    Parameters
    ----------
    name
        the file's path.
    master, roles
        as with `pipistrelle.platforms.simgrid.parse_simgrid`.

    Raises
    ------
    PipistrelleError
        when the file cannot be read or is wrong, or the roles do not suit it.
    """
    if not os.path.isfile(name):
        raise InputError(f"there is no platform file '{name}'", expected="a file in SimGrid's XML")
    require_text(name)
    return parse_simgrid(read_text(Path(name)), name, master=master, roles=roles)


def read_platform(name: str) -> Platform | SimGridPlatform:
    """Return what the platform file of this name describes; XML is SimGrid's, anything else our TOML.

    Raises
    ------
    PipistrelleError
        when the file cannot be read or is wrong.
    """
    text = read_text(Path(name))
    if is_xml(text) or name.endswith(".xml"):
        return parse_simgrid(text, name)
    return parse_platform(text, name)


def is_platform(name: str) -> bool:
    """Tell whether a file is a platform, by its suffix or, if that does not tell, because it begins as XML does."""
    if name.endswith((".toml", ".xml")):
        return True
    if not os.path.isfile(name):  # bytes of a pipe would be gone once looked at
        return False
    try:
        with open(name, "rb") as file:
            return is_xml(file.read(1024).decode("utf-8", "replace"))
    except OSError:
        return False


def load_workload(name: str, *, sort: bool = False, units: Units = "nodes", timezone: str | None = None) -> Workload:
    """Return the bundled workload of this name, or the one in a file, of any format that `pipistrelle convert` reads.

    ``sort`` accepts a log whose submit times are not ascending; ``units`` and ``timezone`` say how a centre's log is to
    be read, as with `pipistrelle.traces.load.load`.

    Raises
    ------
    PipistrelleError
        when there is neither, or the file is wrong.
    """
    if name in workloads.names():
        return workloads.load_bundled(name)
    if not os.path.exists(name):
        raise InputError(
            f"there is no workload '{name}'",
            expected="a bundled workload or a file (SWF, Batsim's JSON, a centre's log; also .gz or .xz)",
            hint=did_you_mean(name, list(workloads.names())),
        )
    require_text(name)
    return load(Path(name), sort=sort, units=units, timezone=timezone)


def require_text(name: str) -> None:
    """Raise InputError if a file's name is no text, as the outputs, which are UTF-8, will say it."""
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InputError("the file's name is not UTF-8 text", where=ascii(name), hint="Rename the file.") from None


def platform_for(workload: Workload, name: str = "") -> Platform:
    """Return the machine that a workload was made on, equal units as its own header describes it.

    ``name`` is how the user called the workload; a bundled one has a bundled platform of the same name.

    Raises
    ------
    InputError
        when the header does not say how large the machine was.
    """
    if name in workloads.names() and name in platforms.names():
        return platforms.get(name)
    size = workload.machine_size
    if size is None or size > MOST_UNITS:
        said = [f"{key}: {workload.header[key]}" for key in ("MaxProcs", "MaxNodes") if key in workload.header]
        raise InputError(
            "the workload does not say how large its machine was",
            where=workload.source,
            expected=f"MaxProcs or MaxNodes in its header (SWF), nb_res (JSON), 1 to {MOST_UNITS:,}",
            found=", ".join(said) or (None if size is None else f"{size:,}"),
            hint=_platform_hint(workload),
        )
    return homogeneous(size, f"{workload.name}-machine")


def _platform_hint(workload: Workload) -> str:
    if workload.format in ("", "SWF", "Batsim JSON"):
        return "Name a platform with --platform."
    return (
        f"{workload.format} never says it: name a platform with --platform. Sizes count nodes; 'pipistrelle convert "
        "--units processors' makes a workload whose sizes count processors."
    )


def read_text(path: Path) -> str:
    """Return a text file's content; InputError if it cannot be read or is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8-sig")  # some editors begin a file with a mark
    except OSError as error:
        raise InputError(f"cannot read the file ({error.strerror or error})", where=str(path)) from None
    except UnicodeDecodeError as error:
        raise InputError(
            "the file is not UTF-8 text", where=f"{path}, byte {error.start}", hint="Is it the right file?"
        ) from None
