"""How much a run costs beyond the bare round trips that it consists of.

Simulates a log with server and scheduler as two processes, and replays the very same payload sizes between two bare
Python processes on the same kind of sockets (ROUTER and REQ), alternately and in the same run.  Prints

    wall time of the run / wall time of the bare echo of its round trips

once for the event loop (first notice to last) and once for the whole command (start of Python, reading of the log,
start of the scheduler, outputs), and where the server's share of the time goes.

    python benchmarks/wire.py LOG.swf.gz [--platform kth-sp2] [--scheduler easy] [--transport ipc] [--repeat 3]
"""

import argparse
import json
import multiprocessing
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import zmq

from pipistrelle.protocol import codec
from pipistrelle.protocol.messages import HelloData, Notice, Reply, WelcomeData
from pipistrelle.schedulers.registry import make_policy
from pipistrelle.schedulers.runtime import Runtime
from pipistrelle.server.simulation import Setup, simulate
from pipistrelle.server.transport import InProcessTransport
from pipistrelle.studies.inputs import load_platform, load_workload


class _Weighing:
    """An in-process transport that notes the size of every frame."""

    def __init__(self, inner: InProcessTransport) -> None:
        self._inner = inner
        self.sizes: list[tuple[int, int]] = []
        self._notice_bytes = 0

    def greet(self, run_id: str, server: str) -> tuple[HelloData, WelcomeData]:
        return self._inner.greet(run_id, server)

    def send(self, notice: Notice) -> None:
        self._notice_bytes = len(codec.encode(notice))
        self._inner.send(notice)

    def receive(self) -> Reply:
        reply = self._inner.receive()
        self.sizes.append((self._notice_bytes, len(codec.encode(reply))))
        return reply

    def farewell(self, notice: Notice) -> None:
        self._inner.farewell(notice)

    def close(self) -> None:
        self._inner.close()


def frame_sizes(setup: Setup, scheduler: str) -> list[tuple[int, int]]:
    """Return the bytes of each notice and reply of the run."""
    transport = _Weighing(InProcessTransport(Runtime(make_policy(scheduler))))
    simulate(setup, transport, clock=time.perf_counter)
    return transport.sizes


def _echo_peer(endpoint: str, sizes: list[int]) -> None:
    socket = zmq.Context().socket(zmq.REQ)
    socket.connect(endpoint)
    replies = [b"x" * size for size in sizes]
    socket.send(b"hello")
    for reply in replies:
        socket.recv()
        socket.send(reply)
    socket.recv()


def echo(endpoint: str, sizes: list[tuple[int, int]]) -> float:
    """Return the seconds that two bare processes take for round trips of these sizes."""
    context = zmq.Context()
    socket = context.socket(zmq.ROUTER)
    socket.bind(endpoint)
    address = socket.getsockopt_string(zmq.LAST_ENDPOINT)
    peer = multiprocessing.get_context("spawn").Process(target=_echo_peer, args=(address, [size for _, size in sizes]))
    peer.start()
    route = socket.recv_multipart()[:-1]
    payloads = [b"x" * size for size, _ in sizes]
    began = time.perf_counter()
    for payload in payloads:
        socket.send_multipart([*route, payload])
        socket.recv_multipart()
    seconds = time.perf_counter() - began
    socket.send_multipart([*route, b""])
    peer.join()
    socket.close()
    context.term()
    return seconds


def command(arguments: argparse.Namespace, endpoint: str | None, folder: Path) -> tuple[float, dict[str, float]]:
    """Return the seconds of a whole `pipistrelle run` and its own wall-clock figures."""
    timings = folder / "timings.json"
    words = [sys.executable, "-m", "pipistrelle.cli", "run", "-w", arguments.log, "-p", arguments.platform]
    words += ["--scheduler", arguments.scheduler, "--timings", str(timings), "-o", str(folder / "out")]
    words += ["--endpoint", endpoint] if endpoint else []
    began = time.perf_counter()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began, json.loads(timings.read_text())


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("log")
    parser.add_argument("--platform", default="kth-sp2")
    parser.add_argument("--scheduler", default="easy")
    parser.add_argument("--transport", choices=("ipc", "tcp"), default="ipc")
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    setup = Setup.of(load_platform(arguments.platform), load_workload(arguments.log))
    sizes = frame_sizes(setup, arguments.scheduler)
    echoes, loops, wholes, waits = [], [], [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for _ in range(arguments.repeat):
            echoes.append(echo(f"ipc://{name}/echo" if arguments.transport == "ipc" else "tcp://127.0.0.1:*", sizes))
            whole, own = command(arguments, None if arguments.transport == "ipc" else "tcp://127.0.0.1:*", folder)
            wholes.append(whole)
            loops.append(own["wall_time"])
            waits.append(own["waiting_for_scheduler"])
            # A figure that is off by other programs' work is off in both.
            print(f"  echo {echoes[-1]:.2f} s, loop {loops[-1]:.2f} s, whole command {wholes[-1]:.2f} s")
    base = statistics.median(echoes)
    trips = len(sizes)
    print(f"{trips:,} round trips over {arguments.transport}, median bare echo {1e6 * base / trips:.0f} us each")
    print(
        f"mean payload: notice {sum(a for a, _ in sizes) / trips:.0f} B, reply {sum(b for _, b in sizes) / trips:.0f} B"
    )
    print(f"event loop    / echo: {statistics.median(loops) / base:.2f}")
    print(f"whole command / echo: {statistics.median(wholes) / base:.2f}")
    server = statistics.median(loop - wait for loop, wait in zip(loops, waits, strict=True))
    beyond = statistics.median(waits) - base
    print(f"beyond the echo: server {server / base:.2f} (engine, outputs), transport and scheduler {beyond / base:.2f}")


if __name__ == "__main__":
    main()
