"""Show a run as a live page: the document, and each state of the run as JSON."""

import time
from typing import Any, Final

import msgspec
import numpy as np

from pipistrelle.platforms.resources.free_resources import amounts_of
from pipistrelle.platforms.resources.shared_nodes import shared_nodes_of
from pipistrelle.reports.live.asking import answer
from pipistrelle.reports.live.layout import MapLayout
from pipistrelle.reports.live.page_server import PageServer
from pipistrelle.reports.live.state import LiveState, MachineNow
from pipistrelle.reports.page.document import live_document
from pipistrelle.server.setup.setup import Setup

#: seconds between two states: if the page has viewers, and if not
_EVERY_S: Final = 0.5
_SELDOM_S: Final = 2.0
#: number of moments kept for the curves; when it is reached, every other moment is dropped
_MOMENTS: Final = 480
#: maximum number of nodes on the map; on larger machines some nodes are skipped
_MOST_NODES: Final = 1 << 16
#: codes on the map for a node without a job, and for a node out of service
_FREE: Final = -1
_DOWN: Final = -2
_WAITING: Final = b'{"phase":"waiting"}'


class PageView:
    """A view that shows a run as a live page.

    Use it as a context manager, which serves the page.

    Args:
        port: port on the loopback interface, as for `PageServer`.

    Raises:
        PageError: the port cannot be opened.
    """

    def __init__(self, setup: Setup, port: int) -> None:
        self._server = PageServer(port, lambda: _document(setup))
        self._moments: list[tuple[float, ...]] = []
        #: one state in this many is kept as a moment, and the number of states so far
        self._stride = 1
        self._met = 0
        #: distinguishes this run from a later run at the same port
        self._token = f"{time.time_ns():x}"
        self._over = False

    @property
    def address(self) -> str:
        """The URL of the page."""
        return self._server.address

    @property
    def every(self) -> float:
        """Return the number of seconds after which the page should get the next state."""
        return _EVERY_S if self._server.viewers else _SELDOM_S

    def __enter__(self) -> "PageView":
        self._server.publish(_WAITING)
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop serving; if the run never began, first tell viewers that it is over."""
        if not self._over:
            self._server.publish(msgspec.json.encode({"phase": "over", "reason": "never begun", "token": self._token}))
        self._server.close()

    def show(self, state: LiveState) -> None:
        """Show a state of the run."""
        self._remember(state)
        self._server.publish(self._event(state, "running"))

    def over(self, state: LiveState) -> None:
        """Show the last state of the run."""
        self._over = True
        self._remember(state)
        self._server.publish(self._event(state, "over"))

    def _remember(self, state: LiveState) -> None:
        """Add the values of a state to the points of the page's curves.

        The number of points is limited.
        """
        self._met += 1
        if self._met % self._stride == 0:
            shares = [one.share for one in state.resources]
            self._moments.append((state.now, state.utilisation, state.queue, state.backlog, *shares))
        if len(self._moments) >= _MOMENTS:
            del self._moments[1::2]
            self._stride *= 2

    def _event(self, state: LiveState, phase: str) -> bytes:
        told: dict[str, Any] = {name: getattr(state, name) for name in state.__struct_fields__ if name != "machine"}
        told |= {
            "phase": phase,
            "token": self._token,
            "held": state.machine.held,
            "idle": state.machine.idle,
            "down": state.down,
            "map": _runs(state.machine),
            "colours": state.machine.colours[: len(state.on_machine)],
            "past": [list(column) for column in zip(*self._moments, strict=True)],
        }
        return msgspec.json.encode(told)


def _runs(machine: MachineNow) -> dict[str, Any]:
    """Return the nodes run-length encoded.

    A run is the number of equal neighbours, the job on them, and the percentage in use. On a machine with more than
    `_MOST_NODES` nodes, only one node of each group of ``each`` nodes is shown.
    """
    each = -(-len(machine.on) // _MOST_NODES)
    on, used, down = machine.on[::each], machine.used[::each], machine.down[::each]
    what = np.where(down, _DOWN, np.where(on >= 0, on, _FREE))
    percent = np.rint(100 * used).astype(np.int64)
    begins = np.flatnonzero(np.concatenate([[True], (np.diff(what) != 0) | (np.diff(percent) != 0)]))
    lengths = np.diff(begins, append=len(what))
    return {"each": each, "lengths": lengths.tolist(), "what": what[begins].tolist(), "used": percent[begins].tolist()}


def _document(setup: Setup) -> bytes:
    """Return the complete HTTP answer that contains the page of a run."""
    layout, shared = MapLayout.of(setup.platform), shared_nodes_of(setup.platform.info)
    facts = {
        "name": setup.name,
        "machine": setup.platform.name,
        "epoch": setup.epoch,
        "timezone": setup.timezone,
        "nodes": layout.nodes,
        "shared": [] if shared is None else list(amounts_of(shared)),
        "kind": layout.kind,
        "blocks": [block.tolist() for block in layout.blocks] if layout.nodes <= _MOST_NODES else [],
    }
    page, policy = live_document(f"{setup.name} on {setup.platform.name}", facts)
    return answer(page.encode(), "text/html; charset=utf-8", policy)
