"""A scheduler that kills all its started jobs at 50 s, although the first job ends by itself at that time."""

from pipistrelle.schedulers.orders.fixed import Fcfs
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.view import View


class Killer:
    """Starts jobs first come, first served, and kills them all at 50 s."""

    name = "killer"
    order = Fcfs()

    def __init__(self) -> None:
        self.started: list[SchedulerJob] = []
        self.killed = False

    def decide(self, view: View) -> None:
        """Start jobs in order of submission; at 50 s kill all jobs started so far."""
        if view.now == 0.0:
            view.call_me_later(50.0, "kill")
        elif view.now == 50.0 and not self.killed:
            self.killed = True
            view.kill(*self.started, why="it is 50 s")
            return
        while (first := view.waiting.first) is not None and first.size <= len(view.open_to(first)):
            view.start(first)
            self.started.append(first)
