"""An encrypted connection (CurveZMQ) through libzmq, used like a `ZmtpConnection`."""

import time
from math import inf
from typing import Final

import zmq

from pipistrelle.protocol.frames import socket_event
from pipistrelle.protocol.sockets import ZMQ_DESCRIPTORS, CallerKeys, check_descriptors
from pipistrelle.protocol.zmtp import LONGEST_NOTICE
from pipistrelle.schedulers.wire.zmtp import ConnectionLost, HandshakeRefused, address_of

#: longest time of one attempt to connect, s
_ATTEMPT_S: Final = 5.0
#: libzmq must not reconnect: another server may be listening there by then
_NEVER_MS: Final = 24 * 3600 * 1000
_LINGER_MS: Final = 500
#: time for libzmq to deliver what arrived just before a connection ended, ms
_REST_MS: Final = 100
_FAILED: Final = zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
_ENDED: Final = zmq.EVENT_CLOSED | zmq.EVENT_DISCONNECTED
_UNKNOWN: Final = zmq.EVENT_HANDSHAKE_FAILED_AUTH
_WATCHED: Final = _FAILED | _ENDED | _UNKNOWN | zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_CONNECTED
_MONITOR: Final = "inproc://server"


class CurveConnection:
    """An encrypted connection to a server's ROUTER socket; each message has one part.

    Args:
        endpoint: ``tcp://HOST:PORT`` or ``ipc://PATH``.
        keys: own keys and the server's public key.

    Raises:
        AddressError: the endpoint is invalid.
    """

    def __init__(self, endpoint: str, keys: CallerKeys) -> None:
        address_of(endpoint)
        self.endpoint = endpoint
        self._deadline = inf
        check_descriptors(ZMQ_DESCRIPTORS)
        self._context = zmq.Context(io_threads=1)
        self._socket = self._context.socket(zmq.REQ)
        options = (
            (zmq.LINGER, _LINGER_MS),
            (zmq.RECONNECT_IVL, _NEVER_MS),
            (zmq.MAXMSGSIZE, LONGEST_NOTICE),
            (zmq.IPV6, 1),
            (zmq.TCP_KEEPALIVE, 1),
            (zmq.TCP_KEEPALIVE_IDLE, 60),
            (zmq.TCP_KEEPALIVE_INTVL, 15),
            (zmq.TCP_KEEPALIVE_CNT, 4),
        )
        for name, value in options:
            self._socket.setsockopt(name, value)
        self._socket.setsockopt(zmq.CURVE_SERVERKEY, keys.listener)
        self._socket.setsockopt(zmq.CURVE_PUBLICKEY, keys.own.public)
        self._socket.setsockopt(zmq.CURVE_SECRETKEY, keys.own.secret)
        # The socket connects only once, so there are few monitor events.
        self._socket.monitor(_MONITOR, _WATCHED)
        self._monitor = self._context.socket(zmq.PAIR)
        self._monitor.connect(_MONITOR)
        self._poller = zmq.Poller()
        self._poller.register(self._socket, zmq.POLLIN)
        self._poller.register(self._monitor, zmq.POLLIN)

    def connect(self, deadline: float) -> None:
        """Connect like `ZmtpConnection.connect`.

        Raise HandshakeRefused if the keys do not match.
        """
        try:
            self._socket.connect(self.endpoint)
        except zmq.ZMQError as error:
            raise ConnectionLost(error.strerror or str(error)) from None
        patience, reached = min(deadline, time.monotonic() + _ATTEMPT_S), False
        while (left := patience - time.monotonic()) > 0:
            if not self._monitor.poll(int(1000 * left) + 1):
                break
            event, value = socket_event(self._monitor.recv_multipart())
            if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                return
            if event == _UNKNOWN:
                raise HandshakeRefused("the server does not accept this key: it is not in its --clients")
            if event == zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL and value == zmq.PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH:
                raise HandshakeRefused("the server is not encrypted: it was started without --curve")
            if event & (_FAILED | _ENDED) and reached:
                raise HandshakeRefused("the server ended the handshake: its key differs from --server-key")
            if event & (_FAILED | _ENDED):
                raise ConnectionLost("no server listens there")
            reached = True
        raise TimeoutError("timed out: the peer may not be a ZeroMQ socket" if reached else "timed out")

    def limit(self, deadline: float) -> None:
        """Make waits raise `TimeoutError` after ``deadline``.

        ``deadline`` is a time of `time.monotonic`; inf means never.
        """
        self._deadline = deadline

    def send(self, message: bytes) -> None:
        """Send a message.

        Raise ConnectionLost if the server's last message had several parts.
        """
        try:
            self._socket.send(message, zmq.NOBLOCK)
        except zmq.ZMQError as error:
            raise ConnectionLost(error.strerror or str(error)) from None

    def receive(self) -> bytes:
        """Return the next message.

        Raise ConnectionLost if the message has several parts or cannot arrive.
        """
        while (left := self._deadline - time.monotonic()) > 0:
            ready = dict(self._poller.poll(None if left == inf else int(1000 * left) + 1))
            if self._socket in ready:
                return self._sole_part()
            if self._monitor in ready:
                event, _ = socket_event(self._monitor.recv_multipart())
                if event & _ENDED:
                    if self._socket.poll(_REST_MS):
                        return self._sole_part()
                    raise ConnectionLost("the connection was closed")
        raise TimeoutError("timed out")

    def _sole_part(self) -> bytes:
        parts = self._socket.recv_multipart()
        if len(parts) > 1:
            raise ConnectionLost("a message has several parts")
        return parts[0]

    def close(self) -> None:
        """Close the connection; messages already sent still leave within half a second."""
        if not self._socket.closed:
            self._socket.disable_monitor()
            self._monitor.close(0)
            self._socket.close()
            self._context.term()
