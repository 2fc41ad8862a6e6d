"""Measure how long ``pipistrelle --help`` takes, relative to importing click.

python benchmarks/first_help.py [ROUNDS]
"""

import os
import subprocess
import sys
import time

MOST = 2.5


def seconds(words: list[str], rounds: int) -> float:
    """Return the shortest wall-clock time (s) of a command in ``rounds`` repetitions."""
    found = []
    for _ in range(rounds):
        began = time.perf_counter()
        subprocess.run(words, stdout=subprocess.DEVNULL, check=True)
        found.append(time.perf_counter() - began)
    return min(found)


def main() -> None:
    """Print the times of ``--help`` and of importing click.

    Also print their ratio and the system load.
    """
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    click = seconds([sys.executable, "-c", "import click"], rounds)
    shown = seconds([sys.executable, "-m", "pipistrelle", "--help"], rounds)
    load = os.getloadavg()[0]
    print(f"import click {1e3 * click:.0f} ms, pipistrelle --help {1e3 * shown:.0f} ms", end=", ")
    print(f"ratio {shown / click:.2f} (at most {MOST}), load {load:.1f} on {os.cpu_count()} processors")


if __name__ == "__main__":
    main()
