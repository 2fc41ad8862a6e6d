"""Simulate a run again, and estimate the starts of the queued jobs at some times.

The simulation is in this process.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from msgspec.structs import replace

from pipistrelle.protocol.base.state import from_json, to_json
from pipistrelle.protocol.decisions import (
    CallMeLater,
    CancelCall,
    ExecuteJob,
    PreemptJob,
    PreemptJobData,
    Stop,
    StopData,
)
from pipistrelle.protocol.events import JobSubmitted, RequestedCall, SimulationEnds
from pipistrelle.protocol.fields import WakeType, package_version
from pipistrelle.protocol.messages import HelloData, Notice, Reply, WelcomeData
from pipistrelle.reports.estimates.ahead import Foreseen, Standstill, foresee, waiting_in
from pipistrelle.reports.explain.looks import Look
from pipistrelle.reports.explain.replay import ExpectedStarts, Witness
from pipistrelle.runs.description.policy import step_of
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution import connection
from pipistrelle.runs.execution.run import RunOptions, run
from pipistrelle.runs.folders.files import RunFiles
from pipistrelle.schedulers.policy.errors import PolicyError
from pipistrelle.schedulers.policy.interfaces import Policy
from pipistrelle.schedulers.policy.jobs import SchedulerJob
from pipistrelle.schedulers.runtime.polling import Polling
from pipistrelle.schedulers.runtime.runtime import Runtime
from pipistrelle.server.errors import Interrupted
from pipistrelle.server.setup.setup import Setup
from pipistrelle.server.transport.in_process import InProcessTransport, Transport

#: queue number of the first job that the scheduler has not seen, higher than all other numbers
_UNSEEN: Final = 1 << 40


@dataclass(frozen=True, slots=True)
class Glimpse:
    """The jobs queued at ``time`` (s), and their expected starts.

    Attributes:
        as_of: time of the scheduler's last decision before ``time`` (s).
        free: number of free units.
        jobs: {id: job} of all queued jobs, including jobs that the scheduler does not know yet.
        looks: {job id: why the job cannot start}, empty unless requested.
        foreseen: the scheduler's decisions, assuming that every job runs for its full walltime.
    """

    time: float
    as_of: float
    free: int
    jobs: dict[str, SchedulerJob]
    looks: dict[str, Look]
    foreseen: Foreseen


def glimpses(
    spec: RunSpec, setup: Setup, files: RunFiles, times: Sequence[float], *, looks: bool = False
) -> list[Glimpse]:
    """Simulate a run again, and return its queued jobs with expected starts.

    They are returned for each of the given times.

    Args:
        spec, setup: the run's description and inputs.
        files: the run's outputs; the repetition must start the same jobs.
        times: times in s, ascending.
        looks: also find why each job cannot start.

    Raises:
        ExplainError: if the repetition starts other jobs.
        PolicyError: if several times are given, and the policy's state cannot be saved.
        EstimateError, PolicyFailed: if the policy fails while its future decisions are simulated.
        RunError: if the run fails before the last of the times.
        KeyboardInterrupt: if the user interrupts.
    """
    watched = _WatchedRuntime(spec, setup, files, times, looks=looks)
    result = run(spec, RunOptions(setup=setup, connection=watched, check=False))
    if isinstance(result.failure, Interrupted):
        raise KeyboardInterrupt from result.failure
    watched.check()
    if result.failure is not None and len(watched.found) < len(times):
        raise result.failure
    return watched.found


class WatchedScheduler(ABC):
    """The scheduler of a repeated run, and the connection to it.

    Subclasses watch its replies.
    """

    _runtime: Runtime

    @contextmanager
    def open(self, spec: RunSpec, setup: Setup, interrupted: connection.Interrupted) -> Iterator[Transport]:
        """Yield a transport that calls the scheduler."""
        yield InProcessTransport(self, interrupted)

    def hello(self) -> HelloData:
        """Return the scheduler's HELLO."""
        return self._runtime.hello()

    def welcome(self, data: WelcomeData) -> None:
        """Forward the server's WELCOME to the scheduler."""
        self._runtime.welcome(data)

    def state(self) -> Any:
        """Return the scheduler's state."""
        return self._runtime.state()

    def restore(self, state: Any) -> None:
        """Restore the scheduler's state."""
        self._runtime.restore(state)

    @abstractmethod
    def answer(self, notice: Notice) -> Reply:
        """Return the scheduler's reply to a notice."""


