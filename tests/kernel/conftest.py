"""What tests of the kernel share: the reference engine's account of a run, and the comparison."""

from collections.abc import Callable
from dataclasses import fields
from math import nan

import numpy as np
import pytest

from pipistrelle.kernel import kernel, state
from pipistrelle.kernel.table import run_kernel
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.connection import InProcess
from pipistrelle.runs.execution.job_table import JobTable, JobTableBook
from pipistrelle.runs.execution.run import RunOptions, run
from pipistrelle.schedulers.catalogue.registry import make_policy
from pipistrelle.server.attempts.attempt import has_worked, spending_of
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.setup.setup import Setup
from pipistrelle.server.simulation.simulate import Result

STATES = {"COMPLETED_SUCCESSFULLY": state.COMPLETED, "COMPLETED_WALLTIME_REACHED": state.AT_WALLTIME}


class Kept(Observer):
    """Writes down every attempt that ends, and when which node was down."""

    def __init__(self, setup: Setup) -> None:
        (self.workload,) = setup.workloads.values()
        self.rows = {f"w0!{name}": row for row, name in enumerate(self.workload.ids)}
        self.failing = setup.reliability is not None
        self.attempts: list[tuple] = []
        self.running: dict[str, Job] = {}
        self.end = nan
        self.reason = ""
        self.book = JobTableBook(with_nodes=True)

    def begins(self, now: float, units: int) -> None:
        """Tell the book."""
        self.book.begins(now, units)

    def submitted(self, now: float, job: Job) -> None:
        """Tell the book."""
        self.book.submitted(now, job)

    def started(self, now: float, job: Job) -> None:
        """Record the jobs that run."""
        self.running[job.id] = job

    def ended(self, now: float, job: Job) -> None:
        """Keep the known data of the attempt."""
        self.book.ended(now, job)
        del self.running[job.id]
        times = (job.submit, job.start, job.end, job.walltime)
        alloc = str(job.alloc)
        if not self.failing:
            self.attempts.append((self.rows[job.id], 0, STATES[job.state], *times, alloc))
            return
        attempt, spent, account = job.attempt, spending_of(job), job.attempt.account
        done = STATES.get(job.state, state.GIVEN_UP)
        if account is None:
            saved, dumps = (
                self.workload.runtime[self.rows[attempt.root]] if has_worked(job, attempt) else attempt.saved,
                0,
            )
        else:
            saved, dumps = account.saved, account.dumps
        self.attempts.append(
            (
                *(self.rows[attempt.root], attempt.number, done, *times, alloc),
                *(attempt.retried, dumps, attempt.saved, saved),
                *(spent.useful, spent.unsaved, spent.lost, spent.dumping, spent.reading),
            )
        )
        assert spent.spare == spent.down == spent.waiting == spent.overhead == 0.0

    def ends(self, now: float, reason: str, message: str) -> None:
        """Keep when the run was over."""
        self.end, self.reason = now, reason
        self.book.ends(now, reason, message)


def reference(setup: Setup, spec: RunSpec, policy=None) -> tuple[Kept, Result]:
    """Carry out a run by the reference engine; return its record and its result."""
    kept = Kept(setup)
    result = run(spec, RunOptions(setup=setup, connection=InProcess(policy), observers=[kept], check=False))
    return kept, result


def attempts_of(made: kernel.KernelRun, setup: Setup) -> list[tuple]:
    """Return the kernel's record of each ended attempt, in the form of `Kept`."""
    lives = made.lives
    (workload,) = setup.workloads.values()
    if setup.reliability is None:
        return [
            (
                row,
                0,
                int(lives.state[row]),
                *(float(column[row]) for column in (lives.came, lives.start, lives.end)),
                float(workload.walltime[row]),
                str(made.units_of(row)),
            )
            for row in np.flatnonzero(lives.state >= state.COMPLETED).tolist()
        ]
    log = made.attempts
    columns = [column.tolist() for column in log[:-1]]
    asked = log._fields.index("asked") + 1
    return [
        (job, number, ended, *rest[: asked - 5], str(made.units_of(row)), bool(retried), dumps, *rest[asked - 5 :])
        for row, (job, number, ended, retried, dumps, *rest) in enumerate(zip(*columns, strict=True))
    ]


def same_table(one: JobTable, other: JobTable) -> None:
    """Assert that two tables are equal, except for the order in which nodes are held."""
    for field in fields(JobTable):
        mine, others = getattr(one, field.name), getattr(other, field.name)
        if field.name.startswith("hel") or field.name == "holder":
            continue
        if isinstance(mine, np.ndarray):
            assert mine.dtype == others.dtype, field.name
            assert np.array_equal(mine, others, equal_nan=mine.dtype.kind == "f"), field.name
        else:
            assert mine == others, field.name
    holds = [
        sorted(zip(table.holder, table.held_from, table.held_until, table.held_units, strict=True), key=repr)
        for table in (one, other)
    ]
    assert repr(holds[0]) == repr(holds[1])


def _compare(setup: Setup, spec: RunSpec, policy: str | None = None) -> kernel.KernelRun | None:
    """Assert that both engines do the same, job by job and bit by bit; None if the run fails, in both."""

    def decides():
        return None if policy is None else make_policy(policy)

    kept, result = reference(setup, spec, decides())
    if result.failure is not None:
        with pytest.raises(type(result.failure)) as raised:
            kernel.simulate(setup, spec, policy=decides())
        if "has lost its nodes" in str(result.failure):
            assert str(raised.value) == str(result.failure)
        return None
    made = kernel.simulate(setup, spec, policy=decides(), keeping=True)
    assert (made.end, made.reason) == (kept.end, kept.reason)
    assert sorted(attempts_of(made, setup)) == sorted(kept.attempts)
    running = {(kept.rows[job.id.partition("#")[0]], job.start, job.alloc) for job in kept.running.values()}
    rows = np.flatnonzero(made.lives.state == state.RUNNING).tolist()
    assert running == {(row, float(made.lives.start[row]), made.units_in(made.running[row])) for row in rows}
    tables = kept.book.table(dropped=sum(setup.dropped.values()), reliability=result.summary.reliability)
    same_table(run_kernel(setup, spec, policy=decides(), with_nodes=True), tables)
    return made


@pytest.fixture(scope="session")
def compare() -> Callable[..., kernel.KernelRun | None]:
    """Return what carries out a run by both engines and asserts that they do the same; None if it fails, in both."""
    return _compare
