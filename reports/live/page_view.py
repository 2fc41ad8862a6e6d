"""A run as a page for a browser: the document, and each state of the run as JSON for it."""

import time
from typing import Any, Final

import msgspec
import numpy as np

from pipistrelle.reports.live.asking import answer
from pipistrelle.reports.live.layout import MapLayout
from pipistrelle.reports.live.page_server import PageServer
from pipistrelle.reports.live.state import LiveState, MachineNow
from pipistrelle.reports.page.document import live_document
from pipistrelle.server.setup.setup import Setup

#: seconds between two states: where somebody looks, and where nobody does
_EVERY_S: Final = 0.5
_SELDOM_S: Final = 2.0
#: moments that are kept of the past; with more, every other is forgotten
_MOMENTS: Final = 480
#: nodes that the map tells apart
_MOST_NODES: Final = 1 << 16
#: of what the map tells: no job, out of service
_FREE: Final = -1
_DOWN: Final = -2
_WAITING: Final = b'{"phase":"waiting"}'


class PageView:
    """Shows a run as a page, which a server of its own hands out.

    Use it as a context manager: the page is there as long as it is entered.

    Parameters
    ----------
    setup
        of the run.
    port
        as of `PageServer`.

    Raises
    ------
    PageError
        when the port cannot be had.
    """

    def __init__(self, setup: Setup, port: int) -> None:
        self._server = PageServer(port, lambda: _document(setup))
        self._moments: list[tuple[float, float, int, float]] = []
        #: of the moments that there are, so many are left out between two
        self._stride = 1
        self._met = 0
        #: tells one run from another that is served at the same port later
        self._token = f"{time.time_ns():x}"
        self._over = False

    @property
    def address(self) -> str:
        """What to open in a browser."""
        return self._server.address

    @property
    def every(self) -> float:
        """So many seconds should pass before it is shown the next state."""
        return _EVERY_S if self._server.viewers else _SELDOM_S

    def __enter__(self) -> "PageView":
        self._server.publish(_WAITING)
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Tell those who look that it was all, if the run has not."""
        if not self._over:
            self._server.publish(msgspec.json.encode({"phase": "over", "reason": "never begun", "token": self._token}))
        self._server.close()

    def show(self, state: LiveState) -> None:
        """Show a state."""
        self._remember(state)
        self._server.publish(self._event(state, "running"))

    def over(self, state: LiveState) -> None:
        """Show the last state."""
        self._over = True
        self._remember(state)
        self._server.publish(self._event(state, "over"))

    def _remember(self, state: LiveState) -> None:
        """Keep a moment for the curves, in a bounded number of them."""
        self._met += 1
        if self._met % self._stride == 0:
            self._moments.append((state.now, state.utilisation, state.queue, state.backlog))
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
    """Return what is on the nodes, as runs of nodes that are alike: how many, what, and which percentage is held.

    Of a machine with more nodes than a map tells apart, one stands for those beside it.
    """
    each = -(-len(machine.on) // _MOST_NODES)
    on, used, down = machine.on[::each], machine.used[::each], machine.down[::each]
    what = np.where(down, _DOWN, np.where(on >= 0, on, _FREE))
    percent = np.rint(100 * used).astype(np.int64)
    begins = np.flatnonzero(np.concatenate([[True], (np.diff(what) != 0) | (np.diff(percent) != 0)]))
    lengths = np.diff(begins, append=len(what))
    return {"each": each, "lengths": lengths.tolist(), "what": what[begins].tolist(), "used": percent[begins].tolist()}


def _document(setup: Setup) -> bytes:
    """Return the whole answer to who asks for the page."""
    layout = MapLayout.of(setup.platform)
    facts = {
        "name": setup.name,
        "machine": setup.platform.name,
        "epoch": setup.epoch,
        "timezone": setup.timezone,
        "nodes": layout.nodes,
        "kind": layout.kind,
        "blocks": [block.tolist() for block in layout.blocks] if layout.nodes <= _MOST_NODES else [],
    }
    page, policy = live_document(f"{setup.name} on {setup.platform.name}", facts)
    return answer(page.encode(), "text/html; charset=utf-8", policy)
