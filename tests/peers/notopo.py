"""pybatsim's EASY without a topology, unmodified except that it runs: `pybatsim notopo.py`.

Its constructor does not call its base class's, so it fails at the end of the workload, and it thinks for 5 s.
"""

from batsim.batsim import BatsimScheduler
from schedulers.unMaintained.easyBackfillNotopo import EasyBackfillNotopo


class Notopo(EasyBackfillNotopo):
    """The unmodified policy."""

    def __init__(self, options):
        super().__init__(options)
        BatsimScheduler.__init__(self, options)

    def onAfterBatsimInit(self):  # noqa: N802 - pybatsim's name
        """Set the thinking time to zero."""
        super().onAfterBatsimInit()
        self.sched_delay = 0.0
