"""Start a benchmark that reads files: errors in them become one line, not a traceback.

if __name__ == "__main__":
    started(main)
"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from pipistrelle.protocol.base.errors import PipistrelleError


def started(main: Callable[[], None]) -> None:
    """Run a benchmark; SystemExit, with the message, if the package rejects its input.

    A command of the package that fails in a benchmark has already printed the reason.
    """
    try:
        main()
    except PipistrelleError as error:
        raise SystemExit(f"{Path(sys.argv[0]).name}: {error}") from None
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"{Path(sys.argv[0]).name}: a run ended with exit code {error.returncode}") from None
