"""Workloads: logs in SWF and Batsim's JSON, read, cleaned, described, written, and generated from a seed.

The bundled workloads' names and descriptions are in `pipistrelle.traces.catalogue`.
"""

from typing import TYPE_CHECKING

from pipistrelle.protocol.base.first_use import import_on_first_use

if TYPE_CHECKING:
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

import_on_first_use(
    __name__,
    {
        "catalogue": "load_bundled",
        "clean": "REASONS clean count_overruns",
        "describe": "describe offered_load",
        "errors": "TraceError",
        "generator": "generate",
        "load": "SUFFIXES load save",
        "workload": "Workload",
    },
)
