"""Fixtures of the tests of the server: an engine played by hand, with the rules of time checked at every step."""

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

import pytest

from pipistrelle.platforms.description import Platform, homogeneous
from pipistrelle.platforms.failures.outage import Outage, Outages
from pipistrelle.platforms.maintenance.plan import MaintenancePlan
from pipistrelle.platforms.maintenance.text import parse_maintenance
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
    Malformed,
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
from pipistrelle.protocol.events import (
    DecisionRejected,
    Event,
    JobCompleted,
    JobDescription,
    JobKilled,
    JobStarted,
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
)
from pipistrelle.protocol.fields import Feature, PreemptMode, WakeType
from pipistrelle.protocol.messages import Notice, Reply, WakeWhen
from pipistrelle.server.engine.dependencies import Condition
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.outages.reliability import Reliability
from pipistrelle.server.outputs.attempt_recorder import ATTEMPT_COLUMNS, attempt_line
from pipistrelle.server.simulation.assembly import native_engine

#: (name, submit, size, runtime, walltime); times in seconds
Row = tuple[str, float, int, float, float]


def full(name: str) -> str:
    """Return a job's id; names without a prefix are the workload's."""
    return name if "!" in name else f"w0!{name}"


def line(event: Event) -> str:
    """Return an event as one short line: time, type, subject."""
    data: Any = getattr(event, "data", None)
    match event:
        case SimulationBegins():
            text = f"begins {data.nb_resources}"
        case SimulationEnds():
            text = f"ends {data.reason}"
        case JobSubmitted():
            text = f"submitted {data.job_id}"
        case JobCompleted():
            text = f"ended {data.job_id} {data.job_state.removeprefix('COMPLETED_')}"
        case JobKilled():
            shares = {name: f"={data.job_progress[name].progress:g}" for name in data.job_progress}
            text = "killed " + " ".join(name + shares.get(name, "") for name in data.job_ids)
        case RequestedCall():
            text = f"call '{data.id}'"
        case NoMoreJobs():
            text = "no_more_jobs"
        case DecisionRejected():
            text = f"rejected {data.reply_to}[{data.index}] {data.code}"
        case JobStarted():
            text = f"started {data.job_id} on {data.alloc}"
        case NodesFailed():
            text = f"failed {data.nodes} ({data.cause})"
        case NodesRepaired():
            text = f"repaired {data.nodes}"
        case MaintenanceAnnounced():
            text = f"announced {data.id} {data.begin:g}-{data.end:g} {data.nodes}"
        case MaintenanceBegins():
            text = f"maintenance {data.id} begins {data.nodes}"
        case MaintenanceEnds():
            text = f"maintenance {data.id} ends {data.nodes}"
        case _:
            raise AssertionError(f"no such event: {event}")
    return f"{event.timestamp:g} {text.replace('w0!', '')}"


