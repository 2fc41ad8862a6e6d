"""Run a policy.

Update its view from the server's events, and return its decisions.
"""

import traceback
from collections.abc import Callable, Sequence
from math import inf
from typing import Any, ClassVar, Final, cast

from msgspec import convert, to_builtins
from mypy_extensions import mypyc_attr

from pipistrelle.platforms.errors import PlatformError
from pipistrelle.protocol.base.errors import PipistrelleError, RemoteProtocolError, legible, quoted
from pipistrelle.protocol.base.log import logger
from pipistrelle.protocol.base.state import Kept
from pipistrelle.protocol.decisions import ExecuteJob, RejectJob
from pipistrelle.protocol.events import (
    DecisionRejected,
    Event,
    JobCancelled,
    JobCompleted,
    JobKilled,
    JobSubmitted,
    MaintenanceAnnounced,
    MaintenanceBegins,
    MaintenanceEnds,
    NodesFailed,
    NodesRepaired,
    NoMoreJobs,
    RequestedCall,
    SimulationBegins,
    SimulationBeginsData,
    SimulationEnds,
    SimulationEndsData,
)
from pipistrelle.protocol.fields import STATE, TAKEOVER, WakeType
from pipistrelle.protocol.messages import HelloData, Notice, Reply, WakeWhen, WelcomeData
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.protocol.units.text import NodeSetError
from pipistrelle.schedulers.policy.errors import PolicyFailed
from pipistrelle.schedulers.policy.interfaces import Policy, state_of
from pipistrelle.schedulers.policy.jobs import EndedJob, SchedulerJob
from pipistrelle.schedulers.policy.order import ClassOrder, Order
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.policy.windows import Window, span
from pipistrelle.schedulers.runtime.takeover import NOTICE, is_past, past_of, tell_past
from pipistrelle.schedulers.waiting.class_limits import ClassLimits
from pipistrelle.schedulers.waiting.moving import queue_of

#: most maintenances and reservations that one reply names
_NAMED: Final = 8
#: most characters of an error text that may be quoted from the server
_SAID: Final = 500
#: event types that have conditions; NO_MORE_JOBS and JOB_KILLED alone start no job
_JOBS: Final[tuple[WakeType, ...]] = ("JOB_SUBMITTED", "JOB_COMPLETED")


