"""Find Slurm's programs on this computer."""

import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from pipistrelle.protocol.base.errors import InputError, printable

#: release of Slurm that the stand-in of the nodes talks to
RELEASE: Final = "22.05"
#: programs that the scheduler slurmctld needs
PROGRAMS: Final = ("slurmctld", "sbatch", "scancel", "scontrol", "squeue")
#: folders of programs that the PATH of a user may lack
PLACES: Final = ("/usr/sbin", "/usr/local/sbin", "/sbin", "/usr/bin", "/usr/local/bin")
_OF_PREFIX: Final = ("sbin", "bin", "usr/sbin", "usr/bin")
#: where packages and own builds put the plugins
_PLUGINS: Final = (
    "lib/slurm",
    "lib64/slurm",
    "lib/*/slurm*",
    "usr/lib/*/slurm-wlm",
    "usr/lib/slurm",
    "usr/lib64/slurm",
)
_BRIEF_S: Final = 20.0


class Installation(Struct, frozen=True):
    """Slurm as it is installed.

    Attributes:
        programs: {name: path} of the programs that were found.
        plugins: folder of the plugins; None if it is not known.
        environment: variables with which the programs find their libraries.
        settings: lines of slurm.conf with which they find their plugins.
    """

    programs: dict[str, str]
    plugins: Path | None
    environment: Mapping[str, str]
    settings: tuple[str, ...] = ()


def look_for(prefix: str | None, names: Iterable[str]) -> Installation:
    """Return the parts of Slurm that are in a folder, or in the PATH if ``prefix`` is None."""
    folders = [os.environ.get("PATH", ""), *PLACES] if prefix is None else [f"{prefix}/{one}" for one in _OF_PREFIX]
    found = ((name, shutil.which(name, path=os.pathsep.join(folders))) for name in names)
    programs = {name: os.path.abspath(place) for name, place in found if place is not None}
    top = Path("/" if prefix is None else prefix).absolute()
    possible = (one for pattern in _PLUGINS for one in sorted(top.glob(pattern)))
    plugins = next((one for one in possible if (one / "select_cons_tres.so").is_file()), None)
    if prefix is None or plugins is None:
        return Installation(programs, plugins, {})
    libraries = {"LD_LIBRARY_PATH": f"{plugins}:{plugins.parent}"}
    return Installation(programs, plugins, libraries, (f"PluginDir={plugins}",))


def find_slurm(prefix: str | None) -> Installation:
    """Return the Slurm that is installed in a folder, or in the PATH if ``prefix`` is None.

    Raises:
        InputError: a program is absent, does not run, or is of another release.
    """
    found = look_for(prefix, PROGRAMS)
    missing = [name for name in PROGRAMS if name not in found.programs]
    if missing:
        raise InputError(
            f"the scheduler slurmctld needs Slurm's own programs, and there is no {missing[0]}",
            where=None if prefix is None else f"--slurm-prefix {printable(prefix)}",
            expected=f"slurmctld and the commands of Slurm {RELEASE}"
            + ("" if prefix is None else ", in its folders bin and sbin"),
            hint="Install them (Debian 12: apt install slurmctld slurm-client), or use --scheduler slurm.",
        )
    _check_release(found.programs["slurmctld"], found.environment)
    return found


def _check_release(program: str, environment: Mapping[str, str]) -> None:
    try:
        version = subprocess.run(  # noqa: S603 - the user's own slurmctld
            [program, "-V"], capture_output=True, timeout=_BRIEF_S, check=False, env={**os.environ, **environment}
        )
    except OSError as error:
        raise InputError("slurmctld cannot be run", where=printable(program), found=error.strerror) from None
    told = (version.stdout or version.stderr).decode("utf-8", "replace").strip()
    if f" {RELEASE}." not in f"{told}.":
        raise InputError(
            "the scheduler slurmctld supports one release of Slurm",
            where=printable(program),
            expected=RELEASE,
            found=told[:200] or "no version",
        )
