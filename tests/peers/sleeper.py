"""pybatsim's FCFS that lets idle machines sleep, unmodified except that it runs: `pybatsim sleeper.py`.

It expects power states as numbers, while Batsim 4 sends them as texts, and one machine per event.
"""

from schedulers.fcfsSchedSleep import FcfsSchedSleep


class Sleeper(FcfsSchedSleep):
    """The unmodified policy."""

    def onMachinePStateChanged(self, machines, new_pstate):  # noqa: N802 - pybatsim's name
        """Pass each machine on, with a number."""
        first, last = machines
        for machine in range(first, last + 1):
            super().onMachinePStateChanged((machine, machine), int(new_pstate))
