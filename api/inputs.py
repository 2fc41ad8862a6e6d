"""Read, generate, change and write workloads, and read platforms."""

from os import PathLike
from pathlib import Path
from typing import Literal, Unpack, get_args

from pipistrelle.api.options import Name, OptionError, StepLike, path_text, spec_of
from pipistrelle.platforms import catalogue as platforms
from pipistrelle.platforms.description import Platform
from pipistrelle.protocol.base.errors import did_you_mean
from pipistrelle.runs.description.setup import changed_jobs
from pipistrelle.runs.inputs import named
from pipistrelle.schedulers.catalogue.names import registered
from pipistrelle.traces import catalogue as workloads
from pipistrelle.traces import generator, load
from pipistrelle.traces.logs.job_table import LogReading
from pipistrelle.traces.workload import Workload

Kind = Literal["platform", "scheduler", "workload", "failures"]


def bundled(kind: Kind) -> list[str]:
    """Return the names of the bundled inputs of one kind.

    The kinds are platforms, schedulers, workloads and failure models.

    Raises:
        PipistrelleError: the kind does not exist.
    """
    if kind == "platform":
        return list(platforms.names())
    if kind == "scheduler":
        return list(registered())
    if kind == "workload":
        return list(workloads.names())
    if kind == "failures":
        from pipistrelle.platforms.failures import catalogue  # rarely asked for

        return list(catalogue.names())
    raise OptionError(f"there is no kind '{kind}'", where="bundled", hint=did_you_mean(kind, list(get_args(Kind))))


def load_workload(name: Name, *, sort: bool = False, **reading: Unpack[LogReading]) -> Workload:
    """Return a bundled workload, or read one from a file in any supported format.

    Args:
        name: a bundled name, or a file: SWF, Batsim's JSON, or a log of Slurm, PBS or Maui, plain or compressed.
        sort: accept a log whose submit times do not ascend.
        reading: how to read a computing centre's log: ``units``, ``timezone``, ``columns``, ``strict``.

    Raises:
        PipistrelleError: there is no such workload, or the file is wrong.
    """
    return named.load_workload(path_text(name, "name", "load_workload"), sort=sort, **reading)


def save_workload(workload: Workload, path: str | PathLike[str]) -> None:
    """Write a workload in the format that the file's suffix names.

    Suffixes are ``.swf``, ``.json``, ``.sacct`` and ``.maui``, optionally followed by ``.gz``.

    Raises:
        PipistrelleError: the suffix is unknown, the format cannot express the jobs, or the file cannot be written.
    """
    load.save(workload, Path(path))


def generate_workload(jobs: int, units: int, *, seed: int = 1, load: float = 0.85, name: str = "generated") -> Workload:
    """Return a workload of random jobs with daily and weekly cycles.

    Equal arguments give equal jobs.

    Args:
        jobs: number of jobs.
        units: size of the machine.
        seed: seed of the random numbers.
        load: offered load: the unit-seconds of all jobs, divided by the machine's capacity while jobs arrive.
        name: name of the workload.

    Raises:
        PipistrelleError: an argument is out of range.
    """
    return generator.generate(jobs=jobs, units=units, seed=seed, load=load, name=name)


def transform_workload(workload: Workload, *steps: StepLike) -> Workload:
    """Return a changed copy of a workload.

    Args:
        steps: the changes, such as ``scale --load 0.9``, as in the option ``--transform`` of ``pipistrelle run``; or
            tables such as ``{"step": "scale", "load": 0.9}``, as ``[[transform]]`` in a run's TOML file.
            docs/how-to/workload-tools.md lists them.

    Raises:
        PipistrelleError: a step is wrong, or does not suit the workload.
    """
    return changed_jobs(spec_of({"transform": list(steps)}, None, "transform_workload"), workload)


def load_platform(name: Name) -> Platform:
    """Return a bundled platform, or read one from a file.

    The file is TOML, SimGrid's XML or a Maui resource trace.

    Raises:
        PipistrelleError: there is no such machine, or the file is wrong.
    """
    return named.load_platform(path_text(name, "name", "load_platform"))


def clean_workload(workload: Workload, units: int) -> tuple[Workload, dict[str, int]]:
    """Drop the jobs that cannot run on a machine of ``units`` units.

    `run` does this itself.

    Returns:
        The remaining jobs, and {reason: number of dropped jobs}.
    """
    from pipistrelle.traces.clean import clean  # rarely needed

    jobs, dropped = clean(workload, units)
    return jobs, dict(dropped)


def describe_workload(workload: Workload) -> list[tuple[str, str]]:
    """Return what ``pipistrelle workload describe`` prints, as (heading, text) pairs."""
    from pipistrelle.traces.describe import describe  # rarely needed

    return list(describe(workload))


def describe_platform(platform: Platform) -> list[tuple[str, str]]:
    """Return a description of a machine as (heading, text) pairs; its pools come last."""
    from pipistrelle.platforms.describe import describe  # rarely needed

    return list(describe(platform))
