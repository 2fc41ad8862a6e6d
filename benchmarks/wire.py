"""Measure how much a run costs beyond its bare message round trips.

Simulates a log with server and scheduler as two processes. In turn, two minimal Python processes exchange the same
messages over pyzmq's ROUTER and REQ sockets; this is the bare echo. Prints

    wall time of the run / wall time of the bare echo

once for the event loop (first notice to last) and once for the whole command (start of Python, reading of the log,
start of the scheduler, outputs). Also printed are the ratio to an echo that encodes and decodes the JSON at both ends,
a breakdown of the time, and the ratio to a floor. The floor is the sum of

- a bare exchange: two minimal Python processes exchange the same messages over a Unix socket, without ZeroMQ,
- the JSON: the same two processes also encode and decode each message,
- the work of both sides: the same simulation in one process, without outputs and messages.

The last line needs no second process. It is what a round trip takes without any socket, as processor time in one
process: encoding and decoding both messages, the engine, and the scheduler's decision. No transport can make an event
loop faster than their sum.

    python benchmarks/wire.py LOG.swf.gz [--platform kth-sp2] [--scheduler easy] [--transport ipc] [--repeat 3]
                              [--dialect batsim]

In the batsim dialect the server connects and the scheduler listens. There is no wake filter, so a run has more round
trips; compare the time per round trip.

The following command compares bare round trips of our own ZMTP implementation with those of pyzmq, over ipc and tcp:

    python benchmarks/wire.py --sockets [--trips 20000] [--repeat 7]

A notice has 250 bytes and a reply 120 bytes. docs/explanation/design.md ("Parts we do not write") draws the
conclusions.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zmq
from started import started

from pipistrelle.protocol import codec
from pipistrelle.protocol.batsim import codec as batsim_codec
from pipistrelle.protocol.messages import HelloData, Notice, Refused, Reply, Restore, Save, WelcomeData
from pipistrelle.runs.inputs.named import load_platform, load_workload
from pipistrelle.schedulers.catalogue.registry import make_policy
from pipistrelle.schedulers.runtime.runtime import Runtime
from pipistrelle.schedulers.wire.batsim.runtime import BatsimRuntime
from pipistrelle.schedulers.wire.zmtp import ZmtpConnection
from pipistrelle.server.setup.setup import BatsimOptions, Setup
from pipistrelle.server.simulation.simulate import simulate
from pipistrelle.server.transport.in_process import InProcessTransport
from pipistrelle.server.transport.listener import Listener

#: messages of about the same length as in a run
NOTICE = b"n" * 250
REPLY = b"r" * 120
#: length of a frame in a bare exchange
_LENGTH = struct.Struct("<I")


@dataclass(frozen=True)
class Codec:
    """The functions that encode and decode the messages of one dialect."""

    encode_notice: Callable[[Notice], bytes]
    decode_notice: Callable[[bytes, int], Notice | Refused]
    encode_reply: Callable[[Reply], bytes]
    decode_reply: Callable[[bytes, Notice], Reply]


def _our_notice(frame: bytes, _: int) -> Notice | Refused:
    told = codec.decode_notice(frame)
    assert not isinstance(told, Save | Restore), "nobody was asked for a state"
    return told


def _our_reply(frame: bytes, _: Notice) -> Reply:
    return codec.decode_reply(frame)


def _batsim_reply(reply: Reply) -> bytes:
    return batsim_codec.encode_reply(reply, why=True)  # with reasons, as our schedulers send replies to our server


CODECS = {
    "native": Codec(codec.encode, _our_notice, codec.encode, _our_reply),
    "batsim": Codec(batsim_codec.encode_notice, batsim_codec.decode_notice, _batsim_reply, batsim_codec.decode_reply),
}


class _Listening:
    """An in-process transport that records every notice and reply."""

    apart = False

    def __init__(self, inner: InProcessTransport) -> None:
        self._inner = inner
        self.notices: list[Notice] = []
        self.replies: list[Reply] = []

    def greet(self, run_id: str, server: str) -> tuple[HelloData, WelcomeData]:
        return self._inner.greet(run_id, server)

    def send(self, notice: Notice) -> None:
        self.notices.append(notice)
        self._inner.send(notice)

    def receive(self) -> Reply:
        self.replies.append(self._inner.receive())
        return self.replies[-1]

    def farewell(self, notice: Notice) -> None:
        self._inner.farewell(notice)

    def close(self) -> None:
        self._inner.close()


def conversation(setup: Setup, scheduler: str) -> tuple[list[Notice], list[Reply]]:
    """Simulate the run in process and return all its notices and replies."""
    kind = Runtime if setup.batsim is None else BatsimRuntime
    transport = _Listening(InProcessTransport(kind(make_policy(scheduler))))
    simulate(setup, transport, clock=time.perf_counter)
    return transport.notices, transport.replies


def _echo_peer(endpoint: str, frames: list[bytes], notices: list[Notice], dialect: str | None) -> None:
    socket = zmq.Context().socket(zmq.REQ)
    socket.connect(endpoint)
    socket.send(b"hello")
    if dialect is not None:
        talk = CODECS[dialect]
        replies = [talk.decode_reply(frame, notice) for frame, notice in zip(frames, notices, strict=True)]
        for seq, reply in enumerate(replies, 1):
            talk.decode_notice(socket.recv(), seq)
            socket.send(talk.encode_reply(reply))
    else:
        for frame in frames:
            socket.recv()
            socket.send(frame)
    socket.recv()


def echo(endpoint: str, notices: list[Notice], replies: list[bytes], dialect: str, *, with_json: bool = False) -> float:
    """Return the wall time (s) in which two minimal processes exchange messages.

    With ``with_json``, both processes also encode and decode the messages.
    """
    talk = CODECS[dialect]
    context = zmq.Context()
    socket = context.socket(zmq.ROUTER)
    socket.bind(endpoint)
    address = socket.getsockopt_string(zmq.LAST_ENDPOINT)
    times = [Notice(notice.seq, notice.now, []) for notice in notices]  # enough to decode a reply
    words = (address, replies, times, dialect if with_json else None)
    peer = multiprocessing.get_context("spawn").Process(target=_echo_peer, args=words)
    peer.start()
    route = socket.recv_multipart()[:-1]
    payloads = [talk.encode_notice(notice) for notice in notices]
    began = time.perf_counter()
    if with_json:
        for notice in notices:
            socket.send_multipart([*route, talk.encode_notice(notice)])
            talk.decode_reply(socket.recv_multipart()[-1], notice)
    else:
        for payload in payloads:
            socket.send_multipart([*route, payload])
            socket.recv_multipart()
    seconds = time.perf_counter() - began
    socket.send_multipart([*route, b""])
    peer.join()
    socket.close()
    context.term()
    return seconds


def _put(peer: socket.socket, frame: bytes) -> None:
    peer.sendall(_LENGTH.pack(len(frame)) + frame)


def _got(peer: socket.socket) -> bytes:
    data = peer.recv(1 << 16)
    end = _LENGTH.size + _LENGTH.unpack_from(data)[0]
    while len(data) < end:
        data += peer.recv(1 << 16)
    return data[_LENGTH.size :]


def _exchange_peer(peer: socket.socket, frames: list[bytes], notices: list[Notice], dialect: str | None) -> None:
    if dialect is None:
        for frame in frames:
            _got(peer)
            _put(peer, frame)
    else:
        talk = CODECS[dialect]
        replies = [talk.decode_reply(frame, notice) for frame, notice in zip(frames, notices, strict=True)]
        _put(peer, b"")
        for seq, reply in enumerate(replies, 1):
            talk.decode_notice(_got(peer), seq)
            _put(peer, talk.encode_reply(reply))


def exchange(notices: list[Notice], replies: list[bytes], dialect: str, *, with_json: bool = False) -> float:
    """Return the wall time (s) of a bare exchange of messages.

    Two minimal processes exchange them over a Unix socket, without ZeroMQ. With ``with_json``, both processes also
    encode and decode the messages.
    """
    talk = CODECS[dialect]
    mine, other = socket.socketpair()
    times = [Notice(notice.seq, notice.now, []) for notice in notices]  # enough to decode a reply
    words = (other, replies, times, dialect if with_json else None)
    peer = multiprocessing.get_context("spawn").Process(target=_exchange_peer, args=words)
    peer.start()
    payloads = [talk.encode_notice(notice) for notice in notices]
    if with_json:
        _got(mine)  # the peer is ready
        began = time.perf_counter()
        for notice in notices:
            _put(mine, talk.encode_notice(notice))
            talk.decode_reply(_got(mine), notice)
    else:
        _put(mine, payloads[0])
        _got(mine)  # the peer is ready
        began = time.perf_counter()
        for payload in payloads[1:]:
            _put(mine, payload)
            _got(mine)
    seconds = time.perf_counter() - began
    peer.join()
    mine.close()
    other.close()
    return seconds


def own_work(setup: Setup, scheduler: str) -> tuple[float, float]:
    """Simulate in one process, without outputs and messages.

    Return the processor times (s) of the engine and of the scheduler.
    """
    kind = Runtime if setup.batsim is None else BatsimRuntime
    transport = InProcessTransport(kind(make_policy(scheduler)))
    times = simulate(setup, transport, clock=time.process_time).times
    return times.total - times.scheduler, times.scheduler


def coding(notices: list[Notice], replies: list[bytes], dialect: str) -> float:
    """Return the processor time (s) of encoding and decoding all messages.

    This is done in one process, without sockets.
    """
    talk = CODECS[dialect]
    decoded = [talk.decode_reply(frame, notice) for frame, notice in zip(replies, notices, strict=True)]
    began = time.process_time()
    for seq, (notice, reply) in enumerate(zip(notices, decoded, strict=True), 1):
        talk.decode_notice(talk.encode_notice(notice), seq)
        talk.decode_reply(talk.encode_reply(reply), notice)
    return time.process_time() - began


def _peer_of_sockets(ours: bool, endpoint: str, trips: int) -> None:
    """Act as the scheduler: send HELLO and answer each message.

    The process uses our REQ socket (``ours``) or pyzmq's.
    """
    send: Callable[[bytes], Any]
    if ours:
        connection = ZmtpConnection(endpoint)
        connection.connect(time.monotonic() + 10)
        send, receive = connection.send, connection.receive
    else:
        socket = zmq.Context().socket(zmq.REQ)
        socket.connect(endpoint)
        send, receive = socket.send, socket.recv
    send(b"hello")
    for _ in range(trips):
        receive()
        send(REPLY)
    receive()


def bare(ours: bool, endpoint: str, trips: int) -> float:
    """Return the mean time (s) of a message round trip between two minimal processes.

    Both processes use our sockets (``ours``) or pyzmq's.
    """
    with contextlib.ExitStack() as stack:
        if ours:
            listener = Listener(endpoint)
            stack.callback(listener.close)
            address = listener.endpoint
        else:
            context = stack.enter_context(zmq.Context())
            router = stack.enter_context(context.socket(zmq.ROUTER))
            router.bind(endpoint)
            address = router.getsockopt_string(zmq.LAST_ENDPOINT)
        peer = multiprocessing.get_context("spawn").Process(target=_peer_of_sockets, args=(ours, address, trips))
        peer.start()
        if ours:
            while (came := listener.message()) is None:
                listener.look(time.monotonic(), 0.1)
            connection, hello = came
            listener.release(connection)
            stack.callback(connection.close)
            connection.serve(hello.parts[:-1])
            began = time.perf_counter()
            for _ in range(trips):
                connection.send_frame(NOTICE)
                while connection.frame(0) is None:
                    pass
            seconds = time.perf_counter() - began
            connection.send_frame(b"")
        else:
            route = router.recv_multipart()[:-1]
            began = time.perf_counter()
            for _ in range(trips):
                router.send_multipart([*route, NOTICE])
                router.recv_multipart()
            seconds = time.perf_counter() - began
            router.send_multipart([*route, b""])
        peer.join()
    return seconds / trips


def compare_sockets(trips: int, repeat: int) -> None:
    """Print the round-trip times of our sockets and of pyzmq's, and their ratio."""
    print(f"{trips:,} round trips of {len(NOTICE)} and {len(REPLY)} bytes, {repeat} pairs in turn, us each")
    for transport in ("ipc", "tcp"):
        pairs = []
        for _ in range(repeat):
            with tempfile.TemporaryDirectory() as name:
                endpoints = [f"ipc://{name}/{one}" if transport == "ipc" else "tcp://127.0.0.1:*" for one in "ab"]
                pairs.append((1e6 * bare(False, endpoints[0], trips), 1e6 * bare(True, endpoints[1], trips)))
        theirs, ours = map(statistics.median, zip(*pairs, strict=True))
        ratio = statistics.median(own / other for other, own in pairs)
        print(
            f"{transport}: pyzmq {theirs:.0f}, ours {ours:.0f}, ratio {ratio:.2f} (median of the pairs' ratios), "
            f"load of the machine {os.getloadavg()[0]:.1f}"
        )


