"""``pipistrelle validate``: check and describe input files."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from pipistrelle.cli.inputs.kinds import KINDS_READ, foreign_fault
from pipistrelle.cli.inputs.slurm import slurm_report
from pipistrelle.cli.options.files import reading_options, strict_option
from pipistrelle.cli.options.names import KINDS, completed, names
from pipistrelle.cli.options.sections import Command
from pipistrelle.cli.run.described import blamed
from pipistrelle.cli.terminal.console import print_error, print_facts
from pipistrelle.models.likeness import model as models
from pipistrelle.models.workloads import classes
from pipistrelle.platforms import catalogue as platforms
from pipistrelle.platforms.classes import JobClass
from pipistrelle.platforms.describe import describe as describe_pools
from pipistrelle.platforms.describe import describe_rows, describe_simgrid
from pipistrelle.platforms.description import Platform
from pipistrelle.platforms.failures import catalogue as failures
from pipistrelle.platforms.failures.fitted import parse_model
from pipistrelle.platforms.simgrid.platform_file import SimGridPlatform
from pipistrelle.protocol.base.errors import InputError, PipistrelleError, did_you_mean
from pipistrelle.runs.description.reliability import platform_failures
from pipistrelle.runs.description.setup import load_setup
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.description.spec_file import find_spec, read_raw, with_digests
from pipistrelle.runs.execution.connection import check_scheduler
from pipistrelle.runs.inputs.kinds import require_workload
from pipistrelle.runs.inputs.maui_machine import maui_platform
from pipistrelle.runs.inputs.named import is_log, is_platform, load_machine, read_platform
from pipistrelle.runs.inputs.node_table import is_node_table, load_node_rows
from pipistrelle.schedulers.catalogue.names import library_names, registered
from pipistrelle.schedulers.catalogue.presets import Preset, library_preset, read_preset
from pipistrelle.schedulers.catalogue.registry import describe as describe_scheduler
from pipistrelle.studies.trials.study import Study
from pipistrelle.traces import catalogue as workloads
from pipistrelle.traces.describe import describe as describe_workload
from pipistrelle.traces.files import read_text, trace_name
from pipistrelle.traces.load import load
from pipistrelle.traces.logs.haizea import is_lease_trace
from pipistrelle.traces.logs.maui_nodes import is_resource_trace, read_maui_resources
from pipistrelle.traces.workload import decimal_text


@click.command(cls=Command)
@click.argument(
    "files", nargs=-1, required=True, metavar="FILE|NAME...", shell_complete=completed(*KINDS, or_file=True)
)
@reading_options
@strict_option
def command(files: Sequence[str], sort: bool, **reading: Any) -> int:
    """Check input files and describe what is in them.

    Each argument is a bundled name or one of these files:

    \b
    platform                  TOML, SimGrid XML, Maui resource trace
    workload                  SWF, Batsim JSON, log of PBS, Slurm, Maui or Haizea; plain or compressed
    table of nodes            CSV, TOML; FILE,at=DATE reads the state on DATE
    description of a run      TOML, JSON
    study, job classes, model TOML
    Slurm cluster             slurm.conf, gres.conf, topology.conf, sacctmgr output

    The exit code is 2 if any file is not valid.
    """
    wrong = logs = 0
    for name in files:
        try:
            facts, read_as_log = _bundled(name), False
            report = None if facts else slurm_report(Path(name))
            if report is not None:
                facts = [*report.facts, *([] if report.platform is None else describe_platform(report.platform))]
            elif not facts:
                facts, read_as_log = _facts(Path(name), sort=sort, **reading)
        except PipistrelleError as error:
            wrong += 1
            print_error((foreign_fault(Path(name)) if Path(name).suffix in (".toml", ".json") else None) or error)
            continue
        logs += read_as_log
        click.echo(f"{name}: valid")
        print_facts(facts, "  ")
        if report is not None:
            report.print_table()
    if any(value not in (None, False, "nodes") for value in reading.values()) and not logs and not wrong:
        raise click.UsageError("--units, --timezone, --columns and --strict apply only to logs of PBS, Slurm and Maui.")
    return PipistrelleError.exit_code if wrong else 0


def _bundled(name: str) -> list[tuple[str, str]]:
    """Return (heading, text) pairs that describe everything bundled under this name."""
    facts = describe_platform(platforms.get(name)) if name in platforms.names() else []
    if name in workloads.names():
        facts += describe_workload(workloads.load_bundled(name))
    if name in failures.names():
        facts += [("failure model", failures.describe(name))]
    if name in classes.names():
        facts += _class_facts(classes.get(name))
    if name in models.names():
        facts += _model_facts(models.get(name))
    is_file = os.path.exists(name)
    if name in registered() and not is_file:  # for 'run', too, a file comes before a scheduler's name
        preset = library_preset(name) if name in library_names() else None
        facts += [("scheduler", describe_scheduler(name))] if preset is None else _preset_facts(preset, name)
    if not (facts or Path(name).suffix or os.sep in name or is_file):
        known = sorted({one for kind in KINDS for one in names(kind)})
        near = did_you_mean(name, known)
        hint = near if near.startswith("Did") else "'pipistrelle show' lists all bundled names."
        raise InputError(f"there is no file and nothing bundled called '{name}'", hint=hint)
    return facts


def _facts(path: Path, *, sort: bool, **reading: Any) -> tuple[list[tuple[str, str]], bool]:
    """Return (heading, text) pairs that describe a file.

    Also return whether the file is the log of a batch system.
    """
    if is_node_table(str(path)):
        return describe_rows(load_node_rows(str(path))), False
    if (facts := _study_facts(path)) is not None:
        return facts, False
    if (spec := find_spec(path)) is not None:
        return _run_facts(spec, path), False
    if is_platform(str(path)) and not is_lease_trace(path):  # these are XML, too
        machine = load_machine(str(path)) if path.is_file() else read_platform(str(path))  # which says what is wrong
        if isinstance(machine, SimGridPlatform):
            return describe_simgrid(machine), False
        return describe_platform(machine), False
    if is_resource_trace(path):
        return describe_platform(
            maui_platform(read_maui_resources(path), trace_name(path), units=reading["units"])
        ), True
    require_workload(path, KINDS_READ)
    workload = load(path, sort=sort, **reading)
    return describe_workload(workload), is_log(workload)


def _study_facts(path: Path) -> list[tuple[str, str]] | None:
    """Return (heading, text) pairs for a study, job classes or a workload model.

    Return None for any other TOML file.
    """
    if path.suffix != ".toml" or not path.is_file():
        return None
    try:
        raw = read_raw(read_text(path), str(path), once=False)
    except PipistrelleError:  # the readers of other kinds give a better error
        return None
    if not isinstance(raw, dict):
        return None
    if {"hours", "machine_size"} <= raw.keys():
        return _model_facts(models.load_model(str(path)))
    if "machine_size" in raw:
        return _class_facts(classes.load_classes(str(path)))
    if raw and raw.keys() <= {field.encode_name for field in msgspec.structs.fields(Preset)}:
        return _preset_facts(read_preset(path), path.stem)
    if isinstance(raw.get("failures"), dict):
        return [("failure model", failures.model_line(parse_model(read_text(path), str(path))))]
    if raw.keys() & {"run", "axes", "replicas"}:
        study = Study.read(path)
        told = study.replicas
        replicas = f"precision {told.precision}" if told.precision is not None else f"{told.count or 1:,}"
        return [
            ("study", f"{len(study.points):,} points"),
            ("axes", ", ".join(f"{axis.name} ({len(axis.settings)})" for axis in study.axes) or "none"),
            ("replicas", replicas),
        ]
    return None


def _model_facts(model: models.WorkloadModel) -> list[tuple[str, str]]:
    return [
        ("model", model.name),
        ("jobs", f"{model.jobs:,} in {model.duration}, {model.serial:.1%} of one unit"),
        ("machine", f"{model.machine_size:,} units"),
        ("offered load", f"{model.load:.3f} of the machine"),
    ]


def _class_facts(found: classes.WorkloadClasses) -> list[tuple[str, str]]:
    return [
        ("classes", f"{found.name}: {len(found.classes):,}"),
        ("machine", f"{found.machine_size:,} units"),
        ("offered load", f"{found.offered_load:.3f} of the machine"),
    ]


def _preset_facts(preset: Preset, name: str) -> list[tuple[str, str]]:
    return [("scheduler", preset.description or name), *preset.parts.items()]


def _run_facts(spec: RunSpec, path: Path) -> list[tuple[str, str]]:
    """Return (heading, text) pairs that describe a run, after reading all its inputs."""
    decides = "started elsewhere"
    if spec.scheduler:
        with blamed(path, spec):
            check_scheduler(spec)
            # Do not run user code just to describe it.
            decides = " ".join(spec.program or ()) or spec.code or spec.make_policy().name
    setup = load_setup(with_digests(spec))
    steps = [("transform", " then ".join(step.words for step in spec.transform))] if spec.transform else []
    return [
        ("run", setup.name),
        *steps,
        ("jobs", f"{setup.jobs:,}"),
        ("platform", f"{setup.platform.name} ({setup.platform.units:,} units)"),
        ("scheduler", decides),
    ]


def describe_platform(platform: Platform) -> list[tuple[str, str]]:
    """Return (heading, text) pairs that describe a machine.

    They describe its pools, classes and failures.

    Raises:
        PipistrelleError: if the description of failures is not valid for this machine.
    """
    platform_failures(platform)
    return [
        *describe_pools(platform),
        *((f"class {one.name}", _class_text(one)) for one in platform.classes),
        *(
            ("failures", failing.model + ("" if failing.repair is None else f"; repair {failing.repair}"))
            for failing in platform.failures
        ),
    ]


def _class_text(one: JobClass) -> str:
    """Return the limits of a job class as text."""
    texts = [f"pools {', '.join(one.pools)}"] if one.pools else []
    limits = (one.max_nodes, one.max_nodes_per_user, one.max_nodes_per_job)
    for limit, whose in zip(limits, ("in all", "per user", "per job"), strict=True):
        if limit is not None:
            texts.append(f"at most {limit:,} node{'s' * (limit > 1)} {whose}")
    if one.max_walltime is not None:
        texts.append(f"walltime up to {_time_text(one.max_walltime)}")
    if one.priority:
        texts.append(f"priority {one.priority:g}")
    for name, time in (("prologue", one.prologue), ("epilogue", one.epilogue)):
        if time:
            texts.append(f"{name} {_time_text(time)}")
    return "; ".join(texts) or "no limits"


def _time_text(seconds: float) -> str:
    """Return a duration (s) as text, in the largest unit that gives a whole number."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds % length == 0:
            return f"{seconds / length:,.0f} {unit}"
    return f"{decimal_text(seconds)} s"
