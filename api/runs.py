"""Simulate one run from names, files or Python objects."""

import tempfile
from collections.abc import Callable, Iterable, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Final, TypeGuard, Unpack

from msgspec.structs import replace

from pipistrelle.api.options import Name, OptionError, RunKeywords, path_text, spec_of
from pipistrelle.api.progress import run_progress
from pipistrelle.api.repeat import Again
from pipistrelle.api.results import Run
from pipistrelle.platforms.description import Platform
from pipistrelle.runs.description.policy import PolicySpec, step_of
from pipistrelle.runs.description.setup import Inputs, changed_jobs, changed_machine, load_setup
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.description.spec_file import checked, with_digests
from pipistrelle.runs.execution.connection import Connection, InProcess, WithChild
from pipistrelle.runs.execution.run import RunOptions
from pipistrelle.runs.execution.run import run as carry_out
from pipistrelle.schedulers.catalogue.objects import is_factory, policy_maker, refuse_parts
from pipistrelle.schedulers.policy.interfaces import Policy
from pipistrelle.traces.workload import Workload

#: a scheduler: a name, a file, ``file.py:CLASS``, a program's arguments, or a policy, its class or a function for it
SchedulerLike = Name | Sequence[str] | Policy | Callable[[], Policy]
#: options for reading a log, which do not apply to a workload in memory
_READING: Final = ("sort", "units", "columns")
_WHERE: Final = "run"


def run(
    workload: Name | Workload | Sequence[Name] | None = None,
    platform: Name | Platform | None = None,
    scheduler: SchedulerLike | None = None,
    *,
    description: Name | None = None,
    out: str | PathLike[str] | None = None,
    overwrite: bool = False,
    progress: bool | None = None,
    record: str | PathLike[str] | None = None,
    **options: Unpack[RunKeywords],
) -> Run:
    """Simulate a workload on a machine under a scheduler, and return the results.

    Args:
        workload: a bundled name, a file, or a `Workload`; default: the bundled workload ``demo``.
        platform: a bundled name, a file, or a `Platform`; default: the machine that the workload describes.
        scheduler: a bundled name, ``file.toml``, ``file.py:CLASS``, a program with its arguments (one of them
            ``{endpoint}``), or a `Scheduler`, its class, or a function that returns one; default: ``easy``.
        description: a TOML file, or the ``out_command.json`` of an earlier run. Other arguments override its values.
        out: folder for the outputs. Without it they are in a temporary folder that is deleted with the result.
        overwrite: replace the results of another run in ``out``.
        progress: show a progress bar; default: in notebooks and on terminals.
        record: file for all messages between server and scheduler.
        options: options of ``pipistrelle run``, with underscores; see `RunKeywords`.

    Raises:
        PipistrelleError: an argument or an input is wrong, or the run failed. Outputs in ``out`` are kept.
        KeyboardInterrupt: Ctrl-C; outputs in ``out`` are kept.
    """
    given: dict[str, Any] = dict(options)
    if not isinstance(workload, Workload) and workload is not None:
        given["workload"] = _names(workload)
    if not isinstance(platform, Platform):
        given["platform"] = None if platform is None else path_text(platform, "platform", _WHERE)
    spec = spec_of(given, description, _WHERE)
    if "queue_lengths" not in given and description is None and spec.batsim is None:
        spec = replace(spec, queue_lengths=True)
    spec, connection, make = _with_scheduler(spec, scheduler, given)
    inputs = _objects(spec, workload, platform, given)
    if inputs is None and make is not None:
        inputs = Inputs()
    if inputs is None:
        spec = with_digests(checked(spec))
    setup = load_setup(spec, inputs)
    if record is not None:
        from pipistrelle.runs.sessions.recording import Recorded  # most runs are not recorded

        connection = Recorded(connection, Path(record))
    temporary = out is None
    folder = Path(tempfile.mkdtemp(prefix="pipistrelle-")) if out is None else Path(out)
    try:
        with run_progress(setup, progress) as observers:
            result = carry_out(
                spec,
                RunOptions(
                    connection=connection,
                    out=folder,
                    overwrite=overwrite,
                    setup=setup,
                    given=inputs,
                    observers=observers,
                ),
            )
    except BaseException:
        if temporary:
            _removed(folder)
        raise
    again = None if inputs is None or not isinstance(connection, InProcess) else Again(spec, inputs, make)
    return Run._kept(folder, again, result.times, temporary=temporary)


