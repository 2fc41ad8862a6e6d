"""Run a benchmark that reads files, and print errors in them as one line.

A benchmark ends with:

    if __name__ == "__main__":
        started(main)
"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from pipistrelle.protocol.base.errors import PipistrelleError


def started(main: Callable[[], None]) -> None:
    """Call ``main``; exit with a one-line message if the package rejects a file.

    If a ``pipistrelle`` command fails inside the benchmark, it has already printed the reason. The message then has
    only its exit code.
    """
    try:
        main()
    except PipistrelleError as error:
        raise SystemExit(f"{Path(sys.argv[0]).name}: {error}") from None
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"{Path(sys.argv[0]).name}: a run ended with exit code {error.returncode}") from None
