"""Make the scheduler's settings from a slurm.conf.

The files beside it and accounting files are used, too.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import Any, Final, cast

from msgspec import Struct
from msgspec.structs import replace

from pipistrelle.platforms.naming.hostlists import NameLists
from pipistrelle.platforms.slurm.conf import ConfEntry, KeyFinding, SlurmConf, SlurmConfigError
from pipistrelle.platforms.slurm.gres import GresLine
from pipistrelle.platforms.slurm.keys import KeySupport
from pipistrelle.platforms.slurm.lines import WORD
from pipistrelle.platforms.slurm.machine import licenses_of
from pipistrelle.platforms.slurm.nodes import SlurmNode, node_sets, nodes_named, nodes_of
from pipistrelle.platforms.slurm.values import SlurmValueError, read_names, read_whole
from pipistrelle.protocol.base.errors import legible, printable, shown
from pipistrelle.schedulers.slurm.config.machine import (
    NodeSettings,
    PartitionSettings,
    ReservationSettings,
    SwitchSettings,
)
from pipistrelle.schedulers.slurm.config.parameters import SchedulerParameters
from pipistrelle.schedulers.slurm.config.settings import SlurmConfig
from pipistrelle.schedulers.slurm.files.accounting import Accounting
from pipistrelle.schedulers.slurm.files.parameters import (
    billing_weights,
    doubtful_values,
    enforced,
    memory_defaults,
    preempt_modes,
    preempt_settings,
    priority_settings,
    scheduler_parameters,
    select_settings,
)

#: jobs per resource of ``OverSubscribe=YES`` and ``FORCE`` without a number
_SHARES: Final = 4
_OVERSUBSCRIBE: Final = ("NO", "EXCLUSIVE", "YES", "FORCE")
_ENFORCE_LIMITS: Final = {"YES": "ALL"}


class FilesBeside(Struct, frozen=True):
    """The content of the files beside a slurm.conf."""

    gres: Sequence[GresLine] = ()
    switches: tuple[SwitchSettings, ...] = ()
    accounting: Accounting = Accounting()
    reservations: tuple[ReservationSettings, ...] = ()


def slurm_config(conf: SlurmConf, beside: FilesBeside | None = None) -> tuple[SlurmConfig, list[KeyFinding]]:
    """Return the scheduler's settings, and findings on ``SchedulerParameters``.

    A finding says whether a key is honoured or ignored.

    Raises:
        SlurmConfigError: with file and line, if a value is wrong or not supported, or a name is unknown.
    """
    beside = beside or FilesBeside()
    parameters, findings = scheduler_parameters(conf)
    findings += doubtful_values(conf)
    if enforced(conf) and not beside.accounting.associations:
        why = "no file of accounting is given, so no association or limit is enforced"
        where = conf.where("AccountingStorageEnforce")
        findings.append(KeyFinding(where, "AccountingStorageEnforce", KeySupport.WARNED, why))
    select = select_settings(conf)
    if select.topology_plugin == "topology/tree" and not beside.switches:
        why = "no topology.conf describes switches, so nodes are chosen as with topology/none; so does Slurm"
        findings.append(KeyFinding(conf.where("TopologyPlugin"), "TopologyPlugin", KeySupport.WARNED, why))
        select = replace(select, topology_plugin="topology/none")
    limits = str(conf.value("EnforcePartLimits", "NO"))
    nodes = nodes_of(conf, beside.gres)
    qos = {one.name for one in beside.accounting.qos}
    partitions = _partitions(conf, nodes, qos)
    findings += _unknown_names(conf, beside.accounting)
    findings += _unused(conf, partitions, beside.accounting)
    if not qos:
        partitions, more = _without_qos(conf, partitions)
        findings += more
    config = SlurmConfig(
        cluster_name=conf.text("ClusterName", "linux"),
        scheduler_type=str(conf.value("SchedulerType", "sched/backfill")),
        scheduler_parameters=_with_dependencies(conf, parameters),
        priority=priority_settings(conf),
        select=select,
        preempt=preempt_settings(conf),
        nodes=tuple(map(_node, nodes)),
        partitions=partitions,
        reservations=beside.reservations,
        switches=beside.switches,
        qos=beside.accounting.qos,
        associations=beside.accounting.associations,
        licenses=licenses_of(conf),
        accounting_storage=conf.text("AccountingStorageType").lower().endswith("slurmdbd"),
        accounting_storage_enforce=enforced(conf) if beside.accounting.associations else frozenset(),
        job_requeue=bool(conf.value("JobRequeue", 1)),
        kill_wait=_seconds(conf, "KillWait", 30.0),
        message_timeout=_seconds(conf, "MessageTimeout", 10.0),
        over_time_limit=_seconds(conf, "OverTimeLimit", 0.0),
        enforce_part_limits=_ENFORCE_LIMITS.get(limits, limits),
    )
    return config, findings


def _without_qos(
    conf: SlurmConf, partitions: tuple[PartitionSettings, ...]
) -> tuple[tuple[PartitionSettings, ...], list[KeyFinding]]:
    """Return the partitions with all QOS allowed, and a finding per ignored key.

    Without accounting files, the QOS are unknown. So the partitions' keys on QOS are ignored.
    """
    why = "no file of accounting describes QOS, so jobs of every QOS may use the partition"
    found = [
        KeyFinding(setting.where, key, KeySupport.WARNED, why)
        for entry in conf.entries.get("partitions", [])
        for key in ("AllowQos", "DenyQos")
        if (setting := entry.get(key)) is not None and setting.text.upper() != "ALL"
    ]
    why = "no file of accounting describes QOS, so no limit of this one is enforced"
    found += [
        KeyFinding(setting.where, "QOS", KeySupport.WARNED, why)
        for entry in conf.entries.get("partitions", [])
        if (setting := entry.get("QOS")) is not None
    ]
    return tuple(replace(one, allow_qos=None, deny_qos=()) for one in partitions), found


def _unknown_names(conf: SlurmConf, accounting: Accounting) -> list[KeyFinding]:
    """Return a warning for each list of a partition with unknown accounts or QOS.

    These are names that the accounting files do not have.
    """
    accounts = {one.account.lower() for one in accounting.associations}
    qos = {one.name.lower() for one in accounting.qos}
    lists = {"AllowAccounts": accounts, "DenyAccounts": accounts, "AllowQos": qos, "DenyQos": qos}
    found: list[KeyFinding] = []
    for entry in conf.entries.get("partitions", []):
        for key, known in lists.items():
            names = [name for name in _names(entry, key) if name.lower() not in known and name.upper() != "ALL"]
            setting = entry.get(key)
            if known and names and setting is not None:
                why = f"no file of accounting describes {legible(', '.join(names), WORD)}"
                found.append(KeyFinding(setting.where, key, KeySupport.WARNED, why))
    return found


def _unused(conf: SlurmConf, partitions: Sequence[PartitionSettings], accounting: Accounting) -> Iterator[KeyFinding]:
    """Yield warnings about partitions and associations without any use.

    These are partitions that are too small for their jobs, and associations whose partition does not exist.
    """
    entries = {entry.name: entry for entry in conf.entries.get("partitions", [])}
    for one in partitions:
        setting = entries[one.name].get("MinNodes")
        if setting is not None and one.min_nodes > len(one.nodes):
            why = f"partition {one.name} has only {len(one.nodes):,} nodes, so no job can run in it"
            yield KeyFinding(setting.where, "MinNodes", KeySupport.WARNED, why)
    for (account, user, partition), where in accounting.places.items():
        if partition not in entries:
            what = f"slurm.conf has no partition {partition}, so no job uses this association of user {user} "
            why = printable(f"{what}in account {account}")
            yield KeyFinding(where, "Partition", KeySupport.WARNED, why)


def _seconds(of: SlurmConf | ConfEntry, key: str, default: float) -> float:
    return cast(float, of.value(key, default))


def _with_dependencies(conf: SlurmConf, parameters: SchedulerParameters) -> SchedulerParameters:
    names = [name.lower() for name in read_names(conf.text("DependencyParameters"))]
    return replace(parameters, kill_invalid_depend=True) if "kill_invalid_depend" in names else parameters


def _node(node: SlurmNode) -> NodeSettings:
    return NodeSettings(
        name=node.name,
        cpus=node.cpus,
        boards=node.boards,
        sockets=node.sockets,
        cores=node.cores,
        real_memory=node.real_memory,
        mem_spec_limit=node.mem_spec_limit,
        core_spec_count=node.core_spec_count,
        gres=dict(node.gres),
        features=node.features,
        weight=node.weight,
        line=node.line,
        state=node.state,
    )


def _partitions(conf: SlurmConf, nodes: Sequence[SlurmNode], qos: set[str]) -> tuple[PartitionSettings, ...]:
    numbers = {node.name: number for number, node in enumerate(nodes)}
    sets, lists = node_sets(conf, nodes), NameLists()
    found: dict[str, PartitionSettings] = {}
    for entry in conf.entries.get("partitions", []):
        if not entry.name or "=" in entry.name:
            raise SlurmConfigError("a partition has no name", where=entry.where, expected="PartitionName=NAME ...")
        made = _partition(entry, numbers, sets, lists)
        if made.qos and qos and made.qos not in qos:
            setting = entry.get("QOS")
            raise SlurmConfigError(
                f"no file of accounting describes the QOS {shown(made.qos)} of partition {made.name}",
                where=setting.where if setting is not None else entry.where,
                hint="Name the output of 'sacctmgr -P show qos' with --accounting.",
            )
        found[entry.name] = made
    if not found:
        raise SlurmConfigError(
            "the file describes no partition", where=conf.name, expected="one PartitionName line or more"
        )
    return tuple(found.values())


def _partition(
    entry: ConfEntry, numbers: Mapping[str, int], sets: Mapping[str, Sequence[str]], lists: NameLists
) -> PartitionSettings:
    named, shared = entry.get("Nodes"), entry.get("OverSubscribe", "Shared")
    both = entry.value("Priority", 1)
    over, share = _over_subscribe(shared.text if shared is not None else "NO", shared.where if shared else entry.where)
    weights, modes = entry.get("TRESBillingWeights"), entry.get("PreemptMode")
    longest = _seconds(entry, "MaxTime", inf)
    default = entry.value("DefaultTime")
    least, most = entry.value("MinNodes"), entry.value("MaxNodes")
    accounts, qos_names = _allowed(entry, "AllowAccounts"), _allowed(entry, "AllowQos")
    more: dict[str, Any] = memory_defaults(entry)
    for field, key in (("max_cpus_per_node", "MaxCPUsPerNode"), ("over_time_limit", "OverTimeLimit")):
        if (value := entry.value(key)) is not None:
            more[field] = value
    return PartitionSettings(
        name=entry.name,
        nodes=() if named is None else tuple(nodes_named(named.text, named.where, numbers, sets, lists)),
        default=bool(entry.value("Default", False)),
        max_time=longest,
        default_time=None if default is None else cast(float, default),
        min_nodes=cast(int, least or 0),
        max_nodes=None if most is None else cast(int, most),
        priority_tier=cast(int, entry.value("PriorityTier", both) or 0),
        priority_job_factor=cast(int, entry.value("PriorityJobFactor", both) or 0),
        over_subscribe=over,
        max_share=share,
        lln=bool(entry.value("LLN", False)),
        req_resv=bool(entry.value("ReqResv", False)),
        qos=str(entry.value("QOS", "")).lower(),
        allow_accounts=accounts,
        deny_accounts=_names(entry, "DenyAccounts") if accounts is None else (),
        allow_qos=_lowered(qos_names),
        deny_qos=_lowered(_names(entry, "DenyQos")) or () if qos_names is None else (),
        preempt_mode=None if modes is None else preempt_modes(modes.text, modes.where),
        grace_time=_seconds(entry, "GraceTime", 0.0),
        tres_billing_weights=None if weights is None else billing_weights(weights.text, weights.where),
        state=str(entry.value("State", "UP")),
        **more,
    )


def _allowed(entry: ConfEntry, key: str) -> tuple[str, ...] | None:
    names = _names(entry, key) or ("ALL",)
    return None if any(name.upper() == "ALL" for name in names) else names


def _names(entry: ConfEntry, key: str) -> tuple[str, ...]:
    return cast("tuple[str, ...]", entry.value(key, ()))


def _lowered(names: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(name.lower() for name in names)


def _over_subscribe(text: str, where: str) -> tuple[str, int]:
    word, _, number = text.upper().partition(":")
    try:
        share = read_whole(number) if number else _SHARES
    except SlurmValueError:
        share = 0
    if word not in _OVERSUBSCRIBE or not share or share < 1:
        raise SlurmConfigError(
            "the value of OverSubscribe is wrong",
            where=where,
            expected="NO, EXCLUSIVE, YES[:NUMBER] or FORCE[:NUMBER]",
            found=f"'{legible(text, WORD)}'",
        )
    return word, share if word in ("YES", "FORCE") else 1
