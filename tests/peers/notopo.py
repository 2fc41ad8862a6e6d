"""pybatsim's EASY without a topology, as it ships, made to run: `pybatsim notopo.py`.

Its constructor leaves out its base class's, so that it fails at the end of the workload, and it thinks for 5 s.
"""

from batsim.batsim import BatsimScheduler
from schedulers.unMaintained.easyBackfillNotopo import EasyBackfillNotopo


class Notopo(EasyBackfillNotopo):
    """The policy as it is."""

    def __init__(self, options):
        super().__init__(options)
        BatsimScheduler.__init__(self, options)

    def onAfterBatsimInit(self):  # noqa: N802 - pybatsim's name
        """Think for no time."""
        super().onAfterBatsimInit()
        self.sched_delay = 0.0
