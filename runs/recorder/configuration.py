"""Turn a centre's Slurm configuration into one for a private run on this host."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from pipistrelle.platforms.naming.hostlists import expanded
from pipistrelle.platforms.slurm.conf import SlurmConf
from pipistrelle.protocol.base.errors import InputError, printable
from pipistrelle.runs.recordings.names import ACCOUNTING
from pipistrelle.runs.slurm.files import GRES, TOPOLOGY, Fetching, file_beside, read_slurm_files, resolved, texts_of
from pipistrelle.runs.slurmctld.configuration import database_lines, read_associations
from pipistrelle.schedulers.slurm.files.accounting import Accounting
from pipistrelle.schedulers.slurm.files.topology import read_topology
from pipistrelle.traces.files import is_inside, read_text

#: keys that decide what the scheduler does; all others are replaced or left out, so no secret is copied
_KEPT: Final = re.compile(
    r"clustername|schedulertype|schedulerparameters|schedulertimeslice|priority\w+|preempt\w+|select\w+|grestypes"
    r"|topology\w+|(def|max)(mem|cpu)per\w+|completewait|killwait|overtimelimit|enforcepartlimits|jobrequeue|licenses"
    r"|maxarraysize|firstjobid|maxjobid|dependencyparameters|fairsharedampeningfactor|resvoverrun|nodeset"
)
#: parts of a node's line that belong to the centre's network, or to the state of the moment
_NODE: Final = frozenset(
    {"nodehostname", "nodeaddr", "port", "bcastaddr", "state", "reason", "cpuspeclist", "corespeccount", "memspeclimit"}
)
#: parts of a partition's line that name people or hosts of the centre, and those that need associations
_PARTITION: Final = frozenset({"allowgroups", "allocnodes"})
_ASSOCIATIONS: Final = frozenset({"allowaccounts", "denyaccounts", "allowqos", "denyqos", "qos"})
_PRIVATE: Final = """SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=6817
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
MpiDefault=none
StateSaveLocation={0}/state
SlurmdSpoolDir={0}/spool/%n
SlurmctldPidFile={0}/slurmctld.pid
SlurmdPidFile={0}/spool/%n.pid
SlurmctldLogFile={0}/slurmctld.log
SlurmdLogFile={0}/spool/%n.log
LogTimeFormat=iso8601_ms
SlurmctldDebug=debug3
SlurmdDebug=error
DebugFlags=Backfill,BackfillMap,Priority
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
ReturnToService=2
SlurmdParameters=config_overrides
SlurmdTimeout=0
SlurmctldTimeout=3600
InactiveLimit=0
MessageTimeout=100
UnkillableStepTimeout=3600
MinJobAge=100000000
MaxJobCount={1}
"""
_FIRST_PORT: Final = 20_000
_MOST_NODES: Final = 200
#: {key: the only value that does not need associations}
_DATABASE: Final = {"accountingstoragetype": "accounting_storage/none", "accountingstorageenforce": "none"}
_DEEPEST: Final = 10


class PrivateConfiguration(Struct, frozen=True):
    """Slurm's configuration files for a private run.

    ``changes`` says how they differ from the centre's.

    Attributes:
        files: {name: text}; ``@STATE@`` stands for the private folder.
        devices: files that stand for GPUs, within the private folder.
        nodes: names of the nodes.
        changes: texts about keys that were changed or left out.
        conf: the centre's slurm.conf.
        accounting: the associations and QOS; None: slurmctld runs without.
    """

    files: dict[str, str]
    devices: list[str]
    nodes: list[str]
    changes: list[str]
    conf: SlurmConf
    accounting: Accounting | None = None


def private_configuration(folder: Path, jobs: int, accounting: Sequence[str] = ()) -> PrivateConfiguration:
    """Return the configuration of a folder for a private run.

    Args:
        jobs: the number of jobs and tasks that the controller must keep.
        accounting: files of associations and QOS.

    Raises:
        PipistrelleError: a file is absent or wrong, or the configuration needs associations or more than 200 nodes.
    """
    conf = folder / "slurm.conf"
    if not conf.is_file():
        raise InputError(
            "the folder has no slurm.conf", where=printable(str(folder)), expected="a folder such as /etc/slurm"
        )
    read = read_slurm_files(str(conf))  # also checks the files
    numbers = read.nodes
    nodes = list(numbers)
    if len(nodes) > _MOST_NODES:
        raise InputError(
            "the machine is too large to record", where=str(conf), expected=f"at most {_MOST_NODES} nodes",
            found=str(len(nodes)),
        )  # fmt: skip
    kept, dropped = _kept_lines(conf, with_associations=bool(accounting))
    remarks: list[str] = []
    found = read_associations(accounting, read.conf, remarks) if accounting else None
    if found is not None:
        kept += database_lines(read.conf)
    text = _PRIVATE.format("@STATE@", max(10_000, 2 * jobs)) + "".join(f"{line}\n" for line in kept)
    files = {"slurm.conf": text}
    gres, devices = _gres(folder / GRES, dropped)
    if gres:
        files[GRES] = gres
    if (tree := file_beside(str(conf), TOPOLOGY)) is not None:
        read_topology(read_text(tree), printable(tree), numbers, Fetching(tree, trust=False))  # checks the file
        files[TOPOLOGY] = "".join(f"{line}\n" for line, _ in _lines(Path(tree), folder))
    changes = [f"{key} ({count:,} times)" if count > 1 else key for key, count in dropped.items()]
    for number, (_, one) in enumerate(texts_of(accounting), start=1):
        files[f"{ACCOUNTING}{number}.txt"] = one
    return PrivateConfiguration(files, devices, nodes, [*changes, *remarks], read.conf, found)


def _kept_lines(conf: Path, *, with_associations: bool) -> tuple[list[str], Counter[str]]:
    kept: list[str] = []
    dropped: Counter[str] = Counter()
    port = _FIRST_PORT
    for line, where in _lines(conf, conf.parent):
        key, _, value = line.partition("=")
        name = key.strip().lower()
        low = value.strip().lower()
        if name in _DATABASE and with_associations:
            continue
        if _DATABASE.get(name, low) != low:
            raise InputError(
                f"{key.strip()} needs the cluster's associations and QOS, and there are none",
                where=where,
                expected="--accounting FILE",
                found=printable(line),
                hint="Save 'sacctmgr -P show assoc tree' and 'sacctmgr -P show qos', or leave the key out.",
            )
        if name == "nodename":
            words = _without(line, _NODE, dropped)
            if low.split()[0] != "default":
                count = len(expanded(words[0].partition("=")[2], where))
                ports = f"[{port}-{port + count - 1}]" if count > 1 else str(port)
                words += ["NodeHostname=localhost", "NodeAddr=127.0.0.1", f"Port={ports}", "State=UNKNOWN"]
                port += count
            kept.append(" ".join(words))
        elif name == "partitionname":
            left_out = _PARTITION if with_associations else _PARTITION | _ASSOCIATIONS
            kept.append(" ".join(_without(line, left_out, dropped)))
        elif (with_associations and name == "accountingstoragetres") or _KEPT.fullmatch(name):
            kept.append(line)
        else:
            dropped[key.strip()] += 1
    return kept, dropped


def _without(line: str, left_out: frozenset[str], dropped: Counter[str]) -> list[str]:
    """Return the words KEY=VALUE of a line of slurm.conf without some keys.

    The keys ``left_out`` are left out, and counted in ``dropped``.
    """
    words = []
    for word in re.findall(r'(?:[^\s"]|"[^"]*")+', line):
        key = word.partition("=")[0]
        if key.lower() in left_out:
            dropped[f"{line.partition('=')[0].strip()} {key}"] += 1
        else:
            words.append(word)
    return words


def _gres(path: Path, dropped: Counter[str]) -> tuple[str, list[str]]:
    """Return the text of gres.conf for a private run.

    Also return the device files that it names. The device files of the centre are replaced by files in the private
    folder.
    """
    if not path.is_file():
        return "", []
    lines: list[str] = []
    devices: dict[str, None] = {}
    for line, where in _lines(path, path.parent):
        if line.lower().startswith("autodetect"):
            dropped["gres.conf AutoDetect"] += 1
            continue
        words = []
        for word in line.split():
            key, _, value = word.partition("=")
            if key.lower() == "autodetect":
                dropped["gres.conf AutoDetect"] += 1
            elif key.lower() in ("file", "multiplefiles"):
                dropped["gres.conf File"] += 1
                names = [f"dev/{name.rpartition('/')[2]}" for name in expanded(value, where)]
                devices.update(dict.fromkeys(names))
                words.append("File=" + ",".join(f"@STATE@/{name}" for name in names))
            else:
                words.append(word)
        lines.append(" ".join(words))
    return "".join(f"{line}\n" for line in lines), list(devices)


def _lines(path: Path, folder: Path, depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield each line of slurm.conf and of included files, and its location.

    Lines are joined if continued, and have no comments.
    """
    text, first = "", 0
    for number, raw in enumerate(read_text(path).splitlines(), start=1):
        line = raw.partition("#")[0].rstrip()
        first = first or number
        text += line.removesuffix("\\")
        if line.endswith("\\"):
            continue
        done, where = text.strip(), f"{printable(str(path))}:{first}"
        text, first = "", 0
        if done.lower().startswith("include ") and depth < _DEEPEST:
            other = resolved(str(folder), done.split(None, 1)[1])
            if is_inside(other, str(folder)):
                yield from _lines(Path(other), folder, depth + 1)
        elif done:
            yield done, where
