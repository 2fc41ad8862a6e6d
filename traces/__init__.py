"""Workloads: logs in SWF and Batsim's JSON, read, cleaned, described, written, and generated from a seed.

The bundled workloads' names and descriptions are in `pipistrelle.traces.catalogue`.
"""

from pipistrelle.traces.catalogue import load_bundled
from pipistrelle.traces.clean import REASONS, clean, count_overruns
from pipistrelle.traces.describe import describe, offered_load
from pipistrelle.traces.errors import TraceError
from pipistrelle.traces.generator import generate
from pipistrelle.traces.load import SUFFIXES, load, save
from pipistrelle.traces.workload import Workload

__all__ = [
    "REASONS",
    "SUFFIXES",
    "TraceError",
    "Workload",
    "clean",
    "count_overruns",
    "describe",
    "generate",
    "load",
    "load_bundled",
    "offered_load",
    "save",
]
