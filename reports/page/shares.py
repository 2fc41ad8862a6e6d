"""Read a run's fairshare targets from the configuration of its scheduler."""

import hashlib
from collections.abc import Mapping
from math import fsum
from pathlib import Path
from typing import Any, Final

from pipistrelle.protocol.base.errors import PipistrelleError, printable
from pipistrelle.protocol.base.whole import only_regular

#: {kind of credential in a maui.cfg: label of a job}
_LABELS: Final = {"USER": "user", "GROUP": "group", "ACCOUNT": "account", "CLASS": "queue", "QOS": "qos"}


def fairshare_targets(command: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Return the fairshare targets of a run, one entry per label of jobs.

    Each entry has ``label`` (such as user), ``targets`` {name: share}, and ``how`` (the option or file that sets them).

    Shares of the job order ``pbs`` are divided by their sum. Targets in a maui.cfg are in percent; they are used only
    if that file is unchanged since the run.

    Args:
        command: the content of out_command.json; without it (None) there are no targets.
    """
    if command is None:
        return []
    return _pbs(command) + _maui(command)


def _pbs(command: Mapping[str, Any]) -> list[dict[str, Any]]:
    told = command.get("fairshare-shares")
    shares = {name: value for name, value in told.items() if value > 0} if isinstance(told, dict) else {}
    whole = fsum(shares.values())
    if not whole:
        return []
    targets = {printable(name): value / whole for name, value in shares.items()}
    return [{"label": command.get("fairshare-entity") or "user", "targets": targets, "how": "--fairshare-shares"}]


def _maui(command: Mapping[str, Any]) -> list[dict[str, Any]]:
    name, files = command.get("config"), command.get("files")
    if not isinstance(name, str) or not _as_it_was(name, files.get(name) if isinstance(files, dict) else None):
        return []
    from pipistrelle.schedulers.maui.config.read import read_maui_config  # most runs have no maui.cfg
    from pipistrelle.schedulers.maui.config.settings import TargetMode

    try:
        settings, _ = read_maui_config(Path(name), strict=False)
    except PipistrelleError:  # this version cannot read the file
        return []
    found = []
    for kind, label in _LABELS.items():
        targets = {
            printable(one): credential.target / 100
            for one, credential in settings.credentials.get(kind, {}).items()
            if credential.target > 0 and credential.mode is not TargetMode.ABSOLUTE_CAP
        }
        if targets:
            found.append({"label": label, "targets": targets, "how": f"FSTARGET in {printable(Path(name).name)}"})
    return found


def _as_it_was(name: str, digest: str | None) -> bool:
    """Return whether the file ``name`` exists and has the SHA-256 ``digest``.

    If ``digest`` is None, any content will do.
    """
    try:
        with open(name, "rb", opener=only_regular) as file:
            return digest is None or hashlib.file_digest(file, "sha256").hexdigest() == digest
    except OSError:
        return False