@mypyc_attr(allow_interpreted_subclasses=True)
class Runtime(Kept):
    """One policy in one simulation: takes the server's notices and returns replies.

    The runtime does no input or output. It is used behind a socket or in the server's process.

    Args:
        policy: makes the decisions; its optional attribute ``features`` names further protocol features that it needs
            (``dynamic_jobs``).
        version: the scheduler's version, which is sent to the server.
        cancellations: whether the server may announce cancellations of waiting jobs.
    """

    _kept: ClassVar[tuple[str, ...]] = ("_submitted", "_latest_submit", "_filter", "_conditions", "ended")

    def __init__(self, policy: Policy, version: str = "", *, cancellations: bool = False) -> None:
        self._policy = policy
        self._version = version
        self._view: View | None = None
        #: ids of the jobs that were submitted and have not completed
        self._known: set[str] = set()
        self._submitted = 0
        self._latest_submit = 0.0
        self._filter = False
        self._conditions = False
        #: returns the conditions under which an event can change the policy's decisions; None: any event can
        self._wake_when = _conditions_of(policy)
        #: {id: job} of jobs that wait or were submitted since the last decision; None: no job is cancelled
        self._cancellable: dict[str, SchedulerJob] | None = None
        self._wants_cancellations = cancellations
        #: data of SIMULATION_ENDS; None until it arrives
        self.ended: SimulationEndsData | None = None
        self._fold: dict[type[Event], Callable[[View, Any], None]] = {
            JobSubmitted: self._job_submitted,
            JobCompleted: self._job_completed,
            RequestedCall: self._requested_call,
            DecisionRejected: self._decision_rejected,
            JobCancelled: self._job_cancelled,
            JobKilled: self._nothing,
            NoMoreJobs: self._no_more_jobs,
            NodesFailed: self._nodes_failed,
            NodesRepaired: self._nodes_repaired,
            MaintenanceAnnounced: self._maintenance_announced,
            MaintenanceBegins: self._maintenance_begins,
            MaintenanceEnds: self._maintenance_ends,
        }

    @property
    def view(self) -> View | None:
        """The policy's view; None before the first notice."""
        return self._view

    def hello(self) -> HelloData:
        """Return the scheduler's name and the protocol features that it wants."""
        wanted = ("cancellations",) if self._wants_cancellations else ()
        keeps = (STATE,) if hasattr(self._policy, "state") and hasattr(self._policy, "restore") else ()
        features = (
            "wake_filter",
            *(("wake_when",) if self._wake_when is not None else ()),
            "failures",
            "resources",
            TAKEOVER,
            *keeps,
            *wanted,
            *getattr(self._policy, "features", ()),
        )
        return HelloData(self._policy.name, self._version, features=features)

    def welcome(self, data: WelcomeData) -> None:
        """Record the protocol features that the server granted."""
        self._filter = "wake_filter" in data.features
        self._conditions = "wake_when" in data.features
        self._cancellable = {} if "cancellations" in data.features else None

    def state(self) -> dict[str, Any]:
        """Return the scheduler's state as JSON values.

        Raise PolicyError if the policy cannot save its state.
        """
        view = self._view
        return {
            **super().state(),
            "begins": None if view is None else to_builtins(view.begins),
            "view": None if view is None else view.state(),
            "policy": None if view is None else state_of(self._policy, "policy"),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a state in a new runtime, whose policy was made with the same arguments."""
        super().restore(state)
        if state["view"] is not None:
            view = self._view = view_of(convert(state["begins"], SimulationBeginsData), self._policy.order)
            view.restore(state["view"])
            self._known = {job["id"] for job in state["view"]["jobs"]}
            if self._cancellable is not None:
                aside = () if view.limits is None else view.limits.each()
                self._cancellable = {job.id: job for job in (*view.waiting.each(), *aside)}
            cast(Any, self._policy).restore(state["policy"], view)

    def answer(self, notice: Notice) -> Reply:
        """Return the policy's decisions for a notice (message from the server).

        Raises:
            PolicyFailed: the policy raised an exception, or the server rejected a decision of the last reply.
        """
        try:
            view = self._view
            if view is None:
                if not notice.events:
                    raise RemoteProtocolError("the first notice is empty", expected="SIMULATION_BEGINS")
                return self._begun_or_ended(notice, notice.events[0])
            self._renew(view, notice.now)
            fold_of, limits = self._fold.get, view.limits
            events: Sequence[Event] = notice.events
            if notice.seq == NOTICE and is_past(events):
                events = self._take_over(view, notice)
            other: Event | None = None
            try:
                for event in events:
                    fold = fold_of(type(event))
                    if fold is None:
                        other = event
                        break
                    if limits is not None:
                        self._catch_up(view, event.timestamp)
                    fold(view, event)
            except (NodeSetError, RemoteProtocolError, _NoSense) as error:
                raise _wrong(notice, event, error) from None
            if other is not None:
                return self._begun_or_ended(notice, other)
            self._decide(view)
            wake = view.wake if self._filter else None
            when = self._wake_when(view) if self._wake_when is not None and self._filter else None
            if when is not None:
                if self._conditions:
                    wake = _JOBS
                else:
                    wake, when = ("JOB_SUBMITTED",) if when.completed == () else wake, None
            keeps = () if view.running.by_id or not view.waiting else self._keeps(view)
            return Reply(notice.seq, notice.now, view.decisions, wake, None, keeps, when)
        except PipistrelleError:
            raise
        except Exception as error:
            raise self._failed(notice, error) from error

    @staticmethod
    def _renew(view: View, now: float) -> None:
        """Prepare the view for the decisions at ``now`` (s).

        This is a function of its own because mypyc would take ``wake`` for None in all lines after the assignment.
        """
        view.now, view.decisions, view.wake = now, [], None

    def _take_over(self, view: View, notice: Notice) -> list[Event]:
        """Restore the running jobs, and give the policy the past starts and ends.

        Return all other events. The runtime handles them as usual, which restores the queue and the units out of
        service.
        """
        try:
            past = past_of(notice.events, lambda event: self._numbered(view, event))
            for job in past.running.values():
                view.adopt(job, going=job.id in past.going, takes=past.takes[job.id])
        except (NodeSetError, RemoteProtocolError, _NoSense) as error:
            what = f"the past makes no sense: {legible(str(error), _SAID)}"
            raise RemoteProtocolError(what, where=f"notice {notice.seq}") from None
        self._known -= {step.job.id for step in past.steps if not step.starts}
        tell_past(self._policy, view, past.steps)
        return past.rest

    def _failed(self, notice: Notice, error: Exception) -> PolicyFailed:
        """Return the error that reports an exception raised by a policy.

        A policy is user code.
        """
        logger().opt(exception=error).debug("policy '{}' failed", self._policy.name)
        place = traceback.extract_tb(error.__traceback__)[-1]
        return PolicyFailed(
            f"policy '{self._policy.name}' raised {type(error).__name__}: {error}",
            where=f"simulated time {notice.now!r}, {place.filename}:{place.lineno}",
            hint="The whole traceback is in the log with -vv.",
        )

    def _decide(self, view: View) -> None:
        """Admit jobs within class limits, call the policy, and clear the view's news.

        The news are the lists of arrivals, ended jobs, calls and failures.
        """
        if view.limits is not None:
            view.let_in()
        self._policy.decide(view)
        view.arrivals, view.ended, view.released, view.calls, view.failed = [], [], False, [], []
        if self._cancellable is not None:
            view.cancelled = []
            for decision in view.decisions:
                if isinstance(decision, ExecuteJob | RejectJob):
                    self._cancellable.pop(decision.data.job_id, None)

    @staticmethod
    def _catch_up(view: View, timestamp: float) -> None:
        """Queue the jobs that class limits would have admitted at each skipped instant."""
        if view.limits is not None and view.limits.pending is not None and view.limits.pending < timestamp:
            view.let_in()

    def _begun_or_ended(self, notice: Notice, event: Event) -> Reply:
        """Handle the first or the last event of the simulation, and return an empty reply."""
        try:
            self._begin_or_end(event)
        except (NodeSetError, PlatformError) as error:
            raise _wrong(notice, event, error) from None
        return Reply(notice.seq, notice.now)

    def _begin_or_end(self, event: Event) -> None:
        if isinstance(event, SimulationBegins) and self._view is None:
            view = view_of(event.data, self._policy.order)
            view.machine.check()
            self._view = view
        elif isinstance(event, SimulationEnds):
            self.ended = event.data
        else:
            raise RemoteProtocolError(
                "SIMULATION_BEGINS must be the first event, and only the first", found=str(event.__struct_config__.tag)
            )

    def _keeps(self, view: View) -> tuple[str, ...]:
        """Return the maintenance windows and reservations that may keep jobs waiting.

        Each is a text. If the run stalls, the error message quotes them.
        """
        kept = [
            f"maintenance '{window.id}' (units {window.units}, {span(window.begin, window.end)})"
            for window in view.windows
            if window.admits is None
        ]
        kept += getattr(self._policy, "reservations", tuple)()
        more = len(kept) - _NAMED
        return (*kept[:_NAMED], f"{more} more") if more > 0 else tuple(kept)

    def _numbered(self, view: View, event: JobSubmitted) -> SchedulerJob:
        """Return the job of a submission event, numbered in the order of submission."""
        description = event.data.job
        if description.id != event.data.job_id:
            raise _NoSense(f"'job_id' and 'id' differ: {quoted(event.data.job_id)}, {quoted(description.id)}")
        if description.id in self._known:
            raise _NoSense(f"{quoted(description.id)} waits or runs already")
        self._known.add(description.id)
        held_times, queue = view.held_times, description.queue
        beside = held_times.usual if queue is None else held_times.of(queue)
        job = SchedulerJob.submitted(description, self._submitted, event.timestamp, beside)
        self._submitted += 1
        return job

    def _job_submitted(self, view: View, event: JobSubmitted) -> None:
        job = self._numbered(view, event)
        if job.submit < self._latest_submit:  # the job was requeued after a failure, with its old submit time
            view.waiting.arrivals_last = False
        else:
            self._latest_submit = job.submit
        view.submit(job, event.timestamp)
        if self._cancellable is not None:
            self._cancellable[job.id] = job

    def _job_cancelled(self, view: View, event: JobCancelled) -> None:
        job = None if self._cancellable is None else self._cancellable.pop(event.data.job_id, None)
        if job is None:
            raise RemoteProtocolError("JOB_CANCELLED names a job that does not wait", found=event.data.job_id)
        self._known.discard(job.id)
        view.cancel(job, event.timestamp)

    def _job_completed(self, view: View, event: JobCompleted) -> None:
        try:
            job = view.running.remove(event.data.job_id)
        except KeyError:
            found = quoted(event.data.job_id)
            raise RemoteProtocolError("JOB_COMPLETED names a job that does not run", found=found) from None
        self._known.discard(job.id)
        view.release(job)
        view.ended.append(EndedJob(job, event.timestamp, event.data.job_state))
        if view.limits is not None:
            view.limits.left(job, event.timestamp)

    @staticmethod
    def _nodes_failed(view: View, event: NodesFailed) -> None:
        units = _units(view, event.data.units)
        view.withdraw(units)
        view.failed.append(units)

    @staticmethod
    def _nodes_repaired(view: View, event: NodesRepaired) -> None:
        view.put_back(_units(view, event.data.units))

    @staticmethod
    def _maintenance_announced(view: View, event: MaintenanceAnnounced) -> None:
        data = event.data
        _window(view, data.id)
        if view.out_for(data.id):
            raise _NoSense(f"maintenance {quoted(data.id)} has begun already, and is announced")
        view.windows.add(Window(data.id, data.begin, data.end, _units(view, data.units)))
        view.released = True

    @staticmethod
    def _maintenance_begins(view: View, event: MaintenanceBegins) -> None:
        data = event.data
        units = _units(view, data.units)
        announced = _window(view, data.id)
        if announced is None:
            view.windows.add(Window(data.id, event.timestamp, inf, units))
        elif event.timestamp < announced.begin or units - announced.units:
            said = f"units {announced.units} from {announced.begin!r} s on"
            raise _NoSense(f"maintenance {quoted(data.id)} was announced for {said}")
        view.withdraw(units, data.id)

    @staticmethod
    def _maintenance_ends(view: View, event: MaintenanceEnds) -> None:
        data = event.data
        _window(view, data.id)
        view.put_back(_units(view, data.units), data.id)
        view.windows.remove(data.id)

    @staticmethod
    def _requested_call(view: View, event: RequestedCall) -> None:
        view.calls.append(event.data.id)

    @staticmethod
    def _decision_rejected(view: View, event: DecisionRejected) -> None:
        data = event.data
        raise PolicyFailed(
            f"the server rejected a decision ({data.code}): {legible(data.message, _SAID)}",
            where=f"decision {data.index} ({legible(data.decision, _SAID)}) of the reply to notice {data.reply_to}",
            hint="Change the policy: the view already contains this decision, so the run cannot continue.",
        )

    def _no_more_jobs(self, view: View, event: NoMoreJobs) -> None:
        told = getattr(self._policy, "no_more_jobs", None)
        if told is not None:
            told()

    @staticmethod
    def _nothing(view: View, event: Event) -> None:
        """Ignore an event whose content also arrives in other events."""


def _conditions_of(policy: Policy) -> Callable[[View], WakeWhen | None] | None:
    """Return a policy's method ``wake_when``; None if there is none.

    Also return None if a class inherits this method but has its own ``decide``: that method may decide at events that
    the inherited conditions leave out.
    """
    for kind in type(policy).__mro__:
        if "wake_when" in vars(kind):
            return cast(Any, policy).wake_when  # type: ignore[no-any-return]
        if "decide" in vars(kind):
            return None
    return None


def view_of(begins: SimulationBeginsData, order: Order) -> View:
    """Return the view of a new simulation; its queue is empty and uses this order."""
    waiting = queue_of(order)
    if isinstance(order, ClassOrder):
        classes = () if begins.platform is None else begins.platform.classes
        order.learn_classes({one.name: one.priority for one in classes})
    return View(begins, waiting, ClassLimits.where_there_are(begins, order))


class _NoSense(Exception):
    """Raised if an event contradicts the machine or the view."""


def _units(view: View, text: str) -> NodeSet:
    units = NodeSet.parse(text)
    if units and units.last >= view.units:
        raise _NoSense(f"'units' names {units.last}, but the machine has {view.units} units")
    return units


def _window(view: View, name: str) -> Window | None:
    """Return the maintenance window of this name; None if it was not announced."""
    window = view.windows.get(name)
    if window is not None and window.admits is not None:
        raise _NoSense(f"a maintenance cannot be named {quoted(name)}: a window of the scheduler has that name")
    return window


def _wrong(notice: Notice, event: Event, error: Exception) -> RemoteProtocolError:
    """Return the error for an event that contradicts the machine or the view.

    The error says where the event is in the notice.
    """
    place = next(index for index, one in enumerate(notice.events) if one is event)
    return RemoteProtocolError(
        f"an event makes no sense: {legible(str(error), _SAID)}",
        where=f"notice {notice.seq}, $.events[{place}] ({event.__struct_config__.tag})",
    )
