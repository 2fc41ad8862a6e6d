"""How a benchmark that is given files begins: what is wrong with them is one line, not a traceback.

if __name__ == "__main__":
    started(main)
"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from pipistrelle.protocol.base.errors import PipistrelleError


def started(main: Callable[[], None]) -> None:
    """Let a benchmark do its work; SystemExit, with the message, where the package refuses what it is given.

    A command of the package that a benchmark runs, and that fails, has said why itself.
    """
    try:
        main()
    except PipistrelleError as error:
        raise SystemExit(f"{Path(sys.argv[0]).name}: {error}") from None
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"{Path(sys.argv[0]).name}: a run ended with exit code {error.returncode}") from None
