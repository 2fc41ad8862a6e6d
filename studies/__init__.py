"""Whole runs from one call, and platforms and workloads by name."""

from pipistrelle.studies.inputs import load_platform, load_workload, platform_for
from pipistrelle.studies.run import run_in_process, run_with_child

__all__ = ["load_platform", "load_workload", "platform_for", "run_in_process", "run_with_child"]