def command(arguments: argparse.Namespace, endpoint: str | None, folder: Path) -> tuple[float, dict[str, float]]:
    """Run `pipistrelle run` and return its times.

    Returns the wall time (s), and the times (s) in the file of ``--timings``, by name.
    """
    timings = folder / "timings.json"
    words = [sys.executable, "-m", "pipistrelle.cli", "run", "-w", arguments.log, "-p", arguments.platform]
    words += [
        "--dialect",
        arguments.dialect,
        "--scheduler",
        arguments.scheduler,
        "--timings",
        str(timings),
        "-o",
        str(folder / "out"),
    ]
    words += ["--endpoint", endpoint] if endpoint else []
    began = time.perf_counter()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began, json.loads(timings.read_text())


def print_floor(trips: int, loops: list[float], bares: list[float], parsed: list[float], works: list[float]) -> None:
    """Print the times (s) of the event loop and of the floor, and their ratio.

    The least possible work (the floor) has three parts: a bare exchange of messages, the JSON, and the work of both
    sides.
    """
    loop, bare_time, read, work = map(statistics.median, (loops, bares, parsed, works))
    floors = [one + other for one, other in zip(parsed, works, strict=True)]
    floor = statistics.median(floors)
    over = statistics.median(one / least for one, least in zip(loops, floors, strict=True))
    print(
        f"bare exchange over a Unix socket {1e6 * bare_time / trips:.0f} us, "
        f"JSON {1e6 * (read - bare_time) / trips:.0f} us, "
        f"work of both sides in one process {1e6 * work / trips:.0f} us: floor {1e6 * floor / trips:.0f} us"
    )
    print(
        f"event loop / bare exchange: {loop / bare_time:.2f}, floor / bare exchange: {floor / bare_time:.2f}, "
        f"event loop / floor: {over:.2f}, load of the machine {os.getloadavg()[0]:.1f}"
    )


