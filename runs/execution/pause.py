"""A run between two notices: its whole state as one plain value, and whether server and scheduler agree."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, runtime_checkable

from pipistrelle.protocol.base.errors import PipistrelleError, legible
from pipistrelle.protocol.events import Event, JobCompleted, JobSubmitted
from pipistrelle.protocol.fields import TAKEOVER, package_version
from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.description.spec_file import policy_digest
from pipistrelle.schedulers.policy.view import View
from pipistrelle.schedulers.runtime.runtime import Runtime
from pipistrelle.server.engine.engine import Engine
from pipistrelle.server.simulation.simulate import Simulation
from pipistrelle.server.transport.in_process import InProcessTransport, Transport, bare

#: of the plain value; another one has another meaning
FORMAT: Final = 4
#: characters of a scheduler's name that a message shows
_SHOWN: Final = 100
#: {what a state is checked by: what it is, in words}
_MARKS: Final = {
    "format": "format of states",
    "pipistrelle": "version of pipistrelle",
    "run": "run (platform, workload or their options)",
    "scheduler": "scheduler",
    "policy": "policy (options of the scheduler)",
    "features": "features of the protocol",
}


class StateError(PipistrelleError):
    """A state cannot be taken, or is not that of the run that shall go on from it."""


@runtime_checkable
class Saving(Protocol):
    """A transport by which a scheduler of another process gives its state."""

    def save(self) -> str | None:
        """Return it, as JSON; None if it gives none."""


@dataclass(frozen=True, slots=True)
class Pause:
    """A run after a reply was carried out and before time goes on."""

    spec: RunSpec
    simulation: Simulation
    transport: Transport

    @property
    def now(self) -> float:
        """Simulated time in seconds."""
        return self.simulation.engine.now

    @property
    def notices(self) -> int:
        """How many notices the scheduler has answered."""
        return self.simulation.engine.clockwork.seq

    def state(self) -> dict[str, Any]:
        """Return all that decides how the run goes on, and how far its outputs are, as plain values.

        `pipistrelle.protocol.base.state.to_json` writes them; `restore` goes on from them. Of a scheduler in another
        process that gives its state, that is a text under ``saved``, for who greets it when the run goes on. One that
        gives none is brought to where it was by being told again what it was told.

        Raises
        ------
        PolicyError
            when its policy does not tell its state.
        OutputFailed
            when what is left to write cannot be written.
        SchedulerFailed
            when a scheduler in another process does not answer.
        """
        transport = bare(self.transport)
        scheduler = transport.scheduler.state() if isinstance(transport, InProcessTransport) else None
        saved = transport.save() if isinstance(transport, Saving) else None
        return {**self._marks(), "server": self.simulation.state(), "state": scheduler, "saved": saved}

    def restore(self, state: dict[str, Any]) -> None:
        """Let the run, which has not begun, go on from the state of one of the same description.

        Raises
        ------
        StateError
            when it is of another run, of another scheduler, or of another version.
        OutputFailed
            when the outputs so far are not there.
        """
        self._check(state, _MARKS)
        transport = bare(self.transport)
        if isinstance(transport, InProcessTransport):
            if state["state"] is None:
                raise StateError("the scheduler's state is not in it: it ran in a process of its own")
            transport.scheduler.restore(state["state"])
        self.simulation.restore(state["server"])

    def take_over(self, state: dict[str, Any], past: Callable[[Simulation], list[Event]]) -> None:
        """Let the run's scheduler, which is another one, go on from the state of a run of the same workload.

        Parameters
        ----------
        past
            returns which jobs have been submitted, started and ended, once the simulation is as it was.

        Raises
        ------
        StateError
            when the state is of another run or version, or the scheduler cannot take it over.
        OutputFailed
            when the outputs so far are not there.
        """
        self._check(state, {key: _MARKS[key] for key in ("format", "pipistrelle", "run")})
        hello, engine = self.simulation.hello, self.simulation.engine
        who = f"scheduler '{legible(hello.name, _SHOWN)}' cannot take a run over"
        if TAKEOVER not in hello.features:
            raise StateError(
                f"{who}: it was not there when jobs were started that run now",
                expected=f"the feature '{TAKEOVER}' in its HELLO",
                found=" ".join(hello.features) or "no feature at all",
                hint="protocol/SPEC.md, 'Taking over', tells what such a scheduler is told.",
            )
        told, wanted = ("failures" in some for some in (state["features"], self.simulation.welcome.features))
        if engine.lives.retries and told != wanted:
            raise StateError(
                f"{who}: nodes fail in it, and of the two schedulers one alone is told of that",
                expected=f"one {'with' if told else 'without'} the feature 'failures'",
                hint="Jobs start on nodes that are down where the scheduler does not know of them, else they do not.",
            )
        if "recorded" in self.simulation.welcome.features and "recorded" not in state["features"]:
            raise StateError(
                f"{who}: it goes by what the log recorded, and the jobs so far have not been told of that",
                hint="A run under it begins anew; another scheduler can take that over.",
            )
        told, wanted = ("preemption" in some for some in (state["features"], self.simulation.welcome.features))
        if told != wanted:
            raise StateError(
                f"{who}: of the two schedulers one alone may preempt, and jobs live otherwise then",
                expected=f"one {'with' if told else 'without'} the feature 'preemption'",
                hint="Begin the run anew, under either scheduler.",
            )
        self.transport.send(engine.introduction())
        if self.transport.receive().events:
            raise StateError(f"{who}: it decides in its reply to notice 1, before it knows how things stand")
        self.simulation.restore(state["server"])
        engine.hand_over(lambda: past(self.simulation))

    def _check(self, state: dict[str, Any], what_counts: Mapping[str, str]) -> None:
        """Raise StateError if a state is of another run, as far as that counts."""
        marks = self._marks()
        for key, what in what_counts.items():
            found = state.get(key) if isinstance(state, dict) else None
            if found != marks[key]:
                raise StateError(
                    f"this is the state of another {what}" if found is not None else "this is no state of a run",
                    expected=str(marks[key]),
                    found=str(found),
                    hint="A run goes on from a state of its own, under the version that has taken it.",
                )

    def check_invariants(self) -> None:
        """Assert that units, jobs and their holders agree, and the scheduler's view with them; for tests."""
        runtime = self.transport.scheduler if isinstance(self.transport, InProcessTransport) else None
        view = runtime.view if isinstance(runtime, Runtime) else None
        check_invariants(self.simulation.engine, view)

    def _marks(self) -> dict[str, Any]:
        """Return what a state is checked by before a run goes on from it."""
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
    """Assert that engine and view, between a reply and the next notice, are of the same machine with the same jobs.

    What the scheduler was not told yet is reckoned in.
    """
    engine.check_invariants()
    if view is None:
        return
    cluster, untold = engine.cluster, engine.clockwork.outbox
    submitted = {event.data.job_id for event in untold if isinstance(event, JobSubmitted)}
    ended = {event.data.job_id: event.data.alloc for event in untold if isinstance(event, JobCompleted)}
    waiting = {job.id for job in (*view.waiting.each(), *view.set_aside)}
    assert waiting == cluster.waiting.keys() - submitted, f"they wait for one side: {waiting ^ cluster.waiting.keys()}"
    running = {job.id: str(job.alloc) for job in view.running}
    expected = {job.id: str(job.alloc) for job in cluster.running.values()} | ended
    assert running == expected, f"they run for one side: {running.items() ^ expected.items()}"
    held = NodeSet.EMPTY
    for job in view.running:
        assert held.isdisjoint(job.alloc), f"{job.id} holds what others hold: {job.alloc}"
        assert len(job.alloc) == job.size
        held |= job.alloc
    free, every = view.free.snapshot(), NodeSet.interval(0, view.units - 1)
    assert len(free) == view.free.count
    assert free == every - held - view.unavailable, f"free is {free}, held {held}, out of service {view.unavailable}"
    assert view.lost == len(held & view.unavailable)
    if not any(type(event).__name__.startswith(("Nodes", "Maintenance")) for event in untold):
        blocked = cluster.ledger.blocked
        assert view.unavailable == blocked, f"out of service: {view.unavailable} for the view, {blocked} for the server"
