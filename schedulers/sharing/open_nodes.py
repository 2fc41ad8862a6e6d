"""The nodes that jobs share, as backfilling rules use them during decisions."""

from itertools import compress

from pipistrelle.platforms.resources.shape import Takes
from pipistrelle.platforms.resources.shared_nodes import Amounts
from pipistrelle.schedulers.policy.interfaces import Placement
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.shared_view import SharedView
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.sharing.candidates import NodeCandidates
from pipistrelle.schedulers.sharing.placing import NodePlacer, placer_of


class OpenNodes:
    """The waiting jobs and shared nodes of a view, for tests of which job fits now."""

    def __init__(self, view: View, placement: Placement) -> None:
        assert view.shared is not None
        self.view = view
        self.shared: SharedView = view.shared
        self.placer: NodePlacer = placer_of(placement, view)
        self.candidates = NodeCandidates(view)

    def pick(self, job: SchedulerJob, table: Amounts | None = None) -> Takes | None:
        """Return the tasks and GPUs per node with which a job could start now.

        Return None if it does not fit.

        Args:
            table: the amounts that the job may use, as in `SharedView.table`; None: all that is free.
        """
        known = self.candidates
        if self.placer.is_steady and known.is_unfit(job):
            return None
        found = self.placer.place(job, self.shared.open(self.view.shut(job)), table)
        if found is None and table is None:
            known.does_not_fit(job)
        return found

    def start_in_order(self) -> SchedulerJob | None:
        """Start jobs in queue order while they fit.

        Return the first job that does not fit; None if the queue is empty.
        """
        waiting = self.view.waiting
        while (first := waiting.first) is not None:
            takes = self.pick(first)
            if takes is None:
                break
            self.start(first, takes)
        return first

    def start(self, job: SchedulerJob, takes: Takes, why: str | None = None) -> None:
        """Start a job now with these tasks and GPUs per node."""
        self.view.start(job, takes, why)
        self.candidates.drop(job)

    def could_fit(self, jobs: list[SchedulerJob]) -> list[SchedulerJob]:
        """Return the jobs that might fit now; all others certainly do not.

        A job might fit if, for each single resource, some node has enough free for one task.
        """
        return list(compress(jobs, self.shared.may_fit(jobs).tolist())) if jobs else jobs


def opened(known: OpenNodes | None, view: View, placement: Placement) -> OpenNodes:
    """Return the `OpenNodes` of a view: ``known`` if it is the view's, else a new one.

    Also tell the placement which jobs have just arrived.
    """
    found = known if known is not None and known.view is view else OpenNodes(view, placement)
    for job in view.arrivals:
        found.placer.saw(job)
    return found
