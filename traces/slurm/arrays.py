"""Parse indices of job arrays as sbatch accepts them: ``0-7%2``, ``1,3,5-9:2``."""

import re
from typing import Final

from pipistrelle.protocol.base.errors import quoted
from pipistrelle.traces.errors import TraceError

#: the most tasks of an array, as in Slurm
MOST_TASKS: Final = 4_000_001
#: most indices of one list, or of all arrays of a file of events
MOST_LISTED: Final = 250_000

_PART: Final = re.compile(r"(\d{1,7})(?:-(\d{1,7})(?::(\d{1,7}))?)?")
_LIMIT: Final = re.compile(r"%(\d{1,7})")


def array_indices(text: str, where: str) -> list[int]:
    """Return the indices of an array, ascending; TraceError if the text is malformed."""
    parts, mark, limit = text.partition("%")
    indices: set[int] = set()
    many = 0
    for part in parts.split(","):
        found = _PART.fullmatch(part)
        first = int(found[1]) if found else 1
        last, step = (int(found[2] or first), int(found[3] or 1)) if found else (0, 1)
        many += (last - first) // step + 1 if last >= first and step >= 1 else 0
        if (
            last < first
            or step < 1
            or last >= MOST_TASKS
            or many > MOST_LISTED
            or (mark and not _LIMIT.fullmatch(mark + limit))
        ):
            raise TraceError(
                "the indices of an array are malformed",
                where=where,
                expected="as 0-7, 1,3,5 or 0-15%4",
                found=quoted(text),
            )
        indices.update(range(first, last + 1, step))
    return sorted(indices)
