"""Carry out one run: read its description, simulate it, write its outputs."""

import dataclasses
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from pipistrelle.platforms.description import Platform
from pipistrelle.runs.description.setup import Inputs, load_setup
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.description.spec_file import checked, with_digests
from pipistrelle.runs.execution import seldom_collected
from pipistrelle.runs.execution.connection import Connection, InProcess
from pipistrelle.runs.execution.pause import Pause
from pipistrelle.runs.folders.occupied import check_unoccupied
from pipistrelle.schedulers.policy.interfaces import Policy
from pipistrelle.schedulers.wire.interrupts import Interrupts
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.errors import Interrupted, OutputFailed
from pipistrelle.server.outages.reliability import Reliability
from pipistrelle.server.outputs.folder import OUTPUT_PREFIX, Outputs
from pipistrelle.server.outputs.lock import sole_writer
from pipistrelle.server.setup.setup import Setup
from pipistrelle.server.simulation.simulate import Result, Simulation, simulate
from pipistrelle.server.transport.in_process import InProcessTransport
from pipistrelle.traces.workload import Workload

#: longest time between writes of output rows to disk (wall-clock seconds)
FLUSH_S: Final = 10.0
#: shortest sleep of the output thread (s)
_SOON_S: Final = 0.05
#: longest sleep of the output thread if the run is being watched (s)
_GLANCE_S: Final = 0.2
#: how long an interrupt waits for a point at which the last state can be saved (s)
_LASTING_S: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How to carry out a run; these options do not change its result.

    Attributes:
        connection: how to reach the scheduler; None: in this process.
        out: folder for the outputs, created if missing; ``out_command.json`` in it has the description.
        outputs: where to write the outputs instead of ``out``.
        overwrite: whether the run may replace the results of another finished run in ``out``.
        setup: the result of `load_setup` for the same description, if already loaded.
        given: objects that replace inputs of the description; no ``out_command.json`` is written then.
        check: whether `run` raises an error if the run fails; if False, the result's ``failure`` has the error.
        between: called between every two notices to the scheduler, when the run's state can be saved.
        resume: a saved state of the same run, from which to continue; or a function that gets a `Pause` and restores
            its state.
        beat: called at the start, and then about every 10 s of wall-clock time.
        lasting: called once if Ctrl-C ends the run, to save its state. The run waits up to 0.5 s (wall clock) for the
            scheduler's next reply; if there is none, this function is not called.
        look: called at the start, and again after the number of seconds that it returns, even while the scheduler is
            deciding. It must not change the run.
    """

    connection: Connection | None = None
    out: Path | None = None
    outputs: Outputs | None = None
    overwrite: bool = True
    observers: Sequence[Observer] = ()
    setup: Setup | None = None
    given: Inputs | None = None
    check: bool = True
    between: Callable[[Pause], None] | None = None
    resume: dict[str, Any] | Callable[[Pause], None] | None = None
    beat: Callable[[Simulation], None] | None = None
    lasting: Callable[[Pause], None] | None = None
    look: Callable[[Simulation], float] | None = None


def run(spec: RunSpec, options: RunOptions = RunOptions()) -> Result:
    """Simulate the run that a description defines, and return its result.

    Outputs that were written before an error are kept.

    Raises:
        PipistrelleError: the description or an input is wrong, or no scheduler connected. With ``options.check``, also
            if the run failed.
        KeyboardInterrupt: the user pressed Ctrl-C before the run began. With ``options.check``, also during the run.
    """
    setup, out, between, lasting = options.setup, options.out, options.between, options.lasting
    if setup is None:
        spec = with_digests(checked(spec))
        setup = load_setup(spec, options.given)
    as_parquet = spec.format == "parquet" and out is not None
    if as_parquet:
        from pipistrelle.runs.folders.parquet_files import import_arrow, write_parquet  # needs an optional package

        import_arrow()
    regularly = _Regularly(options)
    with (
        nullcontext() if out is None else sole_writer(str(out / OUTPUT_PREFIX).removesuffix("_")),
        seldom_collected(),
        regularly.interrupts as interrupts,
        _unoccupied(spec, options),
        (options.connection or InProcess()).open(spec, setup, regularly) as transport,
        ExitStack() as stack,
    ):
        if (out is not None or options.look is not None) and isinstance(transport, InProcessTransport):
            stack.enter_context(regularly.while_thinking(transport))

        def paused(simulation: Simulation) -> None:
            pause = Pause(spec, simulation, transport)
            if between is not None:
                between(pause)
            if lasting is not None and interrupts.struck:
                lasting(pause)
                raise KeyboardInterrupt

        def goes_on(simulation: Simulation) -> None:
            pause = Pause(spec, simulation, transport)
            if callable(options.resume):
                options.resume(pause)
            elif options.resume is not None:
                pause.restore(options.resume)

        result = simulate(
            setup,
            transport,
            clock=time.perf_counter,
            out=out,
            outputs=options.outputs,
            observers=options.observers,
            asked=msgspec.to_builtins(spec) if options.given is None else None,
            resume=None if options.resume is None else goes_on,
            between=None if between is None and lasting is None else paused,
            begun=regularly.begin,
            regularly=regularly,
        )
    if as_parquet and out is not None:
        write_parquet(out)
    if options.check and isinstance(result.failure, Interrupted):  # ends callers that would survive a failed run
        raise KeyboardInterrupt from result.failure
    if options.check and result.failure is not None:
        raise result.failure
    return result


def _unoccupied(spec: RunSpec, options: RunOptions) -> AbstractContextManager[None]:
    """Raise FolderOccupied if the output folder has results of another run.

    Call this once the folder is locked, before the scheduler starts. The returned context does nothing.
    """
    if options.out is not None and not options.overwrite:
        check_unoccupied(options.out, spec)
    return nullcontext()


def run_in_process(
    workload: str | Workload | None = None,
    policy: str | Policy | None = None,
    *,
    platform: str | Platform | None = None,
    reliability: Reliability | None = None,
    spec: RunSpec | None = None,
    options: RunOptions = RunOptions(),
) -> Result:
    """Simulate a run in this process, with Python objects as inputs.

    Args:
        workload, policy, platform: a name, a path, or the object itself; None: from ``spec``.
        reliability: as from `pipistrelle.runs.description.reliability.load_reliability`; None: from ``spec``.
        spec: all other fields of the run; None: the defaults.
        options: the connection in it is replaced by the policy; no ``out_command.json`` is written.

    Raises:
        PipistrelleError, KeyboardInterrupt: as `run` does.
    """
    spec = spec or RunSpec()
    if workload is not None:
        spec = replace(spec, workload=(workload,) if isinstance(workload, str) else ())
    if policy is not None:
        spec = replace(spec, scheduler=policy) if isinstance(policy, str) else spec.without_policy()
    if isinstance(platform, str):
        spec = replace(spec, platform=platform)
    given = Inputs(
        workload=workload if isinstance(workload, Workload) else None,
        machine=platform if isinstance(platform, Platform) else None,
        reliability=reliability,
    )
    if isinstance(policy, str) and spec.program is None:
        policy = spec.make_policy()  # report a wrong name before anything is written
    connection = InProcess(None if isinstance(policy, str) else policy)
    return run(spec, dataclasses.replace(options, given=given, connection=connection))


class _Regularly:
    """A function that regularly writes output rows.

    It also calls ``beat`` and ``look`` of `RunOptions`. The run calls this object between messages, several times per
    second while it waits for the scheduler, and while simulated time passes without messages. The wall clock affects
    when rows are written, but not which rows.
    """

    def __init__(self, options: RunOptions) -> None:
        self.interrupts = Interrupts()
        #: how long an interrupt waits for a state that can be saved (s), and until when the current interrupt waits
        self._patience = 0.0 if options.lasting is None else _LASTING_S
        self._patient_until: float | None = None
        self._beat = options.beat or (lambda simulation: None)
        self._look = options.look
        self._simulation: Simulation | None = None
        #: times of the next write of rows, of the next call of `look`, and of the earlier of the two
        self._keep_at = self._look_at = self._due = math.inf
        #: error that prevented writing rows while the scheduler was deciding
        self._failure: OutputFailed | None = None

    def begin(self, simulation: Simulation) -> None:
        self._simulation, self._keep_at = simulation, time.monotonic() + FLUSH_S
        self._beat(simulation)
        if self._look is not None:
            self._look_at = -math.inf
        self._work(simulation)

    def _work(self, simulation: Simulation) -> None:
        now = time.monotonic()
        if now >= self._keep_at:
            self._keep_at = now + FLUSH_S
            simulation.keep()
        if now >= self._look_at and self._look is not None:
            simulation.flush()
            self._look_at = self._look(simulation) + time.monotonic()
        self._due = min(self._keep_at, self._look_at)

    @contextmanager
    def while_thinking(self, transport: InProcessTransport) -> Iterator[None]:
        """Write rows and call ``look`` in a thread.

        This is done while the in-process scheduler is deciding.
        """
        over, busy = threading.Event(), threading.Lock()

        def keep() -> None:
            longest = FLUSH_S if self._look is None else _GLANCE_S
            while not over.wait(min(max(self._due - time.monotonic(), _SOON_S), longest)):
                with busy:
                    if time.monotonic() >= self._due and self._simulation is not None and not over.is_set():
                        try:
                            self._work(self._simulation)
                        except OutputFailed as error:
                            self._failure = error

        busy.acquire()
        transport.busy = busy
        thread = threading.Thread(target=keep, name="pipistrelle-outputs", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            transport.busy = None
            busy.acquire(blocking=False)  # a second Ctrl-C may have struck before the lock was taken back
            busy.release()
            thread.join()

    def __call__(self) -> bool:
        """Write rows and make the calls that are due.

        Return whether the user has interrupted the run.
        """
        if self._failure is not None:
            raise self._failure
        if time.monotonic() >= self._due and self._simulation is not None:
            rows = time.monotonic() >= self._keep_at
            self._work(self._simulation)
            if rows:
                self._beat(self._simulation)
        if not (self.interrupts.struck and self._patience):
            return self.interrupts.struck
        if self._patient_until is None:
            self._patient_until = time.monotonic() + self._patience
        return time.monotonic() >= self._patient_until