class Play:
    """An engine, a scheduler's side of it, and the engine's log as lines."""

    def __init__(
        self,
        units: int,
        rows: Sequence[Row] = (),
        *,
        features: Sequence[Feature] = (),
        strict: bool = False,
        observers: Sequence[Observer] = (),
        reliability: Reliability | None = None,
        platform: Platform | None = None,
        conditions: dict[str, tuple[Condition, ...]] | None = None,
        until: float = inf,
    ) -> None:
        jobs = (
            Job(full(name), float(submit), size, float(walltime), float(runtime), f"p{name}")
            for name, submit, size, runtime, walltime in rows
        )
        self.engine = native_engine(
            SimulationBeginsData(units, workloads={"w0": "test"}),
            platform or homogeneous(units, "m"),
            jobs,
            features=features,
            strict=strict,
            observers=observers,
            reliability=reliability,
            conditions=conditions,
            until=until,
        )
        self.notice: Notice | None = None
        #: no notice may be dated before this time
        self.not_before = 0.0

    @property
    def now(self) -> float:
        """Simulated time in seconds."""
        return self.engine.now

    def advance(self) -> list[str] | None:
        """Return the lines of the next notice, None when the run is over."""
        before = self.notice
        notice = self.notice = self.engine.advance()
        self.engine.check_invariants()
        if notice is None:
            return None
        times = [event.timestamp for event in notice.events]
        assert notice.events or "lookahead" in self.engine.clockwork.features, "a notice tells something"
        assert notice.seq == (0 if before is None else before.seq) + 1
        assert notice.now == self.engine.now >= self.not_before
        assert times == sorted(times)
        assert all(time <= notice.now for time in times[-1:])
        return [line(event) for event in notice.events]

    def apply(
        self,
        *decisions: Decision,
        now: float | None = None,
        wake: tuple[WakeType, ...] | None = None,
        when: WakeWhen | None = None,
    ) -> None:
        """Answer the last notice."""
        assert self.notice is not None
        reply = Reply(self.notice.seq, self.now if now is None else now, list(decisions), wake, wake_when=when)
        self.not_before = max([self.now, reply.now, *(decision.timestamp for decision in decisions)])
        self.engine.apply(reply)
        self.engine.check_invariants()

    def say(
        self,
        *decisions: Decision,
        now: float | None = None,
        wake: tuple[WakeType, ...] | None = None,
        when: WakeWhen | None = None,
    ) -> list[str] | None:
        """Answer the last notice and return the lines of the next."""
        self.apply(*decisions, now=now, wake=wake, when=when)
        return self.advance()

    def begin(self) -> list[str] | None:
        """Take the notice of the beginning, answer it with nothing and return the lines of the next."""
        self.advance()
        return self.say()

    def end(self) -> list[str]:
        """Return the lines of the last notice."""
        self.notice = self.engine.end("completed")
        self.engine.close()
        return [line(event) for event in self.notice.events]

    # -- decisions, by default with the present time -------------------------------------------------------------------

    def _at(self, at: float | None) -> float:
        return self.now if at is None else float(at)

    def execute(self, name: str, alloc: str, at: float | None = None) -> Decision:
        """Return the decision to start a job."""
        return ExecuteJob(self._at(at), ExecuteJobData(full(name), alloc))

    def reject(self, name: str, at: float | None = None) -> Decision:
        """Return the decision to refuse a job."""
        return RejectJob(self._at(at), RejectJobData(full(name)))

    def kill(self, *names: str, at: float | None = None) -> Decision:
        """Return the decision to end jobs."""
        return KillJob(self._at(at), KillJobData(tuple(full(name) for name in names)))

    def preempt(self, name: str, mode: PreemptMode = "requeue", grace: float = 0.0) -> Decision:
        """Return the decision to take a job's units away."""
        return PreemptJob(self.now, PreemptJobData(full(name), mode, float(grace)))

    def call(self, time: float, call_id: str = "", at: float | None = None) -> Decision:
        """Return the decision that requests a call."""
        return CallMeLater(self._at(at), CallMeLaterData(float(time), call_id))

    def cancel(self, call_id: str, at: float | None = None) -> Decision:
        """Return the decision to take a call back."""
        return CancelCall(self._at(at), CancelCallData(call_id))

    def register(
        self, name: str, size: int, runtime: float, walltime: float = inf, at: float | None = None, inner: str = ""
    ) -> Decision:
        """Return the decision to submit a job of the scheduler's own."""
        job = JobDescription(inner or name, size, None if walltime == inf else walltime)
        return RegisterJob(self._at(at), RegisterJobData(name, job, float(runtime)))

    def metadata(self, name: str, text: str, at: float | None = None) -> Decision:
        """Return the decision to attach a text to a job."""
        return SetJobMetadata(self._at(at), SetJobMetadataData(full(name), text))

    def stop(self, reason: str = "", at: float | None = None) -> Decision:
        """Return the decision to end the run."""
        return Stop(self._at(at), StopData(reason))

    def malformed(self, at: float | None = None) -> Decision:
        """Return the placeholder of a decision that could not be read."""
        return Malformed(self._at(at), decision="DANCE", code="unknown_type", message="no such type")


