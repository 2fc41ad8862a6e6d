"""Measure what the live views cost.

The views are the terminal view (--live) and the web page (--page). Simulates a log under EASY in turn without a view,
with a terminal view that another process reads, and with a page that one viewer follows. For each view it prints

    time with the view / time without

for wall time and for processor time of this process, including the page's thread. Ratios are medians over the
repetitions. On a busy machine, processor time is more reliable than wall time. The exit code is 1 if the ratio of
processor times exceeds the limit.

    python benchmarks/live.py LOG.swf.gz [--platform kth-sp2] [--over-ipc] [--repeat 5] [--limit 1.10]
"""

import argparse
import gc
import os
import pty
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from started import started

from pipistrelle.cli.live.screen import TerminalView
from pipistrelle.reports.live.page_view import PageView
from pipistrelle.reports.live.watch import LiveView, LiveWatch
from pipistrelle.runs.description.setup import load_setup
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.connection import InProcess, WithChild
from pipistrelle.runs.execution.run import RunOptions, run
from pipistrelle.server.setup.setup import Setup

VIEWER = """
import sys, urllib.request
with urllib.request.urlopen(sys.argv[1] + "events") as events:
    print(sum(line.startswith(b"data: ") for line in events))
"""


@contextmanager
def on_terminal(setup: Setup) -> Iterator[LiveView]:
    """Yield a live view on a pseudo-terminal of 120 x 40 characters.

    Another process reads the terminal.
    """
    reader, terminal = pty.openpty()
    os.environ |= {"TERM": "xterm-256color", "COLUMNS": "120", "LINES": "40"}
    with (
        subprocess.Popen(["cat"], stdin=reader, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as cat,
        os.fdopen(terminal, "w", encoding="utf-8", buffering=1 << 16) as stream,
    ):
        os.close(reader)
        view = TerminalView(setup, stream)
        yield view
        view.close()
        cat.kill()


@contextmanager
def as_page(setup: Setup) -> Iterator[LiveView]:
    """Yield a live page that a viewer process follows.

    Afterwards, check that the viewer received updates.
    """
    with PageView(setup, 0) as view:
        viewer = subprocess.Popen([sys.executable, "-c", VIEWER, view.address], stdout=subprocess.PIPE)
        time.sleep(0.5)  # time for the viewer to connect
        yield view
    states = int(viewer.communicate()[0])
    assert states > 1, "the viewer has seen nothing"


@contextmanager
def nowhere(setup: Setup) -> Iterator[None]:
    """Yield None, for a run without a view."""
    yield


def main() -> None:
    """Run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("log")
    parser.add_argument("--platform", default="kth-sp2")
    parser.add_argument("--over-ipc", action="store_true", help="run the scheduler in its own process")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--limit", type=float, default=1.10)
    wanted = parser.parse_args()
    spec = RunSpec(workload=(wanted.log,), platform=wanted.platform)
    setup = load_setup(spec)
    ways = {"without": nowhere, "--live": on_terminal, "--page": as_page}
    ratios: dict[str, list[tuple[float, float]]] = {name: [] for name in ways if name != "without"}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(wanted.repeat):
            base = (0.0, 0.0)
            for name, way in ways.items():
                gc.collect()
                with way(setup) as view:
                    watch = None if view is None else LiveWatch(setup, [view])
                    begun = time.process_time()
                    result = run(
                        spec,
                        RunOptions(
                            connection=WithChild() if wanted.over_ipc else InProcess(),
                            out=Path(folder) / name,
                            setup=setup,
                            observers=[] if watch is None else [watch],
                            look=watch,
                        ),
                    )
                    took = (result.times.total, time.process_time() - begun)
                if name == "without":
                    base = took
                else:
                    ratios[name].append((took[0] / base[0], took[1] / base[1]))
                print(f"  {name}: {took[0]:.2f} s, {took[1]:.2f} s of processor time", flush=True)
    slow = False
    for name, found in ratios.items():
        wall, processor = (statistics.median(column) for column in zip(*found, strict=True))
        slow |= processor > wanted.limit
        print(f"{name} / without: {wall:.3f} of the wall clock, {processor:.3f} of processor time")
    raise SystemExit(slow)


if __name__ == "__main__":
    started(main)
