"""The view of a policy: the machine's state, the jobs, and the decisions so far."""

from collections.abc import Sequence
from math import inf
from typing import Any, ClassVar

from pipistrelle.platforms.requests.node_counts import lowest_nodes
from pipistrelle.platforms.requests.requests import NodeRequest
from pipistrelle.platforms.resources.shape import Takes
from pipistrelle.platforms.resources.shared_nodes import shared_nodes_of
from pipistrelle.platforms.topology.machine import Machine
from pipistrelle.protocol.base.errors import RemoteProtocolError
from pipistrelle.protocol.base.state import Kept, message_of, plain
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
    PreemptJob,
    PreemptJobData,
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
from pipistrelle.protocol.fields import LATEST, LONGEST, PreemptMode, WakeType
from pipistrelle.protocol.resources.nodes import NodeTake
from pipistrelle.protocol.units.free import FreeUnits
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.schedulers.policy.jobs import EndedJob, SchedulerJob
from pipistrelle.schedulers.policy.out_of_service import OutOfService
from pipistrelle.schedulers.policy.running import HeldTimes, RunningJobs
from pipistrelle.schedulers.policy.shared_view import SharedView
from pipistrelle.schedulers.policy.waiting import QueueLimits, Waiting
from pipistrelle.schedulers.policy.windows import Window, Windows