def print_without_sockets(
    trips: int, bares: list[float], codings: list[float], works: list[tuple[float, float]]
) -> None:
    """Print the processor times (s) of a round trip's parts that need no socket.

    They are given relative to the bare exchange.
    """
    engines, deciding = zip(*works, strict=True)
    parts = [statistics.median(part) for part in (codings, engines, deciding)]
    told = ", ".join(
        f"{name} {1e6 * part / trips:.0f} us" for name, part in zip(("JSON", "engine", "scheduler"), parts, strict=True)
    )
    over = sum(parts) / statistics.median(bares)
    print(f"without any socket: {told}; their sum / bare exchange: {over:.2f}")


def main() -> None:
    """Run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("log", nargs="?")
    parser.add_argument("--platform", default="kth-sp2")
    parser.add_argument("--scheduler", default="easy")
    parser.add_argument("--transport", choices=("ipc", "tcp"), default="ipc")
    parser.add_argument("--dialect", choices=tuple(CODECS), default="native")
    parser.add_argument("--repeat", type=int)
    parser.add_argument("--sockets", action="store_true", help="compare our own ZMTP with pyzmq; no log is read")
    parser.add_argument("--trips", type=int, default=20_000)
    arguments = parser.parse_args()
    if arguments.sockets:
        compare_sockets(arguments.trips, arguments.repeat or 7)
        return
    if arguments.log is None:
        parser.error("name a log, or --sockets")
    batsim = BatsimOptions() if arguments.dialect == "batsim" else None
    setup = Setup.of(load_platform(arguments.platform), load_workload(arguments.log), batsim=batsim)
    talk = CODECS[arguments.dialect]
    notices, replies = conversation(setup, arguments.scheduler)
    frames = [talk.encode_reply(reply) for reply in replies]
    tcp = None if arguments.transport == "ipc" else "tcp://127.0.0.1:*"
    echoes, readings, loops, wholes, waits = [], [], [], [], []
    bares, parsed, works, codings = [], [], [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for _ in range(arguments.repeat or 3):
            # In turn, so that other load on the machine affects all of them.
            echoes.append(echo(tcp or f"ipc://{name}/echo", notices, frames, arguments.dialect))
            readings.append(echo(tcp or f"ipc://{name}/echo", notices, frames, arguments.dialect, with_json=True))
            bares.append(exchange(notices, frames, arguments.dialect))
            parsed.append(exchange(notices, frames, arguments.dialect, with_json=True))
            works.append(own_work(setup, arguments.scheduler))
            codings.append(coding(notices, frames, arguments.dialect))
            whole, own = command(arguments, tcp, folder)
            wholes.append(whole)
            loops.append(own["wall_time"])
            waits.append(own["waiting_for_scheduler"])
            print(
                f"  echo {echoes[-1]:.2f} s, with JSON {readings[-1]:.2f} s, "
                f"loop {loops[-1]:.2f} s, whole command {wholes[-1]:.2f} s"
            )
    base, reading = statistics.median(echoes), statistics.median(readings)
    trips = len(notices)
    notice_bytes = sum(len(talk.encode_notice(notice)) for notice in notices) / trips
    print(f"{trips:,} round trips over {arguments.transport}, median bare echo {1e6 * base / trips:.0f} us each")
    print(f"mean payload: notice {notice_bytes:.0f} B, reply {sum(map(len, frames)) / trips:.0f} B")
    print(f"event loop: {1e6 * statistics.median(loops) / trips:.1f} us a round trip")
    print(f"event loop    / echo: {statistics.median(loops) / base:.2f}")
    print(f"event loop    / echo that reads and writes the JSON: {statistics.median(loops) / reading:.2f}")
    print(f"whole command / echo: {statistics.median(wholes) / base:.2f}")
    server = statistics.median(loop - wait for loop, wait in zip(loops, waits, strict=True))
    print(
        f"of the loop, in echoes: transport 1, JSON {reading / base - 1:.2f}, "
        f"server's own work {server / base:.2f} (engine, outputs, writing to the socket), "
        f"waiting for the scheduler {statistics.median(waits) / base:.2f}"
    )
    print_floor(trips, loops, bares, parsed, list(map(sum, works)))
    print_without_sockets(trips, bares, codings, works)


if __name__ == "__main__":
    started(main)
