"""A script: jobs, a machine, what befalls it, how messages are altered on their way, and what is expected then."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from pipistrelle.platforms.description import homogeneous
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
DIALECTS: Final[tuple[Dialect, ...]] = ("native", "batsim")
#: returns the frame that is sent in the place of one of the server's; both are plain JSON values
Alter = Callable[[dict[str, Any]], dict[str, Any]]


class ScriptJob(NamedTuple):
    """A job: its name, when it is submitted (s), its nodes, its walltime (s, None: no limit) and its run time (s).

    One that its submitter cancels has the time from its submission to that (s).
    """

    name: str
    submit: float
    nodes: int
    walltime: float | None
    runtime: float
    cancelled_after: float | None = None


@dataclass(slots=True)
class Meddling:
    """What a script puts into a scheduler's replies: decisions of an operator, or mistakes that it is then told of.

    Parameters
    ----------
    decide
        returns the decisions that the server is to carry out in place of the reply's.
    added
        those that are not the scheduler's, kept here by `apply`.
    """

    decide: Callable[[Notice, Reply], Sequence[Decision]]
    added: list[Decision] = field(default_factory=list)

    def apply(self, notice: Notice, reply: Reply) -> Reply:
        """Return the reply as the server is to have it."""
        decisions = list(self.decide(notice, reply))
        own = {id(decision) for decision in reply.events}
        self.added += [decision for decision in decisions if id(decision) not in own]
        return Reply(reply.reply_to, reply.now, decisions, reply.wake, reply.leaves, reply.keeps)

    def is_added(self, decision: Decision) -> bool:
        """Tell whether a decision is one that the scheduler has not taken."""
        return any(decision is one for one in self.added)


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """An awkward situation.

    Parameters
    ----------
    name
        what it is called, in words joined by hyphens.
    situation
        what happens, and what the scheduler is to do, a sentence.
    jobs
        the workload; none: a workload without jobs.
    nodes
        of the machine, all alike.
    absent
        {dialect: why the script does not apply to it}.
    outages, maintenance
        what befalls nodes, and rules as of ``--maintenance``.
    until
        when the server ends the run (s); None: when all is done.
    alter
        {dialect: what alters the server's frames}.
    meddle
        makes what alters the scheduler's replies; None: nothing does.
    rejects
        names of jobs that the scheduler has to reject; all others must run, as far as the run goes, but those that are
        cancelled.
    ends
        why the run has to end.
    may_give_up
        whether the scheduler may end the run by itself, as long as it does so at once and says that it failed.
    refuses
        whether the server refuses the scheduler's HELLO.
    preempts
        whether what alters replies may preempt, which the scheduler need not have asked for.
    again
        whether a second process is told the same once more, and must decide the same.
    hand_over
        whether a second process goes on from the middle of the run, if its HELLO says that it can.
    """

    name: str
    situation: str
    jobs: tuple[ScriptJob, ...]
    nodes: int = 4
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
        """Return its run under a scheduler's command, but for what `inputs` has."""
        until = None if self.until is None else f"{self.until!r}s"
        return RunSpec(scheduler=tuple(words), dialect=dialect, workload=(), until=until)

    def inputs(self) -> Inputs:
        """Return its jobs and its machine, with what befalls that."""
        platform = homogeneous(self.nodes, "machine")
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
        # A workload of no jobs is read as one of a job that is left out.
        jobs = self.jobs or (ScriptJob("none", 0, 1, 1, 1),)
        workload = parse_batsim(workload_json(jobs, self.nodes), self.name).select(range(len(self.jobs)))
        if any(job.cancelled_after is not None for job in self.jobs):
            after = [-1.0 if job.cancelled_after is None else job.cancelled_after for job in self.jobs]
            workload = replace(workload, measures={**workload.measures, CANCELLED_AFTER: np.array(after)})
        return Inputs(workload=workload, machine=platform, reliability=reliability)


def workload_json(jobs: Sequence[ScriptJob], nodes: int) -> bytes:
    """Return a workload for so many nodes as a file has it, in Batsim's JSON."""
    rows = [
        {
            "id": job.name,
            "subtime": job.submit,
            "res": job.nodes,
            "profile": repr(job.runtime),
            **({} if job.walltime is None else {"walltime": job.walltime}),
        }
        for job in jobs
    ]
    profiles = {repr(job.runtime): {"type": "delay", "delay": job.runtime} for job in jobs}
    return json.dumps({"nb_res": nodes, "jobs": rows, "profiles": profiles}).encode()
