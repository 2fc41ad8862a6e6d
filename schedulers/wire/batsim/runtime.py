"""Serve Batsim with a policy: translate between the batsim and the native dialect."""

from collections.abc import Callable
from contextlib import suppress
from heapq import heapify, heappop, heappush
from math import inf
from typing import Final

from msgspec import ValidationError, convert, structs

from pipistrelle.protocol.base.errors import PipistrelleError, RemoteProtocolError
from pipistrelle.protocol.base.log import logger
from pipistrelle.protocol.batsim.messages import (
    Answer,
    AnswerServer,
    Notify,
    NotifyServer,
    Query,
    ResourceStateChanged,
)
from pipistrelle.protocol.decisions import CallMeLater, CancelCall, Decision, RegisterJob
from pipistrelle.protocol.events import (
    Event,
    JobSubmitted,
    JobSubmittedData,
    NoMoreJobs,
    PlatformInfo,
    RequestedCall,
    SimulationBegins,
    SimulationBeginsData,
)
from pipistrelle.protocol.fields import LONGEST
from pipistrelle.protocol.messages import HelloData, Notice, Reply
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.protocol.units.text import NodeSetError
from pipistrelle.schedulers.policy.errors import PolicyError, PolicyFailed
from pipistrelle.schedulers.policy.interfaces import Policy
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.runtime.runtime import Runtime
from pipistrelle.schedulers.wire.batsim.hosts import platform_of

#: decisions that the batsim dialect lacks or that need extra work
_SPECIAL: Final[frozenset[type[Decision]]] = frozenset((CallMeLater, CancelCall, RegisterJob))


