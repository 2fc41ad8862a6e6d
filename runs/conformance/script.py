"""The script of a conformance test: jobs, machine, changed messages, expectations."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from pipistrelle.platforms.description import Platform, homogeneous
from pipistrelle.platforms.failures.outage import Outage, Outages
from pipistrelle.platforms.maintenance.plan import MaintenancePlan
from pipistrelle.platforms.maintenance.text import parse_maintenance
from pipistrelle.protocol.decisions import Decision
from pipistrelle.protocol.fields import EndReason
from pipistrelle.protocol.messages import Notice, Reply
from pipistrelle.runs.description.setup import Inputs
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.server.outages.reliability import Reliability
from pipistrelle.traces.batsim.workload import parse_batsim
from pipistrelle.traces.workload import CANCELLED_AFTER

Dialect = Literal["native", "batsim"]
#: returns the message to send instead of the server's message; both are plain JSON values
Alter = Callable[[dict[str, Any]], dict[str, Any]]


class ScriptJob(NamedTuple):
    """A job in a conformance test; times in seconds.

    Attributes:
        nodes: number of nodes; ignored if there is a request, because the request says the number.
        walltime: requested walltime; None: no limit.
        cancelled_after: time from submission until the user cancels the job; None: never.
        request: what the job takes on nodes with resources, as in a workload file; None: whole nodes.
    """

    name: str
    submit: float
    nodes: int
    walltime: float | None
    runtime: float
    cancelled_after: float | None = None
    request: Mapping[str, Any] | None = None


@dataclass(slots=True)
class Meddling:
    """Changes the scheduler's replies during a conformance test.

    It plays an operator who interferes, or a faulty scheduler.

    Attributes:
        decide: function of a notice and the scheduler's reply; returns the decisions that the server carries out
            instead of those in the reply.
        added: all decisions so far that came from ``decide`` and not from the scheduler.
    """

    decide: Callable[[Notice, Reply], Sequence[Decision]]
    added: list[Decision] = field(default_factory=list)

    def apply(self, notice: Notice, reply: Reply) -> Reply:
        """Return the reply with its decisions changed; the server carries out this reply."""
        decisions = list(self.decide(notice, reply))
        own = {id(decision) for decision in reply.events}
        self.added += [decision for decision in decisions if id(decision) not in own]
        return Reply(reply.reply_to, reply.now, decisions, reply.wake, reply.leaves, reply.keeps, reply.wake_when)

    def is_added(self, decision: Decision) -> bool:
        """Return whether a decision came from the test and not from the scheduler."""
        return any(decision is one for one in self.added)


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A conformance test: a difficult situation, and the outcome that a correct scheduler gives.

    Attributes:
        name: words joined by hyphens.
        situation: a sentence: what happens, and what the scheduler must do.
        jobs: the workload; may be empty.
        nodes: number of identical nodes, if there is no ``platform``.
        platform: a machine whose nodes are shared by jobs; None: `nodes` whole nodes. Without the feature ``resources``
            in the scheduler's HELLO, the test is skipped.
        absent: {dialect: why the test does not apply to this dialect of the protocol}.
        outages, maintenance: outages of nodes, and rules as for ``--maintenance``.
        until: when the server ends the run (s); None: after the last job.
        alter: {dialect: function that changes the server's messages}.
        meddle: makes the object that changes the scheduler's replies; None: replies stay as they are.
        rejects: names of jobs that the scheduler must reject. All other jobs must run, unless they are cancelled or the
            run ends early.
        ends: the expected reason for the end of the run.
        may_give_up: whether the scheduler may report an error, which ends the run.
        refuses: whether the server refuses the scheduler's HELLO.
        preempts: whether `meddle` may preempt jobs although the scheduler did not request the feature.
        again: whether, after the run, a second process gets the same notices and must make the same decisions.
        hand_over: whether a second process takes over the run halfway; skipped if the scheduler's HELLO does not offer
            takeovers.
    """

    name: str
    situation: str
    jobs: tuple[ScriptJob, ...]
    nodes: int = 4
    platform: Platform | None = None
    absent: Mapping[Dialect, str] = field(default_factory=dict)
    outages: tuple[Outage, ...] = ()
    maintenance: tuple[str, ...] = ()
    until: float | None = None
    alter: Mapping[Dialect, Alter] = field(default_factory=dict)
    meddle: Callable[[], Meddling] | None = None
    rejects: frozenset[str] = frozenset()
    ends: EndReason = "completed"
    may_give_up: bool = False
    refuses: bool = False
    preempts: bool = False
    again: bool = False
    hand_over: bool = False

    def spec(self, words: Sequence[str], dialect: Dialect) -> RunSpec:
        """Return the description of the test's run, without its jobs and machine; see `inputs`.

        Args:
            words: the scheduler's program and arguments.
            dialect: the protocol to speak with the scheduler.
        """
        until = None if self.until is None else f"{self.until!r}s"
        return RunSpec(scheduler=tuple(words), dialect=dialect, workload=(), until=until)

    @property
    def machine(self) -> Platform:
        """The machine of the test."""
        return homogeneous(self.nodes, "machine") if self.platform is None else self.platform

    def inputs(self) -> Inputs:
        """Return the jobs, the machine, the outages and the maintenance of the test."""
        platform = self.machine
        reliability = None
        if self.outages or self.maintenance:
            rules = (
                parse_maintenance(text, platform, where=self.name, epoch=None, timezone=None)
                for text in self.maintenance
            )
            reliability = Reliability(
                outages=Outages.of(self.outages) if self.outages else None,
                maintenance=MaintenancePlan(tuple(rules)) if self.maintenance else None,
            )
        # The parser needs a job, so an empty workload is made from a dummy job that is then removed.
        jobs = self.jobs or (ScriptJob("none", 0, 1, 1, 1),)
        workload = parse_batsim(workload_json(jobs, platform.units), self.name).select(range(len(self.jobs)))
        if any(job.cancelled_after is not None for job in self.jobs):
            after = [-1.0 if job.cancelled_after is None else job.cancelled_after for job in self.jobs]
            workload = replace(workload, measures={**workload.measures, CANCELLED_AFTER: np.array(after)})
        return Inputs(workload=workload, machine=platform, reliability=reliability)


def workload_json(jobs: Sequence[ScriptJob], nodes: int) -> bytes:
    """Return a workload file for ``nodes`` nodes in Batsim's JSON format."""
    rows = [
        {
            "id": job.name,
            "subtime": job.submit,
            "res": job.nodes,
            "profile": repr(job.runtime),
            **({} if job.walltime is None else {"walltime": job.walltime}),
            **({} if job.request is None else {"request": job.request}),
        }
        for job in jobs
    ]
    profiles = {repr(job.runtime): {"type": "delay", "delay": job.runtime} for job in jobs}
    return json.dumps({"nb_res": nodes, "jobs": rows, "profiles": profiles}).encode()
