"""Starts jobs as they come; at 50 s it kills all that it has started, the first of which is over by itself then."""

from pipistrelle.schedulers.orders.fixed import Fcfs
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.view import View


class Killer:
    """First come, first served, until it kills."""

    name = "killer"
    order = Fcfs()

    def __init__(self) -> None:
        self.started: list[SchedulerJob] = []
        self.killed = False

    def decide(self, view: View) -> None:
        """Start jobs in their order; at 50 s kill what runs, or did when it was started."""
        if view.now == 0.0:
            view.call_me_later(50.0, "kill")
        elif view.now == 50.0 and not self.killed:
            self.killed = True
            view.kill(*self.started, why="it is 50 s")
            return
        while (first := view.waiting.first) is not None and first.size <= len(view.open_to(first)):
            view.start(first)
            self.started.append(first)
