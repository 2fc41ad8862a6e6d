"""The tables of Slurm's commands at one time of a run.

The commands are squeue, sprio, sshare and sdiag.
"""

from math import inf
from pathlib import Path
from typing import Any

from msgspec import Struct

from pipistrelle.protocol.base.errors import printable
from pipistrelle.protocol.decisions import ExecuteJob, Stop, StopData
from pipistrelle.protocol.events import SimulationEnds
from pipistrelle.protocol.fields import package_version
from pipistrelle.protocol.messages import Notice, Reply
from pipistrelle.reports.estimates.moments import WatchedScheduler
from pipistrelle.reports.estimates.queue_estimates import repeatable, require_under_way
from pipistrelle.reports.explain.making import setup_again
from pipistrelle.reports.explain.replay import ExpectedStarts
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.run import RunOptions, run
from pipistrelle.runs.folders.files import ExplainError, RunFiles
from pipistrelle.schedulers.runtime.runtime import Runtime
from pipistrelle.schedulers.slurm.policy import SlurmPolicy
from pipistrelle.server.errors import Interrupted
from pipistrelle.server.setup.setup import Setup


class SlurmThen(Struct, frozen=True):
    """The tables at ``at`` (s), after the controller's decisions at ``as_of`` (s).

    Each row of a table is {column: value}.

    Attributes:
        sdiag: {section: {name: value}}.
    """

    run: str
    epoch: float | None
    timezone: str | None
    at: float
    as_of: float
    squeue: list[dict[str, Any]]
    sprio: list[dict[str, Any]]
    sshare: list[dict[str, Any]]
    sdiag: dict[str, dict[str, Any]]


def slurm_then(folder: Path, at: float) -> SlurmThen:
    """Simulate a run of the scheduler slurm again up to a time (s); return its tables.

    Args:
        folder: output folder of the run.

    Raises:
        PipistrelleError: if the run had another scheduler, ended before, or cannot be repeated with the same results.
    """
    spec, files = repeatable(folder)
    if not isinstance(spec.make_policy(warn=False, polls=False), SlurmPolicy) or spec.poll is not None:
        raise ExplainError(
            "the run has no tables of Slurm",
            where=str(files.folder),
            expected="a run of --scheduler slurm, without --poll",
            found=printable(files.scheduler),
            hint="'explain queue' shows the queue of any scheduler.",
        )
    require_under_way(files, at)
    watched = _Watched(spec, setup_again(spec, files), files, at)
    return watched.tables()


def _finite(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with ``inf``, as ``sshare`` prints it, for an infinite number.

    JSON has no infinite numbers.
    """
    return {name: "inf" if value == inf else value for name, value in row.items()}


class _Watched(WatchedScheduler):
    """The scheduler of a run that is simulated again up to a given time."""

    def __init__(self, spec: RunSpec, setup: Setup, files: RunFiles, at: float) -> None:
        policy = spec.make_policy(warn=False, polls=False)
        assert isinstance(policy, SlurmPolicy)
        self._spec, self._setup, self._files, self._at = spec, setup, files, at
        self._policy = policy
        self._runtime = Runtime(policy, package_version(), cancellations=setup.cancels)
        self._expected = ExpectedStarts(files.starts)
        self._as_of = 0.0
        self._over = False

    def tables(self) -> SlurmThen:
        """Simulate until the given time; return the tables of Slurm's commands."""
        result = run(self._spec, RunOptions(setup=self._setup, connection=self, check=False))
        if isinstance(result.failure, Interrupted):
            raise KeyboardInterrupt from result.failure
        self._expected.check(self._files)
        if result.failure is not None and not self._over:
            raise result.failure
        policy, now, files = self._policy, self._as_of, self._files
        if not policy.has_begun:
            raise ExplainError(
                "slurmctld had no job yet",
                where=str(files.folder),
                expected="a time at or after the first submission",
                found=f"{self._at:g} s",
            )
        return SlurmThen(
            str(files.folder),
            files.of_workload("epoch"),
            files.of_workload("timezone"),
            self._at,
            now,
            policy.queue(now),
            policy.factors(now),
            [_finite(row) for row in policy.shares()],
            policy.diagnostics(self._at),
        )

    def answer(self, notice: Notice) -> Reply:
        """Reply to a notice; if it is later than the given time, end the run."""
        if self._over or notice.now > self._at or any(type(event) is SimulationEnds for event in notice.events):
            self._over = True
            return Reply(notice.seq, notice.now, [Stop(notice.now, StopData("all tables are known"))])
        reply = self._runtime.answer(notice)
        self._as_of = notice.now
        for decision in reply.events:
            if type(decision) is ExecuteJob:
                self._expected.started(decision.data.job_id, notice.now)
        return reply
