"""Measure how long ``import pipistrelle`` takes, relative to ``import numpy``.

python benchmarks/import_time.py [ROUNDS]
"""

import os
import subprocess
import sys
from statistics import median

#: the longest time on an idle machine (s)
MOST_S = 0.15
_TIMED = "import time; began = time.perf_counter(); {}; print(time.perf_counter() - began)"
_CASES = {
    "import numpy": "import numpy",
    "import pipistrelle": "import pipistrelle",
    "the first use of pipistrelle.run": "import pipistrelle; pipistrelle.run",
}


def seconds(code: str) -> float:
    """Return the wall-clock time (s) of code in a new process.

    Python's start-up is not counted.
    """
    words = [sys.executable, "-c", _TIMED.format(code)]
    return float(subprocess.run(words, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    """Print the times and their median ratios.

    Fail if ``import pipistrelle`` takes too long.
    """
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    found: dict[str, list[float]] = {name: [] for name in _CASES}
    for _ in range(rounds):
        for name, code in _CASES.items():
            found[name].append(seconds(code))
    numpy = found["import numpy"]
    for name, times in found.items():
        ratio = median(one / base for one, base in zip(times, numpy, strict=True))
        print(f"{name}: {1e3 * min(times):.1f} ms (median {1e3 * median(times):.1f} ms), {ratio:.3f} of import numpy")
    load = os.getloadavg()[0]
    print(f"import pipistrelle may take {1e3 * MOST_S:.0f} ms; load {load:.1f} on {os.cpu_count()} processors")
    if min(found["import pipistrelle"]) > MOST_S:
        raise SystemExit("import pipistrelle takes too long")


if __name__ == "__main__":
    main()
