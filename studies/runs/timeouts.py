"""How long a server waits for its scheduler, unless it is told otherwise."""

from typing import Final

#: in seconds of the wall clock
HELLO_TIMEOUT: Final = 60.0
DECISION_TIMEOUT: Final = 300.0
