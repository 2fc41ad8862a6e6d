"""Whole runs from one call, and platforms and workloads by name."""

from typing import TYPE_CHECKING

from pipistrelle.protocol.base.first_use import import_on_first_use

if TYPE_CHECKING:
    from pipistrelle.studies.inputs.named import load_platform, load_workload, platform_for
    from pipistrelle.studies.runs.run import run_in_process, run_with_child

__all__ = ["load_platform", "load_workload", "platform_for", "run_in_process", "run_with_child"]

import_on_first_use(
    __name__,
    {
        "inputs.named": "load_platform load_workload platform_for",
        "runs.run": "run_in_process run_with_child",
    },
)
