"""pybatsim's FCFS that lets idle machines sleep, as it ships, made to run: `pybatsim sleeper.py`.

It expects numbers of power states, while Batsim 4 sends them as texts, and one machine an event.
"""

from schedulers.fcfsSchedSleep import FcfsSchedSleep


class Sleeper(FcfsSchedSleep):
    """The policy as it is."""

    def onMachinePStateChanged(self, machines, new_pstate):  # noqa: N802 - pybatsim's name
        """Pass each machine on, with a number."""
        first, last = machines
        for machine in range(first, last + 1):
            super().onMachinePStateChanged((machine, machine), int(new_pstate))
