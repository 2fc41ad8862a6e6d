"""Load platforms and workloads that users name: bundled names or file paths."""

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Unpack

from msgspec import UNSET

from pipistrelle.platforms import catalogue as platforms
from pipistrelle.platforms.description import MOST_UNITS, Platform, Pool, homogeneous
from pipistrelle.platforms.read import parse_platform
from pipistrelle.platforms.simgrid.grammar import is_xml
from pipistrelle.protocol.base.errors import InputError, did_you_mean, shown
from pipistrelle.protocol.base.log import logger
from pipistrelle.protocol.base.whole import without_waiting
from pipistrelle.runs.inputs.kinds import require_workload
from pipistrelle.runs.inputs.node_list import is_node_list, platform_of_list
from pipistrelle.traces import catalogue as workloads
from pipistrelle.traces.files import beginning, is_inside, read_text, trace_name
from pipistrelle.traces.load import load
from pipistrelle.traces.logs.job_table import LogOptions, LogReading
from pipistrelle.traces.logs.kinds import Units, kind_of
from pipistrelle.traces.workload import Workload

if TYPE_CHECKING:
    from pipistrelle.platforms.node_rows import NodeRow
    from pipistrelle.platforms.simgrid.platform_file import SimGridPlatform

#: workload formats with a fixed unit and time zone, unlike logs of computing centres
_NO_LOGS: Final = ("", "SWF", "Batsim JSON")


def load_platform(name: str) -> Platform:
    """Return the bundled platform of this name, or the platform in this file.

    The file is TOML, SimGrid's XML, a slurm.conf or a Maui resource trace.

    Raises:
        PipistrelleError: no such platform or file exists, or the file is wrong.
    """
    machine = load_machine(name)
    return machine if isinstance(machine, Platform) else machine.to_platform()


def load_machine(name: str, *, units: Units = "nodes") -> "Platform | SimGridPlatform":
    """Return a machine as `load_platform` does.

    SimGrid XML gives individual hosts, not pools. Jobs whose run time depends on their hosts can only run on such a
    machine.

    Args:
        units: schedulable units of a Maui resource trace.

    Raises:
        PipistrelleError: no such platform or file exists, or the file is wrong.
    """
    if name in platforms.names():
        return platforms.get(name)
    if not os.path.isfile(name):  # pathlib raises if the name is too long
        raise InputError(
            f"there is no platform '{name}'",
            expected="a bundled platform or a TOML file, one in SimGrid's XML, a slurm.conf, a Maui resource trace, or"
            " a list of nodes",
            hint=did_you_mean(name, list(platforms.names())),
        )
    # Importing the readers of all formats would take longer than reading a small log.
    from pipistrelle.runs.slurm.files import is_slurm_file, read_slurm_files
    from pipistrelle.traces.logs.maui_nodes import is_resource_trace, read_maui_resources

    if is_resource_trace(name):
        from pipistrelle.runs.inputs.maui_machine import maui_platform  # rarely needed

        return maui_platform(read_maui_resources(name), trace_name(name), units=units)
    if is_node_list(name):
        return platform_of_list(name)
    require_text(name)
    if is_slurm_file(name):
        from pipistrelle.platforms.slurm.machine import machine_remarks  # rarely needed

        files = read_slurm_files(name)
        for said in machine_remarks(files.conf, files.gres):
            logger().warning("{}", said)
        return files.platform
    return read_platform(name)


def load_hosts(
    name: str, *, master: str = "master_host", roles: Mapping[str, str] | None = None, energy: bool = True
) -> "SimGridPlatform":
    """Return the hosts of a SimGrid XML file, for `pipistrelle-batsim`.

    Args:
        name: the file's path.
        master, roles, energy: as in `pipistrelle.platforms.simgrid.platform_file.parse_simgrid`.

    Raises:
        PipistrelleError: the file is unreadable or wrong, or the roles do not suit its hosts.
    """
    if not os.path.isfile(name):
        raise InputError(f"there is no platform file '{name}'", expected="a file in SimGrid's XML")
    from pipistrelle.platforms.simgrid.platform_file import parse_simgrid

    require_text(name)
    return parse_simgrid(read_text(Path(name)), name, master=master, roles=roles, energy=energy)