def _names(workload: object) -> list[Any]:
    """Return the names or paths of one or more workloads as a list."""
    if isinstance(workload, Iterable) and not isinstance(workload, str | PathLike):
        return list(workload)
    return [path_text(workload, "workload", _WHERE)]


def _with_scheduler(
    spec: RunSpec, scheduler: SchedulerLike | None, options: dict[str, Any]
) -> tuple[RunSpec, Connection, Callable[[], Policy] | None]:
    """Add the scheduler to the description of a run.

    Returns:
        The description, the connection to the scheduler, and a function that makes a new policy. The function is None
        unless the scheduler is a Python object.
    """
    if scheduler is None or isinstance(scheduler, str | PathLike) or _is_command(scheduler):
        if isinstance(scheduler, str | PathLike):
            spec = replace(spec, scheduler=fspath(scheduler))
        elif scheduler is not None:
            spec = replace(spec, scheduler=tuple(scheduler))
        if spec.batsim is not None and spec.batsim.no_sched:
            return spec, InProcess(), None
        if spec.program is None:
            policy = spec.make_policy()  # report a wrong name before anything is written
            return (spec, InProcess(policy), None) if spec.dialect == "native" else (spec, WithChild(), None)
        return spec, WithChild(), None
    told = [name for name in PolicySpec.__struct_fields__ if options.get(name) is not None]
    refuse_parts(told, _WHERE)
    if spec.dialect == "batsim" or spec.batsim is not None:
        raise OptionError(
            "a scheduler that is a Python object supports only the native dialect", where=_WHERE, found="batsim"
        )
    make = _maker(scheduler)
    policy = made = make()
    if spec.poll is not None:
        from pipistrelle.schedulers.runtime.polling import Polling  # most policies do not poll

        policy = Polling(made, step_of(spec.poll))
    return replace(spec.without_policy(), poll=spec.poll), InProcess(policy), make


def _is_command(scheduler: object) -> TypeGuard[Sequence[str]]:
    return isinstance(scheduler, list | tuple)


def _maker(scheduler: Any) -> Callable[[], Policy]:
    """Return a function that makes a new policy for each call.

    ``scheduler`` is a policy, its class, or a function that returns a policy. The first call may return the given
    policy itself; later calls return a copy in the state that it has now.
    """
    make = policy_maker(scheduler)
    if is_factory(scheduler):
        return make
    first = [scheduler]
    return lambda: first.pop() if first else make()


def _objects(spec: RunSpec, workload: object, platform: object, options: dict[str, Any]) -> Inputs | None:
    """Return the inputs that were given as Python objects.

    They include the description's changes. Return None if there are no such inputs.
    """
    trace = workload if isinstance(workload, Workload) else None
    machine = platform if isinstance(platform, Platform) else None
    if trace is None and machine is None:
        return None
    if trace is not None and (idle := [name for name in _READING if options.get(name) is not None]):
        raise OptionError("these options say how to read a file, but the workload is an object", found=", ".join(idle))
    if spec.batsim is not None:
        raise OptionError("a Batsim-compatible run reads its inputs from files", expected="names of files")
    return Inputs(
        workload=None if trace is None else changed_jobs(spec, trace),
        machine=None if machine is None else changed_machine(spec, machine),
    )


def _removed(folder: Path) -> None:
    import shutil  # needed only for runs that fail

    shutil.rmtree(folder, ignore_errors=True)
