"""Save, restore and check the state of a run.

This is done between two messages to the scheduler.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol, runtime_checkable

from pipistrelle.protocol.base.errors import PipistrelleError, legible, shown
from pipistrelle.protocol.events import Event, JobCompleted, JobSubmitted
from pipistrelle.protocol.fields import TAKEOVER, package_version
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.description.spec_file import policy_digest
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.runtime.runtime import Runtime
from pipistrelle.server.engine.engine import Engine
from pipistrelle.server.hosts.node_ledger import NodeLedger
from pipistrelle.server.simulation.simulate import Simulation
from pipistrelle.server.transport.in_process import InProcessTransport, Transport, bare

#: version of the format in which states are saved
FORMAT: Final = 4
#: maximum characters shown of a scheduler's name
_SHOWN: Final = 100
#: errors that parts of a run raise for values that they did not save
_UNFIT: Final = (LookupError, TypeError, ValueError, AttributeError, AssertionError, ArithmeticError)
#: {key that must be equal in a state and a run: its name in an error}
_MARKS: Final = {
    "format": "format of states",
    "pipistrelle": "version of pipistrelle",
    "run": "run (platform, workload or their options)",
    "scheduler": "scheduler",
    "policy": "policy (options of the scheduler)",
    "features": "features of the protocol",
}


class StateError(PipistrelleError):
    """A state cannot be saved, or does not fit the run that should continue from it."""


@contextmanager
def restoring() -> Iterator[None]:
    """Turn errors about missing or wrong values of a saved state into StateError."""
    try:
        yield
    except _UNFIT as error:
        raise StateError(
            "the saved state cannot be restored",
            found=shown(f"{type(error).__name__}: {error}"),
            hint="The snapshot is damaged, or another program wrote it.",
        ) from error


@runtime_checkable
class Saving(Protocol):
    """A transport whose scheduler, in another process, can save its state."""

    def save(self) -> str | None:
        """Return the scheduler's state as JSON; None if the scheduler saves no state."""


