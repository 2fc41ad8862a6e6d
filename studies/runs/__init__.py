"""One run from one description of it: `pipistrelle.studies.runs.spec.RunSpec` and what carries it out."""

from typing import Final

#: how long a server waits for its scheduler, and for each of its replies, in seconds of the wall clock
HELLO_TIMEOUT: Final = 60.0
DECISION_TIMEOUT: Final = 300.0
