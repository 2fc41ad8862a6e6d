"""Select the jobs of a workload that ``pipistrelle workload filter`` keeps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from pipistrelle.models.workloads import FIELDS
from pipistrelle.models.workloads.options import Range
from pipistrelle.protocol.base.errors import InputError, did_you_mean, quoted
from pipistrelle.traces.logs.labels import named_column
from pipistrelle.traces.workload import Workload, label_column

#: maximum number of values that an error lists
_MOST_NAMED: Final = 20


@dataclass(frozen=True, slots=True)
class Conditions:
    """Conditions for keeping a job; a job must meet all of them.

    Attributes:
        begin, end: a job must be submitted at ``begin`` or later, and before ``end`` (s).
        size, runtime, walltime: ranges of size (units), run time and requested time (s), bounds included.
        fields: {field in `FIELDS`, such as the user: accepted values}. A value is the text in the log, or the
            name that the log's header gives to this text, such as the name of a queue number.
    """

    begin: float = -np.inf
    end: float = np.inf
    size: Range | None = None
    runtime: Range | None = None
    walltime: Range | None = None
    fields: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def mask(self, workload: Workload) -> NDArray[np.bool_]:
        """Return whether each job meets all conditions, shape (jobs,).

        Raise InputError if a condition is wrong.
        """
        mask = (workload.submit >= self.begin) & (workload.submit < self.end)
        ranges = ((workload.size, self.size), (workload.runtime, self.runtime), (workload.walltime, self.walltime))
        for values, bounds in ranges:
            if bounds is not None:
                mask &= (values >= bounds.low) & (values <= bounds.high)
        for name, wanted in self.fields.items():
            mask &= _having(workload, name, wanted)
        result: NDArray[np.bool_] = mask
        return result


def _having(workload: Workload, name: str, wanted: Sequence[str]) -> NDArray[np.bool_]:
    texts, named = label_column(workload, name), named_column(workload, name)
    if texts is None or named is None:
        known = [other for other in FIELDS if label_column(workload, other) is not None]
        raise InputError(f"the log does not give a job's {name}", where=workload.source, hint=did_you_mean("", known))
    present = {*texts, *named} - {""}
    for value in wanted:
        if value not in present:
            many = len(present) > _MOST_NAMED
            hint = f"'pipistrelle workload describe' shows the busiest of the {len(set(texts)):,}."
            raise InputError(
                f"no job has the {name} {quoted(value)}",
                where=workload.source,
                hint=hint if many else did_you_mean(value, sorted(present)),
            )
    chosen = set(wanted)
    rows = [text in chosen or called in chosen for text, called in zip(texts, named, strict=True)]
    return np.array(rows, dtype=np.bool_)