class _WatchedRuntime(WatchedScheduler):
    """The scheduler of a repeated run.

    It also makes estimates at the requested times.
    """

    def __init__(self, spec: RunSpec, setup: Setup, files: RunFiles, times: Sequence[float], *, looks: bool) -> None:
        self._spec = spec
        self._cancels = setup.cancels
        self._to_old_place = setup.reliability is None or setup.reliability.requeue == "original"
        self._files = files
        self._times = list(times)
        self._several = len(times) > 1
        self._looks = looks
        self._runtime, self._policy = self._make()
        self._welcomed: WelcomeData | None = None
        self._expected = ExpectedStarts(files.starts)
        #: event types for which the last reply requests notices
        self._wake: tuple[WakeType, ...] | None = None
        #: requested calls: (when (s), id)
        self._calls: list[tuple[float, str]] = []
        #: preempted jobs in their grace period: (its end (s), the decision)
        self._going: list[tuple[float, PreemptJobData]] = []
        self._seq = 0
        self.found: list[Glimpse] = []
        #: error of an estimate, stored because the last notice must not raise
        self._failure: Exception | None = None

    def hello(self) -> HelloData:
        """Return the scheduler's HELLO without wake conditions, because estimates support only the wake filter."""
        told = super().hello()
        return replace(told, features=tuple(one for one in told.features if one != "wake_when"))

    def welcome(self, data: WelcomeData) -> None:
        """Forward the server's WELCOME to the scheduler."""
        self._welcomed = data
        super().welcome(data)

    def answer(self, notice: Notice) -> Reply:
        """Make the estimates for times before this notice, then reply to it.

        After the last estimate, end the run.
        """
        over = any(type(event) is SimulationEnds for event in notice.events)
        while self._times and (notice.now > self._times[0] or over) and self._failure is None:
            try:
                self.found.append(self._look(self._times.pop(0), notice))
            except Exception as error:
                self._failure = error
        if not self._times or self._failure is not None:
            return Reply(notice.seq, notice.now, [Stop(notice.now, StopData("all moments are known"))])
        for event in notice.events:
            if type(event) is RequestedCall:
                self._calls.remove((event.timestamp, event.data.id))
        self._going = [one for one in self._going if one[0] > notice.now]
        reply = self._runtime.answer(notice)
        self._wake, self._seq = reply.wake, notice.seq
        for decision in reply.events:
            if type(decision) is ExecuteJob:
                self._expected.started(decision.data.job_id, notice.now)
            elif type(decision) is CallMeLater:
                self._calls.append((decision.data.timestamp, decision.data.id))
            elif type(decision) is PreemptJob:
                self._going.append((notice.now + decision.data.grace, decision.data))
            elif type(decision) is CancelCall:
                self._calls = [one for one in self._calls if one[1] != decision.data.id]
        return reply

    def check(self) -> None:
        """Raise ExplainError if the starts differ from the original run.

        If an estimate failed, raise its error.
        """
        self._expected.check(self._files)
        if self._failure is not None:
            raise self._failure

    def _make(self) -> tuple[Runtime, Policy]:
        """Return a new scheduler and its policy; the policy does not poll."""
        policy = self._spec.make_policy(warn=False, polls=False)
        step = None if self._spec.poll is None else step_of(self._spec.poll)
        polling: Policy = policy if step is None else Polling(policy, step)
        return Runtime(polling, package_version(), cancellations=self._cancels), policy

    def _copies(self, wanted: int) -> list[tuple[Runtime, Policy]]:
        """Return ``wanted`` copies of the scheduler in its present state.

        If the scheduler's state cannot be saved, each "copy" is the scheduler itself.
        """
        assert self._welcomed is not None
        try:
            state = to_json(self._runtime.state())
        except PolicyError:
            if self._several:
                raise
            return [(self._runtime, self._policy)] * wanted
        found = []
        for _ in range(wanted):
            runtime, policy = self._make()
            runtime.welcome(self._welcomed)
            runtime.restore(from_json(state))
            found.append((runtime, policy))
        return found

    def _look(self, time: float, notice: Notice) -> Glimpse:
        """Return the queued jobs at ``time`` (s) with their expected starts.

        This is done before ``notice`` is answered.
        """
        view = self._runtime.view
        assert view is not None
        untold = [event for event in notice.events if event.timestamp <= time and type(event) is not SimulationEnds]
        waiting = waiting_in(view, untold)
        if not waiting:
            return Glimpse(time, view.now, view.free.count, {}, {}, Foreseen({}, {}))
        fresh = [
            SchedulerJob.submitted(event.data.job, _UNSEEN + number, event.timestamp)
            for number, event in enumerate(untold)
            if isinstance(event, JobSubmitted)
        ]
        jobs = {job.id: job for job in (*view.waiting.each(), *view.set_aside, *fresh)}
        as_of, free = view.now, view.free.count
        copies = self._copies(2 if self._looks else 1)
        seen: dict[str, Look] = {}
        if self._looks:
            runtime, policy = copies.pop(0)
            assert runtime.view is not None
            if runtime is not self._runtime:
                for job in fresh:
                    runtime.view.submit(job, job.submit)
            seen = Witness(policy).moment(runtime.view, fresh)
        calls, going = list(self._calls), list(self._going)
        stand = Standstill(time, untold, self._wake, calls, going, self._to_old_place, self._seq)
        foreseen = foresee(copies[0][0], stand)
        return Glimpse(time, as_of, free, jobs, seen, foreseen)