def read_platform(name: str) -> "Platform | SimGridPlatform":
    """Read a platform file: SimGrid's format if it is XML, else Pipistrelle's TOML."""
    text = read_text(Path(name))
    if is_xml(text) or name.endswith(".xml"):
        from pipistrelle.platforms.simgrid.platform_file import parse_simgrid  # rarely needed

        return parse_simgrid(text, name, energy=False)
    return parse_platform(text, name, partial(_table_beside, name))


def _table_beside(platform: str, text: str) -> "list[NodeRow]":
    """Read the node table that a platform file names.

    ``platform`` is the path of the file, and ``text`` its content. The table must be in the platform file's folder.
    """
    from pipistrelle.runs.inputs.node_table import file_of, load_node_rows  # rarely needed

    folder = os.path.dirname(platform)
    if not is_inside(os.path.join(folder, file_of(text)), folder):
        raise InputError(
            "the table of nodes is not a file in the platform's folder",
            where=f"{platform}: node_table",
            expected="the name of a file beside the platform; links may not lead out of its folder",
            found=shown(text),
            hint="A file elsewhere can be given with --node-table.",
        )
    return load_node_rows(text, folder)


def is_platform(name: str) -> bool:
    """Return whether a file is a platform, by its suffix or its beginning."""
    if name.endswith((".toml", ".xml")) or is_node_list(name):
        return True
    if not os.path.isfile(name):  # reading a pipe would consume its bytes
        return False
    try:
        with open(name, "rb", opener=without_waiting) as file:
            return is_xml(file.read(1024).decode("utf-8", "replace"))
    except OSError:
        return False


def load_workload(name: str, *, sort: bool = False, **reading: Unpack[LogReading]) -> Workload:
    """Load a workload: a bundled one, or a file in any supported format.

    Args:
        sort: accept a log whose submit times are not ascending.
        reading: how to read a computing centre's log, as in `pipistrelle.traces.load.load`.

    Raises:
        PipistrelleError: no such workload or file exists, or the file is wrong.
    """
    if name in workloads.names():
        workload = workloads.load_bundled(name)
    elif os.path.exists(name):
        require_text(name)
        require_workload(Path(name))
        workload = load(Path(name), sort=sort, **reading)
    else:
        raise InputError(
            f"there is no workload '{name}'",
            expected="a bundled workload or a file (SWF, Batsim's JSON, a batch system's log; also .gz or .xz)",
            hint=did_you_mean(name, list(workloads.names())),
        )
    _refuse_idle_options(workload, LogOptions(**reading))
    return workload


