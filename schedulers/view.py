"""What a policy sees and does: the machine as the events tell it, and the decisions taken so far."""

from math import inf

from pipistrelle.protocol.decisions import (
    CallMeLater,
    CallMeLaterData,
    CancelCall,
    CancelCallData,
    Decision,
    ExecuteJob,
    ExecuteJobData,
    KillJob,
    KillJobData,
    RegisterJob,
    RegisterJobData,
    RejectJob,
    RejectJobData,
    SetJobMetadata,
    SetJobMetadataData,
    Stop,
    StopData,
)
from pipistrelle.protocol.events import JobDescription, SimulationBeginsData
from pipistrelle.protocol.fields import LATEST, LONGEST, WakeType
from pipistrelle.protocol.intervals import FreeUnits
from pipistrelle.protocol.nodesets import NodeSet
from pipistrelle.schedulers.jobs import SchedulerJob
from pipistrelle.schedulers.orders import Order
from pipistrelle.schedulers.running import RunningJobs
from pipistrelle.schedulers.waiting import WaitingQueue


class View:
    """State of the simulated cluster, kept up to date by the runtime, and the means to act on it.

    A policy reads the attributes and calls the methods; each method takes effect in the view at once and goes to
    the server with the reply.

    Parameters
    ----------
    begins
        what the server said of the machine.
    order
        the order in which jobs wait.
    """

    def __init__(self, begins: SimulationBeginsData, order: Order) -> None:
        self.begins = begins
        #: simulated time in seconds
        self.now = 0.0
        #: number of units of the machine
        self.units = begins.nb_resources
        self.free = FreeUnits(NodeSet.interval(0, begins.nb_resources - 1))
        #: units that are out of service: none of them is free, but a job may still run on some (batsim dialect only)
        self.unavailable = NodeSet.EMPTY
        self.waiting = WaitingQueue(order)
        self.running = RunningJobs()
        #: jobs submitted since the policy was last asked, in order of submission, that still wait
        self.arrivals: list[SchedulerJob] = []
        #: whether units were freed, or left or came back into service, since the policy was last asked
        self.released = True
        #: ids of the calls that are due now
        self.calls: list[str] = []
        #: event types that shall wake the scheduler next; None means all. Reset before the policy is asked.
        self.wake: tuple[WakeType, ...] | None = None
        self.decisions: list[Decision] = []

    def start(self, job: SchedulerJob, alloc: NodeSet | None = None, why: str | None = None) -> None:
        """Start a waiting job.

        ``alloc`` are units that were taken from ``free`` for it; without them it gets the lowest free ones
        (ValueError if they are too few).
        """
        if alloc is None:
            alloc = self.free.take_lowest(job.size)
        self.waiting.remove(job)
        job.start = self.now
        job.expected_end = self.now + job.walltime
        job.alloc = alloc
        self.running.add(job)
        self.decisions.append(ExecuteJob(self.now, ExecuteJobData(job.id, str(alloc), why)))

    def reject(self, job: SchedulerJob, why: str | None = None) -> None:
        """Refuse a waiting job for good."""
        self.waiting.remove(job)
        self.arrivals = [arrival for arrival in self.arrivals if arrival is not job]
        self.decisions.append(RejectJob(self.now, RejectJobData(job.id, why)))

    def kill(self, *jobs: SchedulerJob, why: str | None = None) -> None:
        """End running jobs; they leave the view with their JOB_COMPLETED."""
        self.decisions.append(KillJob(self.now, KillJobData(tuple(job.id for job in jobs), why)))

    def call_me_later(self, time: float, call_id: str = "") -> None:
        """Ask to be woken at ``time`` (seconds); the id then stands in ``calls``.

        Raises
        ------
        ValueError
            when the time is past or beyond 1e18 s.
        """
        if not self.now <= time <= LATEST:
            raise ValueError(f"a call at {time!r} is not possible, it is {self.now!r}")
        self.decisions.append(CallMeLater(self.now, CallMeLaterData(time, call_id)))

    def cancel_call(self, call_id: str) -> None:
        """Take a pending call back."""
        self.decisions.append(CancelCall(self.now, CancelCallData(call_id)))

    def register(self, job_id: str, size: int, runtime: float, walltime: float = inf) -> None:
        """Submit a job of the scheduler's own (feature ``dynamic_jobs``); durations in seconds.

        Raises
        ------
        ValueError
            when a number is out of range: a size below 1, a duration below 0 or beyond 1e16 s, a walltime of 0.
        """
        if not (
            isinstance(size, int)
            and size >= 1
            and 0 <= runtime <= LONGEST
            and (0 < walltime <= LONGEST or walltime == inf)
        ):
            raise ValueError(f"there is no job of {size!r} units, run time {runtime!r} s and walltime {walltime!r} s")
        job = JobDescription(job_id, size, None if walltime == inf else walltime)
        self.decisions.append(RegisterJob(self.now, RegisterJobData(job_id, job, runtime)))

    def set_metadata(self, job: SchedulerJob, text: str) -> None:
        """Attach a text to a job's line in the outputs."""
        self.decisions.append(SetJobMetadata(self.now, SetJobMetadataData(job.id, text)))

    def give_back(self, units: NodeSet) -> None:
        """Let the units of a job that ended be free again, except those that are out of service."""
        self.free.add(units - self.unavailable if self.unavailable else units)
        self.released = True

    def withdraw(self, units: NodeSet) -> None:
        """Take units out of service; jobs that run on some of them are not concerned."""
        self.free.remove(units - self.free.missing(units))
        self.unavailable |= units
        self.released = True  # a reservation may not hold any more

    def restore(self, units: NodeSet) -> None:
        """Take units back into service: they are free as soon as no job runs on them."""
        back = units & self.unavailable
        self.unavailable -= back
        for job in self.running:
            back -= job.alloc
        if back:
            self.free.add(back)
            self.released = True

    def stop(self, reason: str) -> None:
        """End the simulation."""
        self.decisions.append(Stop(self.now, StopData(reason)))
