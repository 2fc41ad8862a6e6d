"""A cluster's slurm.conf, changed so that slurmctld runs alone on this machine, in a private folder."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from pipistrelle.platforms.naming.hostlists import expanded
from pipistrelle.platforms.slurm.conf import SlurmConf
from pipistrelle.platforms.slurm.keys import KeySupport
from pipistrelle.platforms.slurm.lines import ConfLine, read_lines
from pipistrelle.platforms.slurm.nodes import SlurmNode, nodes_of
from pipistrelle.protocol.base.errors import InputError, printable
from pipistrelle.protocol.base.whole import read_whole, whole_file
from pipistrelle.runs.slurm.files import Fetching, read_slurm_files, texts_of
from pipistrelle.runs.slurmctld.association_state import write_association_state
from pipistrelle.schedulers.slurm.files.accounting import Accounting, read_accounting
from pipistrelle.traces.files import read_text

CONTROLLER_PORT: Final = 6817
#: port of the first node; each node has one
FIRST_PORT: Final = 7000
_MOST_NODES: Final = 50_000
#: slurmctld looks for slurmdbd where nobody answers, and then reads the associations from its folder of states
_DATABASE: Final = (
    "AccountingStorageType=accounting_storage/slurmdbd",
    "AccountingStorageHost=localhost",
    "AccountingStoragePort=6819",
)
#: files beside a slurm.conf that slurmctld reads
_BESIDE: Final = ("topology.conf", "job_submit.lua")
#: beginnings of keys that say how daemons run on the cluster's own machines
_ELSEWHERE: Final = (
    *(
        "accountingstorage",
        "acctgather",
        "auth",
        "backup",
        "burstbuffer",
        "bbtype",
        "cgroup",
        "clifilter",
        "communication",
    ),
    *("control", "corespec", "credtype", "cryptotype", "debugflags", "disablerootjobs", "epilog", "extsensors"),
    *(
        "federation",
        "groupupdate",
        "healthcheck",
        "jobacctgather",
        "jobcomp",
        "jobcontainer",
        "jobcredential",
        "joblaunch",
    ),
    *("keepalive", "launch", "logtimeformat", "mailprog", "mail", "mpi", "nodefeatures", "plugindir", "plugstack"),
    *("power", "prep", "proctrack", "prolog", "reboot", "resume", "route", "slurmctld", "slurmd", "slurmsched"),
    *("slurmuser", "srun", "statesave", "suspend", "switchtype", "taskepilog", "taskplugin", "taskprolog", "tmpfs"),
    *("treewidth", "unkillable", "usepam", "x11", "include", "interactivestep", "licenseserver", "hashplugin"),
)
#: keys of those that matter to decisions all the same
_KEPT: Final = ("accountingstoragetres", "prioritytype")
_OWN_OF_NODES: Final = ("nodeaddr", "nodehostname", "port", "bcastaddr")
_NODE: Final = "nodename"
_PLUGINS: Final = "jobsubmitplugins"


class NodeOfCluster(NamedTuple):
    """A node of the cluster and the port at which slurmctld reaches it."""

    node: SlurmNode
    port: int


def derive(
    config: str,
    folder: Path,
    user: str,
    plugins: Path | None,
    settings: Sequence[str] = (),
    *,
    accounting: Sequence[str] = (),
    number: Callable[[str], int] = lambda name: 0,
    now: int = 0,
) -> tuple[list[NodeOfCluster], list[str]]:
    """Write slurmctld's private configuration to ``folder``; return the nodes, and warnings for the user.

    Args:
        config: the cluster's slurm.conf.
        user: name or number of the user who runs slurmctld.
        plugins: folder of Slurm's plugins.
        settings: further lines of slurm.conf.
        accounting: files of associations and QOS.
        number: gives the number (uid) of a user.
        now: the time at which slurmctld starts (s since 1970).

    Raises:
        PipistrelleError: the file is wrong, or has a setting that is not supported.
    """
    files = read_slurm_files(config)
    _refuse(files.conf, with_accounting=bool(accounting))
    lines = read_lines(read_text(Path(config)), printable(config), Fetching(config, trust=False))
    remarks: list[str] = []
    ports: dict[str, int] = {}
    written = [*_own(folder, user), *settings]
    if accounting:
        found = read_associations(accounting, files.conf, remarks)
        write_associations(found, files.conf, folder / "state", number, now)
        written += database_lines(files.conf)
    for line in lines:
        if kept := _derived(line, ports, plugins, remarks):
            written.append(kept)
    with whole_file(folder / "slurm.conf") as file:
        file.write(("\n".join(written) + "\n").encode())
    for name in _BESIDE:
        beside = Path(config).parent / name
        if beside.is_file():
            with whole_file(folder / name) as file:
                file.write(read_whole(beside))
    gres = files.gres
    return [NodeOfCluster(one, ports[one.name]) for one in nodes_of(files.conf, gres)], remarks


def read_associations(accounting: Sequence[str], conf: SlurmConf, remarks: list[str]) -> Accounting:
    """Return the associations and QOS of files, and add warnings about them to ``remarks``."""
    found = read_accounting(texts_of(accounting), conf.text("ClusterName"))
    remarks += [f"{one.where}: {one.why}" for one in found.findings if one.support is KeySupport.WARNED]
    return found


def write_associations(found: Accounting, conf: SlurmConf, state: Path, number: Callable[[str], int], now: int) -> None:
    """Write slurmctld's copy of associations and QOS to its folder of states.

    Args:
        number: gives the number (uid) of a user.
        now: the time at which slurmctld starts (s since 1970).
    """
    users = {one.user: number(one.user) for one in found.associations if one.user}
    tres = [name.strip() for name in conf.text("AccountingStorageTRES").split(",") if name.strip()]
    write_association_state(state, found, conf.text("ClusterName").lower(), tres, users, now)


def database_lines(conf: SlurmConf) -> list[str]:
    """Return lines of slurm.conf with which slurmctld uses its copy of associations and QOS."""
    enforced = conf.text("AccountingStorageEnforce")
    return [*_DATABASE, *([f"AccountingStorageEnforce={enforced}"] if _is_set(enforced) else [])]


def _own(folder: Path, user: str) -> Sequence[str]:
    own: Mapping[str, object] = {
        "SlurmctldHost": "localhost(127.0.0.1)",
        "SlurmctldPort": CONTROLLER_PORT,
        "SlurmUser": user,
        "SlurmdUser": user,
        "AuthType": "auth/none",
        "CredType": "cred/none",
        "MpiDefault": "none",
        "StateSaveLocation": folder / "state",
        "SlurmdSpoolDir": folder / "spool",
        "SlurmctldPidFile": folder / "slurmctld.pid",
        "SlurmctldLogFile": folder / "slurmctld.log",
        "SlurmctldDebug": "info",
        "ProctrackType": "proctrack/pgid",
        "TaskPlugin": "task/none",
        "JobAcctGatherType": "jobacct_gather/none",
        "SwitchType": "switch/none",
        "SlurmdParameters": "config_overrides",
        "SlurmdTimeout": 0,
        "SlurmctldTimeout": 3600,
        "TreeWidth": 65533,
    }
    (folder / "state").mkdir()
    return [f"{key}={value}" for key, value in own.items()]


def _is_set(value: str) -> bool:
    return value.lower() not in ("", "none")


def _refuse(conf: SlurmConf, *, with_accounting: bool) -> None:
    """Raise InputError if a setting requires associations that are not given, or suspends jobs."""
    text, where = conf.text, conf.where
    needs = {
        "AccountingStorageEnforce": _is_set(text("AccountingStorageEnforce")),
        "PreemptType": text("PreemptType").lower() == "preempt/qos",
    }
    key = next((name for name, does in needs.items() if does), None)
    if key is not None and not with_accounting:
        raise InputError(
            f"{key} needs the cluster's associations and QOS, and there are none",
            where=where(key),
            expected="--accounting FILE",
            found=printable(f"{key}={text(key)}"),
            hint="Save 'sacctmgr -P show assoc tree' and 'sacctmgr -P show qos' in files, and give both.",
        )
    modes = {mode.strip().upper() for mode in text("PreemptMode").split(",")}
    if modes & {"SUSPEND", "GANG"}:
        raise InputError(
            "jobs cannot be suspended",
            where=where("PreemptMode"),
            expected="OFF, CANCEL or REQUEUE",
            found=text("PreemptMode"),
        )


def _derived(line: ConfLine, ports: dict[str, int], plugins: Path | None, remarks: list[str]) -> str:
    """Return a line of slurm.conf, changed for the private slurmctld; "" if no key of it is kept."""
    first = line.pairs[0].key.lower() if line.pairs else ""
    pairs = line.pairs
    if first == _NODE:
        pairs = tuple(pair for pair in pairs if pair.key.lower() not in _OWN_OF_NODES)
        named = pairs[0].value
        more = "" if named.upper() == "DEFAULT" else f" NodeAddr=127.0.0.1 Port={_ports(named, line.where, ports)}"
        return " ".join(_written(pair.key, pair.value) for pair in pairs) + more
    kept = []
    for key, value in pairs:
        lowered = key.lower()
        if lowered == _PLUGINS:
            value = _installed(value, plugins, line.where, remarks)  # noqa: PLW2901 - what is left of it
            if not value:
                continue
        elif lowered.startswith(_ELSEWHERE) and lowered not in _KEPT:
            continue
        kept.append(_written(key, value))
    return " ".join(kept)


def _ports(named: str, where: str, ports: dict[str, int]) -> str:
    """Add a port for each of the named nodes to ``ports``; return the value of ``Port`` for slurm.conf."""
    names = expanded(named, where)
    first = FIRST_PORT + len(ports)
    if len(ports) + len(names) > _MOST_NODES:
        raise InputError("there are too many nodes for slurmctld on one machine", expected=f"at most {_MOST_NODES:,}")
    for name in names:
        ports[name] = FIRST_PORT + len(ports)
    return f"[{first}-{first + len(names) - 1}]" if len(names) > 1 else str(first)


def _written(key: str, value: str) -> str:
    return f'{key}="{value}"' if any(letter.isspace() for letter in value) else f"{key}={value}"


def _installed(value: str, plugins: Path | None, where: str, remarks: list[str]) -> str:
    """Return a list of job_submit plugins without those that are not installed here.

    Add a warning about each of these to ``remarks``.
    """
    kept = []
    for name in value.split(","):
        stem = name.strip().replace("/", "_")
        stem = stem if stem.startswith("job_submit_") else f"job_submit_{stem}"
        if plugins is None or (plugins / f"{stem}.so").is_file():
            kept.append(name.strip())
        else:
            remarks.append(f"{where}: the plugin {stem} is not installed here, so slurmctld runs without it")
    return ",".join(kept)