class View(Kept):
    """The state of the simulated cluster, and the methods to act on it.

    The runtime updates the view from the events. A policy reads its attributes and calls its methods. Each method
    changes the view at once; the decision is sent with the reply.

    Args:
        begins: the server's description of the machine.
        waiting: the queue, empty.
        limits: decides which jobs of limited classes are in the queue; None on a machine without classes.
    """

    _kept: ClassVar[tuple[str, ...]] = (
        "now",
        "free",
        "_lost",
        "_out",
        "windows",
        "waiting",
        "limits",
        "running",
        "released",
        "calls",
    )

    def __init__(self, begins: SimulationBeginsData, waiting: Waiting, limits: QueueLimits | None = None) -> None:
        self.begins = begins
        #: simulated time, s
        self.now = 0.0
        self.units = begins.nb_resources
        self.machine = Machine(begins.nb_resources, begins.platform)
        self.free = FreeUnits(NodeSet.interval(0, begins.nb_resources - 1))
        shared = shared_nodes_of(begins.platform)
        #: what is free of nodes that jobs share; None: each unit has at most one job. With it, ``free`` has all nodes
        #: in service, whether or not jobs run there
        self.shared = None if shared is None else SharedView(shared)
        self._out = OutOfService()
        #: units out of service that a running job still holds
        self._lost = FreeUnits()
        #: maintenance announced or in force, and other restrictions of units for some time
        self.windows = Windows()
        self.waiting = waiting
        self.limits = limits
        for window in () if limits is None else limits.windows():
            self.windows.add(window)
        #: number of permanent windows, made for classes' pools and jobs' node requests
        self._pool_windows = len(self.windows)
        #: whether any job so far asked for a number of units per node
        self.by_nodes = False
        #: {node request of a job so far: the units that do not satisfy it}
        self._unasked: dict[NodeRequest, NodeSet] = {}
        #: the sets of units that a window closes because they do not satisfy a node request
        self._request_windows: list[NodeSet] = []
        self.held_times = HeldTimes(begins)
        self.running = RunningJobs()
        #: jobs submitted since the last decision that still wait, in order of submission
        self.arrivals: list[SchedulerJob] = []
        #: running jobs that ended since the last decision, in order
        self.ended: list[EndedJob] = []
        #: waiting jobs cancelled since the last decision; the queue no longer has them
        self.cancelled: list[SchedulerJob] = []
        #: ids of jobs being preempted; some may have ended already
        self._going: set[str] = set()
        #: whether units were freed, failed, were repaired or had maintenance announced since the last decision
        self.released = True
        #: units that failed since the last decision, one set per failure
        self.failed: list[NodeSet] = []
        #: ids of the calls (requested by CALL_ME_LATER) that are due now
        self.calls: list[str] = []
        #: event types that wake the scheduler next; None means all. Reset before each decision.
        self.wake: tuple[WakeType, ...] | None = None
        self.decisions: list[Decision] = []

    def state(self) -> dict[str, Any]:
        """Return the state between two decisions as plain values.

        Each job is described once; elsewhere the state has only its id.
        """
        aside = () if self.limits is None else self.limits.each()
        asked = {"requests": [plain(request) for request in self._unasked]} if self._unasked else {}
        return {
            **super().state(),
            **asked,
            **({"going": sorted(self.going)} if self._going else {}),
            **({} if self.shared is None else {"takes": self.shared.state()}),
            "jobs": [job.state() for job in (*self.waiting.each(), *aside, *self.running)],
            "arrivals": [job.id for job in self.arrivals],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a state on the same machine.

        The queue order's own state is restored later.
        """
        jobs = {job["id"]: SchedulerJob.restored(job) for job in state["jobs"]}
        for request in state.get("requests", ()):
            self._learn(message_of(request))
        super().restore(state, jobs)
        self.arrivals = [jobs[job_id] for job_id in state["arrivals"]]
        self._going = set(state.get("going", ()))
        if self.shared is not None:
            self.shared.restore(state["takes"], jobs)

    def fits(self, job: SchedulerJob) -> bool:
        """Return whether a waiting job can start now on units that it may use; see `pick`."""
        if self.shared is None and self.limits is None and job.request is None and not self.windows.by_id:
            return job.size <= self.free.count
        return self.pick(job) is not None

    def pick(self, job: SchedulerJob) -> NodeSet | Takes | None:
        """Return the lowest free units on which a waiting job can start now; None if none.

        The units suit the job's class and its request for nodes, and no maintenance begins on them before the job's
        latest end. They stay free until `start` takes them. On nodes that jobs share, the result has the job's tasks
        and GPUs per node.
        """
        if job.size > self.free.count or (self.limits is not None and job in self.limits):
            return None
        if self.shared is not None:
            return self.shared.pick(job, self.shared.open(self.shut(job)))
        units = self.open_to(job)
        request = job.request
        if request is not None and request.units_per_node is not None:
            return self.machine.requests.counts.fill(units, request.units_per_node, job.size, lowest_nodes)
        return FreeUnits(units).take_lowest(job.size) if job.size <= len(units) else None

    def shut(self, job: SchedulerJob, begin: float | None = None) -> NodeSet:
        """Return the nodes that a job cannot use.

        These are the nodes out of service and the nodes closed to the job.

        Args:
            begin: when the job starts, s; None: now. If given, nodes under maintenance with a known end count as in
                service, because the maintenance window closes them until then.
        """
        if begin is not None:
            out = self.gone
        elif self.shared is not None and self.free.count == self.units:
            out = NodeSet.EMPTY
        else:
            out = self.machine.all_units - self.free.snapshot()
        if not self.windows.by_id:
            return out
        return out | self.closed(job, begin)

    def start(self, job: SchedulerJob, alloc: NodeSet | Takes | None = None, why: str | None = None) -> None:
        """Start a waiting job.

        Args:
            alloc: units from `pick` or from ``free``; the caller may have removed them from ``free`` already. None: the
                result of `pick`.

        Raises:
            ValueError: the job does not fit, ``alloc`` has units that the job may not use, or a class limit keeps the
                job out of the queue.
        """
        if self.shared is not None:
            self._start_shared(job, self.shared, alloc, why)
            return
        assert alloc is None or isinstance(alloc, NodeSet)
        if self.limits is not None or job.request is not None:
            self._check(job, alloc)
        if alloc is None:
            alloc = self._taken(job)
        elif alloc and self.free.has(alloc.first):
            self.free.remove(alloc)
        self._started(job, alloc, ExecuteJobData(job.id, str(alloc), why))

    def _start_shared(
        self, job: SchedulerJob, shared: SharedView, alloc: NodeSet | Takes | None, why: str | None
    ) -> None:
        if self.limits is not None and job in self.limits:
            raise ValueError(f"{job.id} is set aside: {self.limits.held_back_by(job)}")
        takes = self.pick(job) if alloc is None else alloc
        if takes is None:
            raise ValueError(f"{job.id} does not fit now: {shared.shape(job).request}. Ask view.fits(job) first")
        if isinstance(takes, NodeSet):
            raise ValueError(f"{job.id} starts on shared nodes: give what view.pick(job) returns, not a set of nodes")
        nodes, told = shared.told(takes)
        if not nodes.isdisjoint(closed := self.shut(job)):
            raise ValueError(f"{job.id} cannot use nodes {nodes & closed}: they are down, or closed to it")
        shared.take(job, takes)
        self._started(job, nodes, ExecuteJobData(job.id, str(nodes), why, told))

    def _started(self, job: SchedulerJob, alloc: NodeSet, data: ExecuteJobData) -> None:
        self.waiting.remove(job)
        job.start = self.now
        job.expected_end = self.now + job.occupies
        job.alloc = alloc
        self.running.add(job)
        self.decisions.append(ExecuteJob(self.now, data))

    def _check(self, job: SchedulerJob, alloc: NodeSet | None) -> None:
        """Raise ValueError if a class limit or a closed unit keeps the job from starting.

        A limit may keep the job out of the queue. The job's class or its request may exclude units of ``alloc``.
        """
        if self.limits is not None and job in self.limits:
            raise ValueError(f"{job.id} is set aside: {self.limits.held_back_by(job)}")
        if alloc is not None:
            closed = self.closed_pools(job)
            if not alloc.isdisjoint(closed):
                which = "its class or its request excludes them"
                raise ValueError(f"{job.id} cannot use units {alloc & closed}: {which}")

    def _taken(self, job: SchedulerJob) -> NodeSet:
        """Remove the lowest units that the job may use from the free units; return them.

        Raise ValueError if there are too few.
        """
        if not (self.windows.by_id and (job.by_nodes or self.closed(job))):
            return self.free.take_lowest(job.size)
        units = self.pick(job)
        if not isinstance(units, NodeSet):
            raise ValueError(self._misfit(job))
        self.free.remove(units)
        return units

    def _misfit(self, job: SchedulerJob) -> str:
        asks = f"{job.size} units" if job.request is None else f"{job.size} units, {job.request}"
        found = f"{len(self.open_to(job))} of the {self.free.count} free units are open to it"
        return f"{job.id} does not fit now: it asks for {asks}; {found}. Ask view.fits(job) before starting a job"

    def submit(self, job: SchedulerJob, now: float) -> None:
        """Queue a job submitted at ``now`` (s).

        If the job can never start, reject it permanently. If the job's class has limits, the job is set aside; `let_in`
        queues it.
        """
        limits = self.limits
        why = None
        if job.size > self.units:
            why = f"needs {job.size} units, the machine has {self.units}"
        elif limits is not None or job.request is not None or self.shared is not None:
            if limits is not None:
                why = limits.refusal(job)
            if why is None and job.request is not None:
                why = self._unmet(job, job.request)
            if why is None and self.shared is not None:
                why = self.shared.refusal(job, self.closed_pools(job))
            if why is None and limits is not None and limits.set_aside(job, now):
                return
        self.waiting.add(job)
        if why is not None:
            self.reject(job, why)
        else:
            self.arrivals.append(job)

    def adopt(self, job: SchedulerJob, *, going: bool = False, takes: Sequence[NodeTake] = ()) -> None:
        """Add a running job that another scheduler started.

        Args:
            going: whether the job is being preempted.
            takes: what the job takes of shared nodes.

        Raises:
            RemoteProtocolError: the job's units, or what it takes of nodes, are not free.
        """
        if self.free.missing(job.alloc):
            raise RemoteProtocolError(f"{job.id} runs on units that are not free or unknown", found=str(job.alloc))
        if self.shared is not None:
            try:
                self.shared.adopt(job, takes)
            except ValueError as error:
                raise RemoteProtocolError(f"what {job.id} takes makes no sense: {error}") from None
        else:
            self.free.remove(job.alloc)
        self.running.add(job)
        if going:
            self._going = {*self._going, job.id}
        if self.limits is not None:
            self.limits.admit(job)
        if job.request is not None and self.machine.requests.refusal(job.request, job.size) is None:
            self._learn(job.request)

    def _unmet(self, job: SchedulerJob, request: NodeRequest) -> str | None:
        """Return why the machine cannot satisfy a job's node request.

        If it can, record the request and return None.
        """
        book = self.machine.requests
        why = book.refusal(request, job.size)
        if why is not None:
            return why
        self._learn(request)
        units = book.allowed(request) - (NodeSet.EMPTY if self.limits is None else self.limits.closed(job))
        nodes = request.nodes(job.size)
        if nodes is None:
            enough = len(units) >= job.size
        else:
            enough = int((book.counts.of(units) >= (request.units_per_node or 1)).sum()) >= nodes
        return None if enough else f"its class's pools have too few such nodes: it asks for {job.size} units, {request}"

    def _learn(self, request: NodeRequest) -> None:
        """Record which units do not satisfy a node request.

        Jobs with this request may never use these units.
        """
        if request in self._unasked:
            return
        self.by_nodes |= request.units_per_node is not None
        closed = self.machine.all_units - self.machine.requests.allowed(request)
        known = next((units for units in self._request_windows if units == closed), None)
        self._unasked[request] = closed if known is None else known
        # Such a request needs a window even if nothing is closed: it shows that counting units does not suffice.
        if known is None and (closed or request.units_per_node is not None):
            self._request_windows.append(closed)
            name = f"nodes that some do not ask for ({closed})"
            self.windows.add(Window(name, 0.0, inf, closed, lambda job: self._kept_from(job) is not closed))
            self._pool_windows += 1

    def _kept_from(self, job: SchedulerJob) -> NodeSet | None:
        return None if job.request is None else self._unasked.get(job.request)

    def closed_pools(self, job: SchedulerJob) -> NodeSet:
        """Return the units that the job's class or request excludes."""
        closed = NodeSet.EMPTY if self.limits is None else self.limits.closed(job)
        unasked = self._kept_from(job)
        if not unasked:
            return closed
        return closed | unasked if closed else unasked

    def let_in(self) -> None:
        """Queue the jobs that a class limit kept out of the queue and that may now join."""
        fresh = [] if self.limits is None else self.limits.let_in()
        for job in fresh:
            self.waiting.add(job)
        if fresh:
            self.arrivals = sorted((*self.arrivals, *fresh), key=lambda job: job.number)

    @property
    def set_aside(self) -> list[SchedulerJob]:
        """The jobs that wait outside the queue because of a limit of their class."""
        return [] if self.limits is None else list(self.limits)

    def held_back_by(self, job: SchedulerJob) -> str | None:
        """Return the class limit that keeps a job out of the queue, as text; else None."""
        return None if self.limits is None else self.limits.held_back_by(job)

    def reject(self, job: SchedulerJob, why: str | None = None) -> None:
        """Reject a waiting job permanently."""
        if self.limits is None:
            self.waiting.remove(job)
        elif not self.limits.forget(job):
            self.waiting.remove(job)
            self.limits.left(job, self.now)
        self.arrivals = [arrival for arrival in self.arrivals if arrival is not job]
        self.decisions.append(RejectJob(self.now, RejectJobData(job.id, why)))
        self.let_in()

    def cancel(self, job: SchedulerJob, now: float) -> None:
        """Remove a waiting job cancelled at ``now`` (s), even if it was just rejected."""
        refused = [one for one in self.decisions if isinstance(one, RejectJob) and one.data.job_id == job.id]
        if refused:
            self.decisions = [one for one in self.decisions if one is not refused[0]]
        elif self.limits is None:
            self.waiting.remove(job)
        elif not self.limits.forget(job):
            self.waiting.remove(job)
            self.limits.left(job, now)
        self.arrivals = [arrival for arrival in self.arrivals if arrival is not job]
        self.cancelled.append(job)
        self.released = True  # the next job in the queue may get a reservation, or start

    def kill(self, *jobs: SchedulerJob, why: str | None = None) -> None:
        """Kill the given running jobs; each leaves the view when its JOB_COMPLETED arrives.

        ``why`` is the reason that the run's decisions show.
        """
        self.decisions.append(KillJob(self.now, KillJobData(tuple(job.id for job in jobs), why)))

    @property
    def going(self) -> set[str]:
        """Ids of the running jobs that are being preempted."""
        return {job_id for job_id in self._going if job_id in self.running} if self._going else self._going

    def preempt(
        self, job: SchedulerJob, mode: PreemptMode = "requeue", grace: float = 0.0, why: str | None = None
    ) -> None:
        """Preempt a running job ``grace`` seconds from now (feature ``preemption``).

        The job leaves the view when its JOB_COMPLETED arrives: at this instant if there is no grace period and no
        checkpoint to write.

        Args:
            mode: ``requeue`` submits the job again without its work since the last checkpoint. ``checkpoint`` first
                writes one more checkpoint if the job writes any. ``cancel`` does not submit the job again.

        Raises:
            ValueError: the job does not run, started at this instant or is already being preempted; or ``grace`` is out
                of range.
        """
        if job.id not in self.running or job.start == self.now or job.id in self.going:
            raise ValueError(
                f"{job.id} cannot be preempted: it does not run, started just now, or is already being preempted"
            )
        if not 0 <= grace <= LONGEST:
            raise ValueError(f"invalid grace period of {grace!r} s")
        self._going = {*self.going, job.id}
        self.decisions.append(PreemptJob(self.now, PreemptJobData(job.id, mode, grace, why)))

    def call_me_later(self, time: float, call_id: str = "") -> None:
        """Ask for a call at ``time`` (s); at that call, ``calls`` contains ``call_id``.

        Raises:
            ValueError: the time is past or beyond 1e18 s.
        """
        if not self.now <= time <= LATEST:
            raise ValueError(f"cannot call at {time!r} s: it is {self.now!r} s, and the latest time is {LATEST!r} s")
        self.decisions.append(CallMeLater(self.now, CallMeLaterData(time, call_id)))

    def cancel_call(self, call_id: str) -> None:
        """Cancel a pending call, requested with `call_me_later`."""
        self.decisions.append(CancelCall(self.now, CancelCallData(call_id)))

    def register(self, job_id: str, size: int, runtime: float, walltime: float = inf) -> None:
        """Submit a new job of the scheduler (feature ``dynamic_jobs``); durations in s.

        Raises:
            ValueError: a size below 1, a duration below 0 or beyond 1e16 s, or a walltime of 0.
        """
        if not (
            isinstance(size, int)
            and size >= 1
            and 0 <= runtime <= LONGEST
            and (0 < walltime <= LONGEST or walltime == inf)
        ):
            raise ValueError(f"invalid job of {size!r} units, run time {runtime!r} s and walltime {walltime!r} s")
        job = JobDescription(job_id, size, None if walltime == inf else walltime)
        self.decisions.append(RegisterJob(self.now, RegisterJobData(job_id, job, runtime)))

    def set_metadata(self, job: SchedulerJob, text: str) -> None:
        """Attach a text to a job; the outputs show the text in the job's row."""
        self.decisions.append(SetJobMetadata(self.now, SetJobMetadataData(job.id, text)))

    @property
    def unavailable(self) -> NodeSet:
        """Units out of service. None of them is free, but jobs may still run on some."""
        return self._out.units

    def out_for(self, reason: str) -> bool:
        """Return whether any units are out of service for this reason ("": failures)."""
        return reason in self._out

    @property
    def gone(self) -> NodeSet:
        """Units out of service, except those that return when a known maintenance ends."""
        found = NodeSet.EMPTY
        if self._out.all.count:
            for reason, units in self._out:
                window = self.windows.get(reason)
                if window is None or window.end <= self.now:
                    found |= units
        return found

    @property
    def returning(self) -> NodeSet:
        """Units that no job holds and that return to service when their maintenance ends."""
        return self._lost.missing(self._out.units - self.gone) if self._out.all.count else NodeSet.EMPTY

    @property
    def lost(self) -> int:
        """The number of units that are out of service but still held by running jobs."""
        return self._lost.count

    @property
    def plain(self) -> bool:
        """Whether counting free units is enough to schedule jobs.

        This is so if there are no windows and no shared nodes, and no job holds failed units.
        """
        return not (self._lost.count or self.windows.by_id or self.shared is not None)

    @property
    def has_timed_windows(self) -> bool:
        """Whether any window is temporary, such as maintenance."""
        return len(self.windows) > self._pool_windows

    def closed(self, job: SchedulerJob, begin: float | None = None) -> NodeSet:
        """Return the units closed to a job that starts at ``begin`` (s; None: now).

        These are the units of all windows that exclude the job and overlap its time, from ``begin`` to its latest end.
        A job without a walltime overlaps every later window.
        """
        if len(self.windows) == self._pool_windows:
            return self.closed_pools(job)  # permanent windows close the same units at any time
        return self.windows.closed(job, self.now if begin is None else begin)

    def open_to(self, job: SchedulerJob) -> NodeSet:
        """Return the free units that are not closed to a job that starts now."""
        return self.free.snapshot() - self.closed(job)

    def release(self, job: SchedulerJob) -> None:
        """Free the units of a job that has ended."""
        if self.shared is None:
            self.give_back(job.alloc)
        else:
            self.shared.give_back(job)
            self.released = True

    def give_back(self, units: NodeSet) -> None:
        """Add the units of an ended job to the free units, except those out of service."""
        if self._out.all.count:
            up = self._out.up(units)
            if len(up) < len(units):
                self._lost.remove(units - up)
                units = up
        self.free.add(units)
        self.released = True

    def withdraw(self, units: NodeSet, reason: str = "") -> None:
        """Take units out of service; jobs there continue.

        Args:
            reason: name of the maintenance; "" for a failure.
        """
        news = self._out.add(units, reason)
        held = self.free.missing(news)
        self.free.remove(news - held)
        self._lost.add(held)
        self.released = True  # a reservation may no longer be possible
        # Jobs that lose their units may be requeued with their old submit time.
        self.waiting.arrivals_last = False

    def put_back(self, units: NodeSet, reason: str = "") -> None:
        """Remove one reason why units are out of service.

        Units without another reason, and without a job, become free.
        """
        back = self._out.remove(units, reason)
        free = self._lost.missing(back)
        self._lost.remove(back - free)
        self.free.add(free)
        self.released = True

    def stop(self, reason: str) -> None:
        """End the simulation; ``reason`` is sent to the server."""
        self.decisions.append(Stop(self.now, StopData(reason)))
