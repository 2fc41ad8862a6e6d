"""The table ``metrics`` of a study: what to measure in each trial."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from pipistrelle.studies.errors import StudyError
from pipistrelle.studies.measures.costs import Costs
from pipistrelle.studies.measures.distributions import Distribution
from pipistrelle.studies.measures.job_classes import check_labels
from pipistrelle.studies.measures.window import NOTHING, Leave


class Measures(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """The metrics of each trial.

    Attributes:
        warm_up, drain: what to leave out at the start and the end of a run: a time such as ``30d``, or ``1000 jobs``.
        sizes: lower bounds of size classes, ascending; each class gets its own means.
        by: {label of jobs, such as ``queue``: its values that get their own means}. The values are ``all``, a number N
            for the N values with the most jobs, or a list of values.
        costs: prices of node-hours and energy; None: no costs.
        distributions: quantities of jobs, such as their waits, whose distribution is kept for plots.
    """

    warm_up: str | None = None
    drain: str | None = None
    sizes: tuple[Annotated[int, Meta(ge=1)], ...] = ()
    by: dict[str, Annotated[int, Meta(ge=1)] | str | tuple[str | int, ...]] = {}
    costs: Costs | None = None
    distributions: tuple[Distribution, ...] = ()

    @property
    def left_out(self) -> tuple[Leave, Leave]:
        """The parts of a run left out at its start and end.

        Raise WindowError if one is malformed.
        """
        warm_up = NOTHING if self.warm_up is None else Leave.parse(self.warm_up, "metrics.warm-up")
        return warm_up, NOTHING if self.drain is None else Leave.parse(self.drain, "metrics.drain")

    def check(self, where: str) -> None:
        """Raise StudyError if a measure is unknown or has no effect.

        Only what can be checked without a workload is checked.
        """
        for one, name in zip(self.left_out, ("warm-up", "drain"), strict=True):
            if one == NOTHING and getattr(self, name.replace("-", "_")) is not None:
                raise StudyError("nothing is left out", where=f"{where}.{name}", hint="Remove the line.")
        if list(self.sizes) != sorted(set(self.sizes)):
            raise StudyError("size bounds must ascend", where=f"{where}.sizes", found=str(list(self.sizes)))
        check_labels(self.by, f"{where}.by")
        if self.costs is not None:
            self.costs.check(f"{where}.costs")

    def plain(self) -> dict[str, Any]:
        """Return the measures as plain values, without unused tables."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return {name: value for name, value in plain.items() if value or name not in ("by", "costs", "distributions")}
