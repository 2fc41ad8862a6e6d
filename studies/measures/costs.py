"""Costs of a trial.

They are the money for node-hours and for the energy that nodes use in each state.
"""

from collections.abc import Mapping
from math import inf, isfinite
from typing import Annotated, Final

from msgspec import Meta, Struct

from pipistrelle.protocol.base.errors import did_you_mean, printable
from pipistrelle.protocol.base.lengths import length_text
from pipistrelle.server.setup.setup import Setup
from pipistrelle.studies.errors import StudyError

#: states of a node, as in the summary's ``node_seconds``
NODE_STATES: Final = ("busy", "idle", "down", "maintenance")
_HOUR: Final = 3600.0
#: joules per kilowatt-hour
_KWH: Final = 3.6e6
#: time before the first job that is worth a warning, as a share of the time to the last submission
_EARLY: Final = 0.01

Price = Annotated[float, Meta(ge=0)]


class Costs(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """Prices of a machine's time and energy, in any currency.

    Attributes:
        node_hour: money per hour of one node, in any state; None: no costs of nodes.
        watts: {state: power of one node (W)}; a state without power draws none.
        kwh: money per kilowatt-hour; None: no costs of energy.
    """

    node_hour: Price | None = None
    watts: dict[str, Price] = {}
    kwh: Price | None = None

    def check(self, where: str) -> None:
        """Raise StudyError if a price or ``watts`` is missing, or a state is unknown."""
        for state in self.watts:
            if state not in NODE_STATES:
                raise StudyError(
                    f"a node has no state '{printable(state)}'",
                    where=f"{where}.watts",
                    expected=", ".join(NODE_STATES),
                    hint=did_you_mean(state, list(NODE_STATES)),
                )
        if self.node_hour is None and not self.watts:
            raise StudyError("there is no price", where=where, expected="node-hour, watts or both")
        if self.kwh is not None and not self.watts:
            raise StudyError("a price of energy needs the power of nodes", where=f"{where}.kwh", expected="watts")

    @property
    def names(self) -> set[str]:
        """The names of the metrics that these costs add to a trial."""
        return set(self.of(dict.fromkeys(("all", *NODE_STATES), 0.0)))

    def of(self, node_seconds: Mapping[str, float]) -> dict[str, float]:
        """Return the cost metrics of a trial.

        Its nodes spent ``node_seconds`` in each state. ``cost`` is the money for all node-hours of the trial, and
        ``cost_busy`` etc. are the money for the node-hours in one state. ``energy`` and ``energy_busy`` etc. are in
        kWh, and ``energy_cost`` is money. A shared node counts as busy in proportion to its units that jobs hold.

        Args:
            node_seconds: ``all``, ``busy``, ``idle``, ``down`` and ``maintenance``, in node-seconds.
        """
        found: dict[str, float] = {}
        if self.node_hour is not None:
            found["cost"] = self.node_hour * node_seconds["all"] / _HOUR
            found |= {f"cost_{state}": self.node_hour * node_seconds[state] / _HOUR for state in NODE_STATES}
        if self.watts:
            parts = {state: watts * node_seconds[state] / _KWH for state, watts in self.watts.items()}
            found["energy"] = sum(parts.values())
            found |= {f"energy_{state}": energy for state, energy in parts.items()}
            if self.kwh is not None:
                found["energy_cost"] = self.kwh * found["energy"]
        return found


def costs_remark(setup: Setup) -> str | None:
    """Return a warning if nodes cost much before the first job of a run; None if not."""
    ends = [(float(one.submit[0]), float(one.submit[-1])) for one in setup.workloads.values() if len(one)]
    first = min((begin for begin, _ in ends), default=inf)
    span = setup.until if isfinite(setup.until) else max((end for _, end in ends), default=0.0)
    if not _EARLY * span < first < inf:
        return None
    names = ", ".join(one.name for one in setup.workloads.values())
    return (
        f"costs include the time before the first job of {names}: {length_text(first)} of idle nodes. To leave it out, "
        "set from in [run], or rebase = true in a filter step"
    )
