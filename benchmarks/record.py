"""Measure what recording a session costs, and how fast the session is replayed.

Simulates a log over ipc with and without ``--record``, in turn, and replays the session to the same scheduler. Prints

    wall time of the recorded run / wall time of the plain run

and the speed of the replay relative to the plain run, as medians over the repetitions. Wall times cover only the event
loop, from the first notice to the last. The same ratios are printed for the processor time of server and scheduler,
including their start. Processor time is more reliable on a busy machine.

    python benchmarks/record.py LOG.swf.gz [--platform kth-sp2] [--scheduler easy] [--suffix .zst] [--repeat 5]
                                [--dialect native]
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from started import started

from pipistrelle.runs.description.setup import load_setup
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.connection import Connection, WithChild
from pipistrelle.runs.execution.run import RunOptions, run
from pipistrelle.runs.sessions.recording import Recorded
from pipistrelle.runs.sessions.replay import replay
from pipistrelle.runs.sessions.session_file import SessionReader
from pipistrelle.server.transport.in_process import Transport


@dataclass
class Timed:
    """A connection that records when the handshake with its scheduler ended.

    The measured event loop begins at that time.
    """

    connection: Connection
    greeted: float = 0.0

    @contextmanager
    def open(self, *arguments: Any) -> Iterator[Transport]:
        """Yield the transport to the scheduler."""
        with self.connection.open(*arguments) as transport:
            greet = transport.greet

            def timed(run_id: str, server: str) -> Any:
                found = greet(run_id, server)
                self.greeted = time.perf_counter()
                return found

            transport.greet = timed  # type: ignore[method-assign]
            yield transport


@contextmanager
def used() -> Iterator[list[float]]:
    """Yield a list for the processor time (s) of the ``with`` body.

    The time is appended to the list at the end of the body. The time is that of this process and its children.
    """
    found: list[float] = []
    before = sum(os.times()[:4])
    yield found
    found.append(sum(os.times()[:4]) - before)


def main() -> None:
    """Run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("log")
    parser.add_argument("--platform", default="kth-sp2")
    parser.add_argument("--scheduler", default="easy")
    parser.add_argument("--suffix", default=".zst", choices=["", ".zst", ".gz", ".xz"])
    parser.add_argument("--dialect", default="native", choices=["native", "batsim"])
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    spec = RunSpec(
        workload=(arguments.log,),
        platform=arguments.platform,
        scheduler=arguments.scheduler,
        dialect=arguments.dialect,
    )
    setup, child = load_setup(spec), WithChild()
    walls: tuple[list[float], list[float]] = ([], [])
    cpus: tuple[list[float], list[float]] = ([], [])
    with tempfile.TemporaryDirectory() as name:
        session = Path(name) / f"session.jsonl{arguments.suffix}"
        for _ in range(arguments.repeat):
            with used() as plain_cpu:
                times = run(spec, RunOptions(connection=child, out=Path(name) / "plain", setup=setup)).times
            with used() as recorded_cpu:
                recorded = run(
                    spec, RunOptions(connection=Recorded(child, session), out=Path(name) / "out", setup=setup)
                ).times
            timed = Timed(child)
            with used() as played_cpu:
                played = replay(SessionReader(session), timed, spec)
                took = time.perf_counter() - timed.greeted
            assert played.parting is None
            for figures, plain, other, replayed in (
                (walls, times.total, recorded.total, took),
                (cpus, plain_cpu[0], recorded_cpu[0], played_cpu[0]),
            ):
                figures[0].append(other / plain)
                figures[1].append(plain / replayed)
            print(
                f"  run {times.total:.2f} s, recorded {recorded.total:.2f} s, replayed in {took:.2f} s; "
                f"processor {plain_cpu[0]:.2f}, {recorded_cpu[0]:.2f}, {played_cpu[0]:.2f} s",
                flush=True,
            )
        print(f"{times.round_trips:,} round trips, session {session.stat().st_size / 1e6:.2f} MB")
    for name, (costs, speeds) in (("wall time", walls), ("processor time", cpus)):
        cost, speed = statistics.median(costs), statistics.median(speeds)
        print(f"{name}: recorded / plain {cost:.3f}, replay {speed:.2f} times as fast")


if __name__ == "__main__":
    started(main)