class BatsimRuntime(Runtime):
    """A runtime for the batsim dialect, which hides the dialect from the policy.

    - Wake-up calls have no names in Batsim and cannot be cancelled. The runtime remembers the policy's names for
      them, and ignores cancelled calls when they arrive.
    - If Batsim does not acknowledge registered jobs, the runtime submits them to the policy, which decides again.
    - If Batsim allows dynamic jobs, the runtime tells Batsim when the policy will register no more jobs. It does so
      at once if the policy lacks the feature ``dynamic_jobs``, otherwise when no job waits, runs or will be submitted.
    - Machines that Batsim declares unavailable are out of service until they are available again.

    Raises:
        PolicyError: the policy needs features that this dialect lacks.
    """

    _kept = (*Runtime._kept, "_calls", "_asked_for", "_dynamic", "_acknowledged", "_registering", "_exhausted")

    def __init__(self, policy: Policy, version: str = "") -> None:
        super().__init__(policy, version)
        if "preemption" in getattr(policy, "features", ()):
            raise PolicyError(
                f"'{policy.name}' preempts jobs, and the batsim dialect does not support preemption",
                expected="the native dialect, or a policy without preemption",
            )
        if "recorded" in getattr(policy, "features", ()):
            raise PolicyError(
                f"'{policy.name}' needs jobs' recorded starts, and the batsim dialect does not send them",
                expected="the native dialect",
            )
        #: pending calls: (time in s, number, name or None if cancelled)
        self._calls: list[tuple[float, int, str | None]] = []
        #: number of calls requested so far
        self._asked_for = 0
        #: whether the scheduler may register jobs
        self._dynamic = False
        self._acknowledged = False
        self._registering = False
        self._exhausted = False
        self._fold |= {
            Notify: self._notified,
            Query: self._asked,
            RequestedCall: self._called,
            NoMoreJobs: self._no_more_jobs,
            ResourceStateChanged: self._nothing,
            Answer: self._nothing,
        }

    def hello(self) -> HelloData:
        """Return the scheduler's name; the batsim dialect has no optional features."""
        return HelloData(self._policy.name, self._version)

    def answer(self, notice: Notice) -> Reply:
        """Return the decisions in Batsim's form.

        Raise PolicyFailed as `Runtime.answer` does.
        """
        begins = self._view is None
        reply = super().answer(notice)
        view = self._view
        if view is None or self.ended is not None:
            return reply
        if begins:
            return structs.replace(reply, events=self._beginning(notice))
        if view.decisions and not _SPECIAL.isdisjoint(map(type, view.decisions)):
            try:
                reply = structs.replace(reply, events=self._translated(view))
            except PipistrelleError:
                raise
            except Exception as error:
                raise self._failed(notice, error) from error
        if self._registering and self._nothing_to_come(view):
            reply = structs.replace(reply, events=[*reply.events, self._registration_finished(view.now)])
        return reply

    def _begin_or_end(self, event: Event) -> None:
        if isinstance(event, SimulationBegins):
            event = SimulationBegins(event.timestamp, _with_nodes(event.data))
        super()._begin_or_end(event)

    # -- dynamic jobs -----------------------------------------------------------------------------------------------

    def _beginning(self, notice: Notice) -> list[Decision]:
        event = notice.events[0]
        assert isinstance(event, SimulationBegins)  # other events come only after the view exists
        config = event.data.config
        self._dynamic = config.get("dynamic-jobs-enabled") is True
        self._acknowledged = config.get("dynamic-jobs-acknowledged") is True
        self._registering = self._dynamic
        if self._dynamic and "dynamic_jobs" not in getattr(self._policy, "features", ()):
            return [self._registration_finished(notice.now)]
        return []

    def _registration_finished(self, now: float) -> Decision:
        self._registering = False
        return NotifyServer(now, {"type": "registration_finished"})

    def _nothing_to_come(self, view: View) -> bool:
        return (
            self._exhausted
            and not view.waiting
            and not len(view.running)
            and not self._calls
            and not any(type(decision) is RegisterJob for decision in view.decisions)
        )

    def _translated(self, view: View) -> list[Decision]:
        """Return the decisions in Batsim's form.

        If Batsim does not acknowledge jobs that the policy just registered, the policy decides on these too.
        """
        sent: list[Decision] = []
        seen = 0
        while seen < len(view.decisions):
            news = view.decisions[seen:]
            seen += len(news)
            registered = []
            for decision in news:
                if isinstance(decision, CancelCall):
                    self._cancel(decision)
                    continue
                if isinstance(decision, CallMeLater):
                    self._expect(decision)
                elif isinstance(decision, RegisterJob):
                    registered.append(self._registered(decision))
                sent.append(decision)
            if registered and not self._acknowledged:
                for event in registered:
                    self._job_submitted(view, event)
                self._decide(view)
        return sent

    def _registered(self, decision: RegisterJob) -> JobSubmitted:
        if not self._dynamic:
            raise PolicyFailed(
                f"policy '{self._policy.name}' registers a job, but this Batsim does not allow dynamic jobs",
                where=f"simulated time {decision.timestamp!r}, job {decision.data.job_id}",
                hint="Start Batsim with --enable-dynamic-jobs.",
            )
        return JobSubmitted(decision.timestamp, JobSubmittedData(decision.data.job_id, decision.data.job))

    # -- calls ------------------------------------------------------------------------------------------------------

    def _expect(self, decision: CallMeLater) -> None:
        name = decision.data.id
        if name and any(name == pending for _, _, pending in self._calls):
            raise PolicyFailed(
                f"policy '{self._policy.name}' asks for a call with the name of a pending one", found=name
            )
        heappush(self._calls, (decision.data.timestamp, self._asked_for, name))
        self._asked_for += 1

    def _cancel(self, decision: CancelCall) -> None:
        for at, (due, number, name) in enumerate(self._calls):
            if name and name == decision.data.id:
                self._calls[at] = (due, number, None)
                return
        raise PolicyFailed(
            f"policy '{self._policy.name}' cancels a call that is not pending", found=repr(decision.data.id)
        )

    def _called(self, view: View, event: RequestedCall) -> None:
        name = heappop(self._calls)[2] if self._calls else event.data.id
        if name is not None:
            view.calls.append(name)

    # -- Batsim's notifications and queries -------------------------------------------------------------------------

    def _no_more_jobs(self, view: View, event: NoMoreJobs) -> None:
        super()._no_more_jobs(view, event)
        self._exhausted = True

    def _notified(self, view: View, event: Notify) -> None:
        """Handle changes of machines' availability; ignore all other notifications."""
        kind, text = event.data.get("type"), event.data.get("resources")
        change = _CHANGES.get(kind) if isinstance(kind, str) else None
        if change is None:
            return
        try:
            if not isinstance(text, str):
                raise NodeSetError("not a text")
            units = NodeSet.parse(text)
        except NodeSetError as error:
            raise RemoteProtocolError(
                f"invalid 'resources' in a NOTIFY {kind} ({error})",
                expected="units such as '0-3 8-19'",
                found=repr(text)[:80],
            ) from None
        change(view, units & NodeSet.interval(0, view.units - 1))

    def _asked(self, view: View, event: Query) -> None:
        requests = event.data.get("requests")
        for what, about in (requests if isinstance(requests, dict) else {}).items():
            if what != "estimate_waiting_time":
                logger().warning("Batsim asks for '{}', which is not supported", what)
                continue
            try:
                job_id, size = about["job_id"], int(about["job"]["res"])
            except (KeyError, TypeError, ValueError, OverflowError):
                raise RemoteProtocolError(
                    "invalid query for a waiting time",
                    expected='{"job_id": ..., "job": {"res": ...}}',
                    found=repr(about)[:80],
                ) from None
            wait = estimated_wait(view, size)
            told = {"job_id": job_id, "estimated_waiting_time": min(wait, LONGEST)}
            view.decisions.append(AnswerServer(view.now, {what: told}))


_CHANGES: Final[dict[str, Callable[[View, NodeSet], None]]] = {
    "event_machine_unavailable": View.withdraw,
    "event_machine_available": View.put_back,
}


def estimated_wait(view: View, size: int) -> float:
    """Return the longest wait (s) of a job of ``size`` units submitted now.

    The estimate assumes that all jobs run their full walltime and start in queue order, without backfilling. It is inf
    if a job without a walltime blocks the new job, or the machine is too small.
    """
    time, free = view.now, view.free.count
    ends = [(job.expected_end, job.size) for job in view.running]
    heapify(ends)
    for wanted, walltime in [*((job.size, job.walltime) for job in view.waiting), (size, 0.0)]:
        while free < wanted:
            if not ends:
                return inf
            end, units = heappop(ends)
            time = max(time, end)
            free += units
        free -= wanted
        heappush(ends, (time + walltime, wanted))
    return time - view.now


def _with_nodes(data: SimulationBeginsData) -> SimulationBeginsData:
    """Return ``data`` with the nodes of the machine added.

    They come from a Pipistrelle server's configuration, or else from the hosts.
    """
    told = data.config.get("platform")
    if isinstance(told, dict) and data.platform is None:
        with suppress(ValidationError):  # another server may use this configuration key with another meaning
            platform = convert(told, PlatformInfo)
            if sum(len(NodeSet.parse(pool.units)) for pool in platform.pools) == data.nb_resources:
                return structs.replace(data, platform=platform)
    return structs.replace(data, platform=platform_of(data)) if data.platform is None else data