class Diary(Observer):
    """Writes down every hook's call as a line."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def _write(self, now: float, text: str) -> None:
        self.lines.append(f"{now:g} {text.replace('w0!', '')}")

    def begins(self, now: float, units: int) -> None:
        """Write the line."""
        self._write(now, f"begins {units}")

    def submitted(self, now: float, job: Job) -> None:
        """Write the line."""
        self._write(now, f"submitted {job.id}")

    def started(self, now: float, job: Job) -> None:
        """Write the line."""
        self._write(now, f"started {job.id} {job.alloc}")

    def ended(self, now: float, job: Job) -> None:
        """Write the line."""
        self._write(now, f"ended {job.id} {job.state}")

    def decided(self, now: float, decision: Decision, rejected: Any) -> None:
        """Write the line."""
        tag = str(decision.__struct_config__.tag)
        self._write(now, f"decided {tag} {'done' if rejected is None else rejected.code}")

    def settled(self, now: float, idle: int, down: int) -> None:
        """Write the line."""
        self._write(now, f"settled {idle}" + (f" down {down}" if down else ""))

    def ends(self, now: float, reason: str, message: str) -> None:
        """Write the line."""
        self._write(now, f"ends {reason}")


@pytest.fixture(scope="session")
def play() -> type[Play]:
    """Return the class of engines played by hand: play(units, [(name, submit, size, runtime, walltime), ...])."""
    return Play


@pytest.fixture(scope="session")
def event_line() -> Callable[[Event], str]:
    """Return the function that writes an event as a line."""
    return line


@pytest.fixture
def diary() -> Diary:
    """Return an observer that records every call."""
    return Diary()


@pytest.fixture(scope="session")
def make_job() -> Callable[..., Job]:
    """Return a function that makes a job: make_job("1", submit=0, size=2, runtime=10, walltime=20)."""

    def make(
        name: str = "1",
        *,
        submit: float = 0.0,
        size: int = 1,
        runtime: float = 10.0,
        walltime: float = 20.0,
        profile: str = "p",
    ) -> Job:
        return Job(full(name), submit, size, walltime, runtime, profile)

    return make


class Attempts(Observer):
    """Keeps the attempts that have ended, as the columns of their lines."""

    def __init__(self) -> None:
        self.lines: list[dict[str, str]] = []

    def ended(self, now: float, job: Job) -> None:
        """Keep it."""
        if job.alloc:
            self.lines.append(dict(zip(ATTEMPT_COLUMNS.split(","), attempt_line(job).strip().split(","), strict=True)))

    def of(self, *columns: str) -> list[tuple[Any, ...]]:
        """Return some columns of all, numbers as such."""

        def value(column: str, text: str) -> Any:
            return text if column == "job_id" or not text.replace(".", "").isdecimal() else float(text)

        return [tuple(value(column, line[column]) for column in columns) for line in self.lines]


@pytest.fixture
def attempts() -> Attempts:
    """Return an observer that keeps the lines of attempts."""
    return Attempts()


@pytest.fixture
def failing_game(play: Any) -> Callable[..., Any]:
    """Return a function that makes a game with these outages and rules of maintenance."""

    def make(
        units: int, rows: list[Any], outages: Any = (), *, aware: bool = True, rules: Any = (), **options: Any
    ) -> Any:
        named = {key: options.pop(key) for key in ("observers", "platform", "conditions") if key in options}
        machine = named.get("platform") or homogeneous(units, "m")
        plan = tuple(parse_maintenance(rule, machine, where="test", epoch=None, timezone=None) for rule in rules)
        if outages:
            options["outages"] = Outages.of(Outage(*row) for row in outages)
        reliability = Reliability(maintenance=MaintenancePlan(plan) if plan else None, **options)
        return play(units, rows, features=("failures",) if aware else (), reliability=reliability, **named)

    return make
