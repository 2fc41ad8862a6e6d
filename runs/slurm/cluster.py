"""Read all settings of the scheduler ``slurm`` from the files of a cluster."""

import os
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from pipistrelle.platforms.slurm.checks import doubtful_settings
from pipistrelle.platforms.slurm.conf import KeyFinding, SlurmConf, SlurmConfigError
from pipistrelle.platforms.slurm.keys import KeySupport
from pipistrelle.platforms.slurm.nodes import nodes_of
from pipistrelle.protocol.base.errors import InputError, printable
from pipistrelle.runs.slurm.files import (
    TOPOLOGY,
    Fetching,
    dates_of,
    file_and_zero,
    file_beside,
    is_slurm_file,
    read_slurm_files,
    texts_of,
)
from pipistrelle.schedulers.slurm.config.machine import PartitionSettings, ReservationSettings, SwitchSettings
from pipistrelle.schedulers.slurm.config.settings import SlurmConfig
from pipistrelle.schedulers.slurm.files.accounting import Accounting, read_accounting
from pipistrelle.schedulers.slurm.files.config import FilesBeside, slurm_config
from pipistrelle.schedulers.slurm.files.overrides import overridden
from pipistrelle.schedulers.slurm.files.reservations import read_reservations
from pipistrelle.schedulers.slurm.files.topology import read_topology


class SlurmCluster(Struct, frozen=True):
    """The scheduler's settings, and whether it uses each key of the files.

    ``findings`` has one entry per key, in the order of the files.
    """

    config: SlurmConfig
    findings: tuple[KeyFinding, ...]

    @property
    def warnings(self) -> list[str]:
        """One warning for each key that this scheduler does not use.

        Such a key is unknown, or Slurm uses it and this scheduler does not.
        """
        found: dict[tuple[str, str], list[KeyFinding]] = {}
        for one in self.findings:
            if one.support in (KeySupport.WARNED, None):
                found.setdefault((one.key, one.why), []).append(one)
        return [str(some[0]) + (f" ({len(some):,} times)" if len(some) > 1 else "") for some in found.values()]


def load_cluster(
    config: str,
    accounting: Sequence[str] = (),
    reservations: Sequence[str] = (),
    changes: Mapping[str, str] | None = None,
    *,
    strict: bool = True,
    sharing: bool = False,
) -> SlurmCluster:
    """Read the files of a cluster; return the scheduler's settings.

    Args:
        config: a slurm.conf; gres.conf and topology.conf beside it are read, too.
        accounting: dumps, listings or commands of sacctmgr.
        reservations: files of commands ``scontrol create reservation``, as ``FILE`` or ``FILE,zero=DATE``.
        changes: {key: value} that override the files.
        strict: whether a key that Slurm does not have is an error; if not, the result lists the key as unknown.
        sharing: whether jobs share CPUs where ``OverSubscribe`` lets them; not supported on a simulated machine.

    Raises:
        PipistrelleError: a file is unreadable, a value is wrong or not supported, or a name is unknown.
    """
    if os.path.isfile(config) and not is_slurm_file(config):
        raise InputError(
            "the scheduler slurm needs a slurm.conf",
            where=printable(config),
            expected="lines KEY=VALUE, such as ClusterName=... and NodeName=...",
            hint="'pipistrelle help slurm' describes the files.",
        )
    files = read_slurm_files(config)
    changed = overridden(files.conf, changes or {})
    conf, commands = changed.conf, changed.commands
    nodes = files.nodes
    findings = [*conf.findings, *files.findings, *doubtful_settings(conf, nodes_of(conf, files.gres), files.gres)]
    beside = file_beside(config, TOPOLOGY)
    switches: tuple[SwitchSettings, ...] = ()
    if beside is not None:
        ((name, text),) = texts_of([beside])
        switches, more = read_topology(text, name, nodes, Fetching(beside, trust=False))
        findings += more
    people = read_accounting(texts_of(accounting), conf.text("ClusterName")) if accounting else Accounting()
    if commands:
        _require_names(commands, people)
        people = read_accounting([*texts_of(accounting), *commands], conf.text("ClusterName"))
    findings += people.findings
    resv: list[ReservationSettings] = []
    for told in reservations:
        name, zero = file_and_zero(told)
        ((shown, text),) = texts_of([name])
        resv += read_reservations(text, shown, dates_of(zero, text, shown), nodes)
    made, more = slurm_config(conf, FilesBeside(files.gres, switches, people, tuple(resv)))
    findings += more
    unknown = next((one for one in findings if one.support is None), None)
    if strict and unknown is not None:
        raise SlurmConfigError(
            f"{unknown.key}: {unknown.why.rstrip('.')}",
            where=unknown.where,
            hint="With --lenient-config, unknown keys are warnings.",
        )
    if not sharing:
        parts, more = _without_sharing(conf, made.partitions)
        made = replace(made, partitions=parts)
        findings += more
    return SlurmCluster(changed.timed(made), tuple(findings))


def _without_sharing(
    conf: SlurmConf, partitions: Sequence[PartitionSettings]
) -> tuple[tuple[PartitionSettings, ...], list[KeyFinding]]:
    """Return the partitions without sharing of CPUs, and a finding for each changed key.

    On the simulated machine each CPU has at most one job, so settings that allow more are changed.
    """
    found: list[KeyFinding] = []
    entries = {entry.name: entry for entry in conf.entries.get("partitions", [])}
    for one in partitions:
        setting = entries[one.name].get("OverSubscribe", "Shared")
        if one.max_share > 1 and setting is not None:
            why = f"jobs of partition {one.name} do not share CPUs: {setting.text} is read as NO"
            found.append(KeyFinding(setting.where, "OverSubscribe", KeySupport.WARNED, why))
    return tuple(replace(one, max_share=1) for one in partitions), found


def _require_names(commands: Sequence[tuple[str, str]], people: Accounting) -> None:
    """Raise SlurmConfigError if a command names an account, user or QOS that no file has."""
    known = {
        "qos": {one.name for one in people.qos},
        "account": {one.account for one in people.associations},
        "user": {one.user for one in people.associations if one.user},
    }
    for where, command in commands:
        _, kind, name, *_ = command.split(" ")
        if name.strip("'") not in known[kind]:
            raise SlurmConfigError(f"the files of --accounting do not contain the {kind} {name}", where=where)
