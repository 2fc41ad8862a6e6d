"""Pipistrelle's server: the simulated cluster and everything that happens to it.

`simulate` runs a `Setup` against a scheduler at the other end of a `Transport`.
"""

from typing import TYPE_CHECKING

from pipistrelle.protocol.first_use import import_on_first_use

if TYPE_CHECKING:
    from pipistrelle.server.engine import Engine
    from pipistrelle.server.metrics import Summary
    from pipistrelle.server.observers import Observer
    from pipistrelle.server.setup import Setup
    from pipistrelle.server.simulation import Result, simulate
    from pipistrelle.server.transport import InProcessTransport, Transport
    from pipistrelle.server.zmq_transport import ZmqTransport

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
        "engine": "Engine",
        "metrics": "Summary",
        "observers": "Observer",
        "setup": "Setup",
        "simulation": "Result simulate",
        "transport": "InProcessTransport Transport",
        "zmq_transport": "ZmqTransport",
    },
)