def reading_for(name: str, names: Sequence[str], reading: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that `load_workload` gets for one of several workloads.

    Options for logs are dropped if this workload is not a log. If none of the workloads is a log, all options are kept,
    and the reader rejects them.
    """
    columns = reading["columns"]
    if begins_as_log(name, columns) or not any(begins_as_log(other, columns) for other in names):
        return dict(reading)
    return {option: value for option, value in reading.items() if option in ("sort", "strict")}


def clock_zone(name: str, timezone: str | None, columns: str | None) -> str | None:
    """Return the time zone of a workload's dates: ``timezone`` for a log, else None."""
    return timezone if begins_as_log(name, columns) else None


def begins_as_log(name: str, columns: str | None) -> bool:
    """Return whether a file begins like a log.

    ``columns`` are the columns of sacct, if given.
    """
    if name in workloads.names() or not os.path.exists(name):
        return False
    return kind_of(beginning(name), columns=columns is not None) not in ("swf", "batsim")


def is_log(workload: Workload) -> bool:
    """Return whether a workload was read from a computing centre's log."""
    return workload.format not in _NO_LOGS


def _refuse_idle_options(workload: Workload, options: LogOptions) -> None:
    """Raise InputError if options for reading logs have no effect.

    They are given, but the workload is not a log.
    """
    names = ("units", "timezone", "columns")
    said = [f"--{name}" for name in names if getattr(options, name) != LogOptions._field_defaults[name]]
    if options.columns is not None and not _is_sacct(workload):
        said, expected = ["--columns"], "what Slurm's sacct printed"
    elif is_log(workload):
        return
    else:
        expected = "a log of PBS, Slurm, Maui or Haizea"
    if said:
        raise InputError(
            f"{' and '.join(said)} {'apply' if len(said) > 1 else 'applies'} only to the log of a batch system",
            where=workload.source,
            expected=expected,
            found=workload.format or None,
            hint="Remove the option." if len(said) == 1 else "Remove the options.",
        )


def _is_sacct(workload: Workload) -> bool:
    from pipistrelle.traces.slurm.sacct import SacctLog

    return workload.format == SacctLog.format


def _is_haizea(workload: Workload) -> bool:
    from pipistrelle.traces.logs.haizea import HaizeaLog

    return workload.format == HaizeaLog.format


def units_remark(workload: Workload, platform: Platform, units: Units) -> str | None:
    """Return a warning if a log's job sizes do not match the machine.

    The sizes are read as ``units``. Return None if they match.
    """
    if platform.shares_nodes:
        if units == "nodes" or workload.requests is None:
            return None
        return f"--units {units} has no effect: on {platform.name}, jobs take what they request of the nodes"
    found = {pool.unit for pool in platform.pools}
    if not is_log(workload) or len(found) > 1:
        return None
    from pipistrelle.traces.logs.pbs import PbsLog

    unit = found.pop()
    counts = workload.format == PbsLog.format or _is_sacct(workload)
    if units == "gpus" and unit != "gpu":
        advice = "leave out --units gpus, or describe the machine by its GPUs"
    elif units == "nodes" and unit == "gpu" and counts:
        advice = "count GPUs with --units gpus"
    elif units == "processors" and unit == "node":
        advice = "leave out --units processors, or describe the machine by its cores"
    elif units == "nodes" and unit != "node":
        can = unit == "core" and not _is_haizea(workload)
        advice = "count processors with --units processors" if can else "name a machine of nodes"
    else:
        return None
    return f"sizes in {workload.source} count {units}, but {platform.name} hands out {unit}s: {advice}"


def require_text(name: str) -> None:
    """Raise InputError if a file name is not valid Unicode.

    The outputs require Unicode.
    """
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InputError("the file's name is not UTF-8 text", where=ascii(name), hint="Rename the file.") from None


def platform_for(workload: Workload, name: str = "") -> Platform:
    """Return a machine for a workload, of the size in the workload's header.

    Args:
        name: the name that the user gave; a bundled workload may have a bundled platform of equal name.

    Raises:
        InputError: the header does not give the machine's size.
    """
    if name in workloads.names() and name in platforms.names():
        return platforms.get(name)
    size = workload.machine_size
    if size is None or size > MOST_UNITS:
        said = [f"{key}: {workload.header[key]}" for key in ("MaxProcs", "MaxNodes") if key in workload.header]
        raise InputError(
            "the workload does not give the size of its machine",
            where=workload.source,
            expected=_size_text(workload),
            found=", ".join(said) or (None if size is None else f"{size:,}"),
            hint=_platform_hint(workload),
        )
    machine = homogeneous(size, f"{workload.name}-machine")
    from pipistrelle.traces.logs.haizea import NODES  # most workloads say nothing of nodes

    if not _is_haizea(workload) or NODES not in workload.header:
        return machine
    sets = [line.split() for line in workload.header[NODES].split("\n")]
    pools = [
        Pool(name=f"nodes-{number}", nodes=int(count), node_class=kind[0] if kind else UNSET)
        for number, (count, *kind) in enumerate(sets, start=1)
        if int(count)
    ]
    return Platform(name=machine.name, description=machine.description, pools=tuple(pools))


def _size_text(workload: Workload) -> str | None:
    """Return a text that says where the workload's format gives the machine's size.

    Return None if nowhere.
    """
    if not is_log(workload):
        return f"MaxProcs or MaxNodes in its header (SWF), nb_res (JSON), 1 to {MOST_UNITS:,}"
    return f"a site of 1 to {MOST_UNITS:,} nodes" if _is_haizea(workload) else None


def _platform_hint(workload: Workload) -> str:
    if not is_log(workload) or _is_haizea(workload):
        return "Name a platform with --platform."
    return (
        f"{workload.format} never gives it: name a platform with --platform, whose units are what sizes count: nodes, "
        "or processors with --units processors."
    )
