"""Pipistrelle's server: the simulated cluster and everything that happens to it.

`simulate` runs a `Setup` against a scheduler at the other end of a `Transport`.
"""

from typing import TYPE_CHECKING

from pipistrelle.protocol.base.first_use import import_on_first_use

if TYPE_CHECKING:
    from pipistrelle.server.engine.engine import Engine
    from pipistrelle.server.engine.observers import Observer
    from pipistrelle.server.outputs.metrics import Summary
    from pipistrelle.server.setup import Setup
    from pipistrelle.server.simulation import Result, simulate
    from pipistrelle.server.transport.in_process import InProcessTransport, Transport
    from pipistrelle.server.transport.native import ZmqTransport

__all__ = [
    "Engine",
    "InProcessTransport",
    "Observer",
    "Result",
    "Setup",
    "Summary",
    "Transport",
    "ZmqTransport",
    "simulate",
]

import_on_first_use(
    __name__,
    {
        "engine.engine": "Engine",
        "outputs.metrics": "Summary",
        "engine.observers": "Observer",
        "setup": "Setup",
        "simulation": "Result simulate",
        "transport.in_process": "InProcessTransport Transport",
        "transport.native": "ZmqTransport",
    },
)
