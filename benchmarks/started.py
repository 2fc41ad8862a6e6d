"""Run a benchmark that reads files, and print errors in these files as one line without a traceback.

if __name__ == "__main__":
    started(main)
"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from pipistrelle.protocol.base.errors import PipistrelleError


def started(main: Callable[[], None]) -> None:
    """Run a benchmark; raise SystemExit with a message if the package rejects its input.

    If a command of the package failed in the benchmark, it has already printed the reason.
    """
    try:
        main()
    except PipistrelleError as error:
        raise SystemExit(f"{Path(sys.argv[0]).name}: {error}") from None
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"{Path(sys.argv[0]).name}: a run ended with exit code {error.returncode}") from None
