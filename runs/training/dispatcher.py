"""A run that is driven decision by decision from outside: who starts next, of the jobs that wait."""

from collections.abc import Sequence
from itertools import islice

from pipistrelle.protocol.fields import package_version
from pipistrelle.protocol.messages import Reply
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.orders.fixed import Fcfs
from pipistrelle.schedulers.placement.lowest import LowestIds
from pipistrelle.schedulers.placement.pickers import picked
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.policy.order import Order
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.runtime.runtime import Runtime
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.outputs.metrics import Summary
from pipistrelle.server.setup.setup import Setup
from pipistrelle.server.simulation.simulate import Simulation
from pipistrelle.server.transport.in_process import InProcessTransport


class _Outside:
    """A policy that leaves all decisions to somebody else."""

    name = "agent"

    def __init__(self) -> None:
        self.order: Order = Fcfs()

    def decide(self, view: View) -> None:
        """Decide nothing."""


class Dispatcher:
    """Goes on with a run until somebody is to say which job starts; jobs get the free units with the lowest numbers.

    Parameters
    ----------
    setup
        the run.
    seen
        how many of the jobs that wait somebody looks at, first come first.
    observers
        told of all that happens.
    """

    def __init__(self, setup: Setup, seen: int, observers: Sequence[Observer] = ()) -> None:
        self._runtime = Runtime(_Outside(), package_version())
        self._transport = InProcessTransport(self._runtime)
        hello, welcome = self._transport.greet("", "")
        self._simulation = Simulation("", hello, welcome, setup, observers=observers)
        self._reply: Reply | None = None
        self._seen = seen
        self._placement = LowestIds()
        #: whether the run is over
        self.over = False
        self.wait()

    @property
    def view(self) -> View:
        """What is known of machine and queue."""
        view = self._runtime.view
        assert view is not None, "the run has begun"
        return view

    @property
    def waiting(self) -> list[SchedulerJob]:
        """The jobs that wait, first come first, as many as are seen."""
        return list(islice(self.view.waiting, self._seen))

    @property
    def has_choice(self) -> bool:
        """Whether one of them can start now."""
        return any(map(self.fits, self.waiting))

    def units_for(self, job: SchedulerJob) -> NodeSet | None:
        """Return the units on which a job can start now, None if there are too few, or it fits on none."""
        view = self.view
        if job.size > view.free.count:
            return None
        return picked(self._placement, job, view.open_to(job), view.machine)

    def fits(self, job: SchedulerJob) -> bool:
        """Tell whether a job can start now."""
        view = self.view
        if job.size > view.free.count:
            return False
        return (view.plain and not job.by_nodes) or self.units_for(job) is not None

    def start(self, job: SchedulerJob) -> None:
        """Start a job that fits."""
        view = self.view
        units = self.units_for(job)
        assert units is not None, f"{job.id} does not fit"
        view.free.remove(units)
        view.start(job, units)

    def wait(self) -> None:
        """Let time go on until a job that waits could start, or the run is over.

        Raises
        ------
        RunError
            when the run stalls.
        """
        engine = self._simulation.engine
        while not self.over:
            if self._reply is not None:
                reply, self._reply = self._reply, None
                engine.apply(Reply(reply.reply_to, reply.now, self.view.decisions))
            notice = engine.advance()
            if notice is None:
                self.over = True
                self._runtime.answer(engine.end("completed"))
                engine.close()
                return
            self._reply = self._runtime.answer(notice)
            if self._runtime.view is not None and self.has_choice:
                return

    def summary(self) -> Summary:
        """Return the figures of the run so far."""
        return self._simulation.metrics.summary(self._simulation.engine.cluster.running.values())
