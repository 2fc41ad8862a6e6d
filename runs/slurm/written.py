"""Write a slurm.conf for a machine."""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import UNSET, UnsetType

from pipistrelle.platforms.description import Platform
from pipistrelle.protocol.resources.amounts import CORES, GPU, MEMORY, parse_memory

#: parameters of every file: jobs that can never run are rejected
_PARAMETERS: Final = ("EnforcePartLimits=ALL", "SchedulerParameters=bf_interval=30", "GresTypes=gpu")


def slurm_conf_text(platform: Platform) -> str:
    """Return a slurm.conf with the nodes of a machine and one partition.

    Jobs share nodes if the pools have resources. The nodes of the n-th pool have the names ``p<n>-1``, ``p<n>-2``, ...
    """
    shared = platform.pools[0].resources is not UNSET
    kind = "select/cons_tres\nSelectTypeParameters=CR_Core_Memory" if shared else "select/linear"
    lines = [f"ClusterName={platform.name}", f"SelectType={kind}", *_PARAMETERS]
    if not isinstance(platform.licenses, UnsetType) and platform.licenses:
        lines.append("Licenses=" + ",".join(f"{name}:{count}" for name, count in platform.licenses.items()))
    for number, pool in enumerate(platform.pools, start=1):
        names = f"p{number}-[1-{pool.nodes}]"
        lines.append(f"NodeName={names} {_node(pool.resources if isinstance(pool.resources, Mapping) else {})}")
    lines.append("PartitionName=all Nodes=ALL Default=YES MaxTime=UNLIMITED")
    return "\n".join(lines) + "\n"


def _node(resources: Mapping[str, Any]) -> str:
    cores = int(resources.get(CORES, 1))
    words = [f"CPUs={cores} CoresPerSocket={cores}"]
    if MEMORY in resources:
        words.append(f"RealMemory={parse_memory(str(resources[MEMORY]))}")
    gpus = resources.get(GPU)
    gres = (
        [] if gpus is None else [f"gpu:{gpus['model']}:{gpus['count']}" if isinstance(gpus, Mapping) else f"gpu:{gpus}"]
    )
    gres += [f"{name}:{count}" for name, count in resources.items() if name not in (CORES, MEMORY, GPU)]
    return " ".join([*words, *([f"Gres={','.join(gres)}"] if gres else [])])
