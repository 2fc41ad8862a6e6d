"""What libzmq's monitor of a socket says of its connections (zmq_socket_monitor).

pyzmq has a function for it, too, in a module that imports asyncio: more than all else that a server starts with.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Final

_EVENT: Final = Struct("=Hi")


def socket_event(frames: Sequence[bytes]) -> tuple[int, int]:
    """Return the event in a monitor's message and its value, for a connection its file descriptor."""
    event, value = _EVENT.unpack(frames[0])
    return event, value
