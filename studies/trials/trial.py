"""One trial: what it is, as plain values that any process can carry out, and what came out of it."""

import os
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from pipistrelle.platforms.description import Platform
from pipistrelle.protocol.base.log import logger
from pipistrelle.protocol.fields import package_version
from pipistrelle.runs.description.reliability import load_reliability
from pipistrelle.runs.description.setup import load_inputs, steady_setup, with_horizon
from pipistrelle.runs.description.spec import RELIABILITY_FIELDS, RunSpec
from pipistrelle.runs.description.spec_file import check_files
from pipistrelle.runs.execution import seldom_collected
from pipistrelle.runs.execution.job_table import JobTable, JobTableBook
from pipistrelle.schedulers.runtime.runtime import Runtime
from pipistrelle.server.errors import Stalled
from pipistrelle.server.setup.setup import Setup
from pipistrelle.server.simulation.simulate import simulate
from pipistrelle.server.transport.in_process import InProcessTransport
from pipistrelle.studies.trials.axes import StudyError
from pipistrelle.studies.trials.metrics import Metric, metrics
from pipistrelle.studies.trials.study import Measures
from pipistrelle.traces.workload import Workload

if TYPE_CHECKING:
    from pipistrelle.platforms.simgrid.platform_file import SimGridPlatform
    from pipistrelle.server.outages.reliability import Reliability

#: inputs that a process keeps: workloads with their machines, and the failures of combinations
_INPUTS_KEPT: Final = 2
_FAILURES_KEPT: Final = 256
#: options that decide workload and machine
_INPUT_FIELDS: Final = (
    *("platform", "scale_platform", "node_table", "workload", "sort", "units", "timezone", "columns", "transform"),
    *("ignore_constraints", "partition_pools", "strict"),
)


class Trial(Struct, frozen=True, kw_only=True):
    """One run of a study; ``spec`` is all of it, with its seed.

    Parameters
    ----------
    point, replica
        which one it is.
    spec
        what is run.
    engine
        which engine runs it.
    measures
        what is measured.
    folder
        where names of files begin.
    """

    point: int
    replica: int
    spec: RunSpec
    engine: str
    measures: Measures
    folder: str

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"trial {self.point}.{self.replica}"


class Outcome(Struct, frozen=True, kw_only=True):
    """What came out of a trial: a line of a study's journal.

    ``figures`` are its metrics, none if the run stalled: then ``message`` says why.
    """

    point: int
    replica: int
    reason: str
    figures: dict[str, Metric]
    message: str = ""


def carry_out(trial: Trial) -> Outcome:
    """Run a trial in this process and return what came out.

    Raises
    ------
    PipistrelleError
        when it cannot be run, or its scheduler fails; a run that stalls is an outcome like others.
    """
    _go_to(trial.folder, tuple(sorted(trial.spec.files.items())))
    try:
        table = table_of_run(trial.spec, trial.engine)
    except Stalled as stalled:
        return Outcome(point=trial.point, replica=trial.replica, reason="stalled", figures={}, message=str(stalled))
    warm_up, drain = trial.measures.left_out
    figures = metrics(table, warm_up=warm_up, drain=drain, sizes=trial.measures.sizes)
    return Outcome(point=trial.point, replica=trial.replica, reason=table.reason, figures=figures)


def table_of_run(spec: RunSpec, engine: str) -> JobTable:
    """Run in this process, by the kernel or in the reference engine with the policy called directly.

    Raises
    ------
    RunError
        when the run ends early, `Stalled` among them.
    """
    setup = trial_setup(spec)
    if engine == "kernel":
        from pipistrelle.kernel.table import run_kernel  # it compiles, or loads what it has compiled

        return replace(run_kernel(setup, spec), until=setup.until)
    book = JobTableBook()
    runtime = Runtime(spec.make_policy(warn=False), package_version(), cancellations=setup.cancels)
    with seldom_collected():
        result = simulate(setup, InProcessTransport(runtime), clock=_no_clock, observers=[book])
    if result.failure is not None:
        raise result.failure
    told = result.summary
    return book.table(
        until=setup.until,
        dropped=sum(told.dropped.values()),
        reliability=told.reliability,
        fragmentation=None if told.fragmentation is msgspec.UNSET else told.fragmentation,
    )


def trial_setup(spec: RunSpec) -> Setup:
    """Return the setup of a run as `load_setup` does; what runs share is kept by this process."""
    inputs = inputs_key(spec)
    reliability = _reliability(inputs, _happens_key(spec))
    setup = shared_inputs(inputs)[0]
    if reliability is not None:
        described = {**reliability.described, "seed": spec.seed}
        setup = replace(setup, reliability=replace(reliability, seed=spec.seed, described=described))
    return with_horizon(spec, setup)


def inputs_key(spec: RunSpec) -> bytes:
    """Return what decides a run's workload and machine."""
    return _encoder.encode(RunSpec(**{name: getattr(spec, name) for name in _INPUT_FIELDS}))


def _happens_key(spec: RunSpec) -> bytes:
    """Return what decides what happens to the machine, but for the seed where that only begins a stream."""
    told = {name: getattr(spec, name) for name in RELIABILITY_FIELDS}
    if spec.outages is None:
        del told["seed"]
    return _encoder.encode(RunSpec(**told))


@lru_cache(maxsize=_INPUTS_KEPT)
def shared_inputs(key: bytes) -> "tuple[Setup, Workload, Platform | SimGridPlatform]":
    """Return workload and machine that a key of `inputs_key` stands for, and the setup of both if nothing fails."""
    spec = _decoder.decode(key)
    trace, machine = load_inputs(spec)
    return steady_setup(spec, trace, machine), trace, machine


@lru_cache(maxsize=_FAILURES_KEPT)
def _reliability(inputs: bytes, happens: bytes) -> "Reliability | None":
    setup, trace, machine = shared_inputs(inputs)
    found = load_reliability(_decoder.decode(happens), machine, trace)
    setup = replace(setup, reliability=None, remarks=()).with_reliability(found)
    for remark in setup.remarks:
        logger().warning("{}", remark)
    return setup.reliability


@lru_cache(maxsize=_FAILURES_KEPT)
def _go_to(folder: str, files: tuple[tuple[str, str], ...]) -> None:
    """Go to the folder where names of files begin, and see that the files there are those of the study."""
    try:
        os.chdir(folder)
    except OSError as error:
        raise StudyError(
            f"the study's folder cannot be entered ({error.strerror or error})",
            where=folder,
            hint="Workers on other machines need the same files under the same names.",
        ) from None
    check_files(dict(files))


_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(RunSpec)


def _no_clock() -> float:
    return 0.0
