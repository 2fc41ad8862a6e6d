"""Small Slurm clusters for tests."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from pipistrelle.schedulers.slurm.config.machine import NodeSettings, PartitionSettings
from pipistrelle.schedulers.slurm.config.parameters import SelectSettings
from pipistrelle.schedulers.slurm.config.settings import SlurmConfig
from pipistrelle.schedulers.slurm.config.submission import Submission
from pipistrelle.schedulers.slurm.passes.controller import Controller


def cluster(nodes: int = 4, **more: Any) -> SlurmConfig:
    """Return a cluster of whole nodes with 4 CPUs each and one partition."""
    names = tuple(f"n{at:02}" for at in range(1, nodes + 1))
    config = SlurmConfig(
        select=SelectSettings(type="select/linear"),
        nodes=tuple(NodeSettings(name=name, cpus=4, cores=4, real_memory=16000) for name in names),
        partitions=(PartitionSettings(name="batch", nodes=names, default=True, over_subscribe="EXCLUSIVE"),),
    )
    return replace(config, **more)


def shared(nodes: int = 4, **more: Any) -> SlurmConfig:
    """Return the same cluster with cores and memory that jobs share."""
    config = cluster(nodes)
    parts = tuple(replace(one, over_subscribe="NO", def_mem_per_cpu=1000) for one in config.partitions)
    select = SelectSettings(type="select/cons_tres", parameters=frozenset({"CR_Core_Memory"}))
    return replace(config, **{"select": select, "partitions": parts} | more)


class Queue:
    """Submits jobs to a controller."""

    def __init__(self, config: SlurmConfig) -> None:
        self.controller = Controller(config)
        self.number = 0
        self.refused = ""

    def add(self, now: int = 0, array: tuple[int, ...] = (), **options: Any) -> Any:
        """Submit a job; `refused` tells why it is refused."""
        self.number += 1
        given = {"user": "ann", "time_limit": 600.0, **options}
        sub = Submission(number=self.number, submit=float(now), **given)
        ids = [f"{self.number}_{task}" for task in array] or [str(self.number)]
        job, self.refused = self.controller.submit(ids, sub, now, array)
        return job


@pytest.fixture
def queue() -> Callable[[SlurmConfig], Queue]:
    """Return a function that makes a queue for a cluster."""
    return Queue