@dataclass(frozen=True, slots=True)
class Pause:
    """A run between two messages (notices) to the scheduler.

    At this moment its state can be saved. All decisions of the last reply are carried out, and simulated time has not
    advanced since then.
    """

    spec: RunSpec
    simulation: Simulation
    transport: Transport

    @property
    def now(self) -> float:
        """Return the simulated time (s)."""
        return self.simulation.engine.now

    @property
    def notices(self) -> int:
        """Return the number of notices that the scheduler has answered."""
        return self.simulation.engine.clockwork.seq

    def state(self) -> dict[str, Any]:
        """Return everything that decides how the run continues, as plain values.

        The state includes how much of the outputs is written. `pipistrelle.protocol.base.state.to_json` writes it to a
        file, and `restore` continues from it. If a scheduler process saves its own state, the key ``saved`` has that
        state, and a resumed run sends it to the scheduler. Otherwise a resumed run replays all earlier notices.

        Raises:
            PolicyError: the policy, in this process, cannot save its state.
            OutputFailed: pending output cannot be written.
            SchedulerFailed: a scheduler in another process does not answer.
        """
        transport = bare(self.transport)
        scheduler = transport.scheduler.state() if isinstance(transport, InProcessTransport) else None
        saved = transport.save() if isinstance(transport, Saving) else None
        return {**self._marks(), "server": self.simulation.state(), "state": scheduler, "saved": saved}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from the saved state of a run with the same description.

        This run must be new.

        Raises:
            StateError: the state is of another run, scheduler or version.
            OutputFailed: the outputs so far are missing.
        """
        self._check(state, _MARKS)
        transport = bare(self.transport)
        if isinstance(transport, InProcessTransport):
            if state["state"] is None:
                raise StateError(
                    "the scheduler's state is not in the snapshot, because it ran in a process of its own",
                    hint="Resume with the same scheduler process.",
                )
            with restoring():
                transport.scheduler.restore(state["state"])
        with restoring():
            self.simulation.restore(state["server"])

    def take_over(self, state: dict[str, Any], past: Callable[[Simulation], list[Event]]) -> None:
        """Continue, under another scheduler, from a saved state of an earlier run.

        Both runs have the same workload. This run has the new scheduler.

        Args:
            past: called when the simulation is restored; returns the past submissions, starts and ends of jobs.

        Raises:
            StateError: the state is of another run or version, or the scheduler cannot take over the run.
            OutputFailed: the outputs so far are missing.
        """
        self._check(state, {key: _MARKS[key] for key in ("format", "pipistrelle", "run")})
        hello, engine = self.simulation.hello, self.simulation.engine
        who = f"scheduler '{legible(hello.name, _SHOWN)}' cannot take a run over"
        if TAKEOVER not in hello.features:
            raise StateError(
                f"{who}: it does not support taking over jobs that are running",
                expected=f"the feature '{TAKEOVER}' in its HELLO",
                found=" ".join(hello.features) or "no feature at all",
                hint="See 'Taking over' in protocol/SPEC.md.",
            )
        told, wanted = ("failures" in some for some in (state["features"], self.simulation.welcome.features))
        if engine.lives.retries and told != wanted:
            raise StateError(
                f"{who}: nodes fail in this run, and only one of the two schedulers has the feature 'failures'",
                expected=f"one {'with' if told else 'without'} the feature 'failures'",
                hint="Only a scheduler without the feature may start jobs on nodes that are down.",
            )
        if "recorded" in self.simulation.welcome.features and "recorded" not in state["features"]:
            raise StateError(
                f"{who}: it needs the log's recorded times, and this run's earlier jobs were submitted without them",
                hint="Start a new run under this scheduler. Another scheduler can later take over that run.",
            )
        told, wanted = ("preemption" in some for some in (state["features"], self.simulation.welcome.features))
        if told != wanted:
            raise StateError(
                f"{who}: only one of the two schedulers may preempt, which changes how jobs run",
                expected=f"one {'with' if told else 'without'} the feature 'preemption'",
                hint="Start the run again under either scheduler.",
            )
        self.transport.send(engine.introduction())
        if self.transport.receive().events:
            raise StateError(f"{who}: its reply to notice 1 has decisions, before it knows the run's state")
        with restoring():
            self.simulation.restore(state["server"])
        engine.hand_over(lambda: past(self.simulation))

    def _check(self, state: dict[str, Any], what_counts: Mapping[str, str]) -> None:
        marks = self._marks()
        for key, what in what_counts.items():
            found = state.get(key) if isinstance(state, dict) else None
            if found != marks[key]:
                raise StateError(
                    f"this is the state of another {what}" if found is not None else "this is not a run's state",
                    expected=str(marks[key]),
                    found=str(found),
                    hint="Continue from a state of the same run, with the version that saved it.",
                )

    def check_invariants(self) -> None:
        """Assert that the engine and the scheduler's view agree on jobs and units.

        Tests use this method.
        """
        runtime = self.transport.scheduler if isinstance(self.transport, InProcessTransport) else None
        view = runtime.view if isinstance(runtime, Runtime) else None
        check_invariants(self.simulation.engine, view)

    def _marks(self) -> dict[str, Any]:
        simulation = self.simulation
        return {
            "format": FORMAT,
            "pipistrelle": package_version(),
            "run": simulation.run_id,
            "scheduler": simulation.hello.name,
            "policy": policy_digest(self.spec),
            "features": list(simulation.welcome.features),
        }


def check_invariants(engine: Engine, view: View | None) -> None:
    """Assert that the engine and the scheduler's view agree on jobs and units.

    Call this after a reply has been carried out. Events that the scheduler has not received yet are taken into account.
    """
    engine.check_invariants()
    if view is None:
        return
    cluster, untold = engine.cluster, engine.clockwork.outbox
    submitted = {event.data.job_id for event in untold if isinstance(event, JobSubmitted)}
    ended = {event.data.job_id: event.data.alloc for event in untold if isinstance(event, JobCompleted)}
    waiting = {job.id for job in (*view.waiting.each(), *view.set_aside)}
    assert waiting == cluster.waiting.keys() - submitted, f"queued on one side: {waiting ^ cluster.waiting.keys()}"
    running = {job.id: str(job.alloc) for job in view.running}
    expected = {job.id: str(job.alloc) for job in cluster.running.values()} | ended
    assert running == expected, f"running on one side: {running.items() ^ expected.items()}"
    if view.shared is None:
        _check_units(view)
    else:
        view.shared.check(view.running)
        free, every = view.free.snapshot(), NodeSet.interval(0, view.units - 1)
        assert free == every - view.unavailable, f"in service are {free}, out of service {view.unavailable}"
        assert isinstance(cluster.ledger, NodeLedger)
        if not ended:
            view.shared.free.check()
            assert (view.shared.free.amounts == cluster.ledger.free.amounts).all()
            assert (view.shared.free.gpus == cluster.ledger.free.gpus).all()
            assert view.shared.free.licenses == cluster.ledger.free.licenses
    if not any(type(event).__name__.startswith(("Nodes", "Maintenance")) for event in untold):
        blocked = cluster.ledger.blocked
        assert view.unavailable == blocked, f"unavailable: {view.unavailable} for the view, {blocked} for the server"


def _check_units(view: View) -> None:
    """Assert that each unit is in exactly one state.

    The states are: free, held by a job, and out of service.
    """
    held = NodeSet.EMPTY
    for job in view.running:
        assert held.isdisjoint(job.alloc), f"{job.id} holds units of other jobs: {job.alloc}"
        assert len(job.alloc) == job.size
        held |= job.alloc
    free, every = view.free.snapshot(), NodeSet.interval(0, view.units - 1)
    assert len(free) == view.free.count
    assert free == every - held - view.unavailable, f"free is {free}, held {held}, unavailable {view.unavailable}"
    assert view.lost == len(held & view.unavailable)
