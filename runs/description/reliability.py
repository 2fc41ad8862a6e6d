"""Failures, outages, maintenance and resilience of a run, from its description."""

import hashlib
import math
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from pipistrelle.platforms.description import Platform
from pipistrelle.protocol.base.errors import InputError, said_of
from pipistrelle.protocol.base.lengths import parse_seconds
from pipistrelle.protocol.base.log import logger
from pipistrelle.runs.description.remarks import have_own_ways, remarks_on
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.server.outages.reliability import Reliability
from pipistrelle.traces.files import read_text
from pipistrelle.traces.resilience import NONE, parse_resilience
from pipistrelle.traces.workload import Workload

# Most runs have no failures, so their modules are imported late.
if TYPE_CHECKING:
    from pipistrelle.platforms.failures.durations import Durations
    from pipistrelle.platforms.failures.outage import Outages
    from pipistrelle.platforms.failures.plan import FailurePlan
    from pipistrelle.platforms.maintenance.plan import MaintenancePlan, MaintenanceRule
    from pipistrelle.platforms.simgrid.platform_file import SimGridPlatform
    from pipistrelle.traces.outages.log import OutageLog

#: value that disables the platform's own failures
NO_FAILURES: Final = "none"
#: options for requeued jobs; they also apply to preempted jobs
_COMING_BACK: Final = ("requeue", "max_attempts", "restart_walltime", "checkpoint_walltime")


def load_reliability(spec: RunSpec, machine: "Platform | SimGridPlatform", workload: Workload) -> Reliability | None:
    """Return the failures and maintenance of a machine during a workload.

    Return None if nodes never fail and are never maintained. Log a warning if failures make it unlikely that all jobs
    ever end. Host names in a file of outages refer to hosts of ``machine``.

    Raises:
        PipistrelleError: an option is wrong or has no effect, a file is unreadable, or inputs do not suit the machine.
    """
    resilience = parse_resilience(
        checkpoint=spec.checkpoint, dump=spec.dump, read=spec.read, spares=spec.spares, resilience=spec.resilience
    )
    if not math.isfinite(spec.reliability_factor):
        raise InputError("the factor of the failure rates is not a finite number", where="--reliability-factor")
    repair = None
    if spec.repair is not None:
        from pipistrelle.platforms.failures.text import parse_durations

        repair = parse_durations(spec.repair)
    platform = machine if isinstance(machine, Platform) else machine.to_platform()
    hosts = [] if isinstance(machine, Platform) else [host.name for host in machine.hosts]
    plan, said = _plan(spec, platform, repair)
    outages, log, drawn = _outages(spec, platform, hosts, repair)
    maintenance, rules = _maintenance(spec, platform, hosts, workload)
    interrupts = not (plan is None and outages is None and maintenance is None)
    own, models = have_own_ways(workload), plan is not None
    preempted = has_coming_back(spec) and spec.may_preempt  # the second check can be slow
    _refuse_idle_options(
        spec,
        models=models,
        drawn=drawn or models,
        interrupts=interrupts or preempted,
        dumps=own or resilience.interval is not None,
        ways=own or resilience != NONE,
    )
    if not interrupts and not preempted and resilience == NONE:
        return None
    found = Reliability(
        plan,
        spec.seed,
        outages,
        maintenance,
        {
            "failures": said,
            "repair": spec.repair,
            "seed": spec.seed,
            "reliability_factor": spec.reliability_factor,
            "outages": log,
            "maintenance": rules,
        },
        resilience=resilience,
        requeue=spec.requeue,
        max_attempts=spec.max_attempts,
        restart_walltime=spec.restart_walltime,
        walltime=spec.checkpoint_walltime,
        expected_attempts=spec.expected_attempts,
    )
    for remark in remarks_on(found, platform, workload):
        logger().warning("{}", remark)
    return found


def has_coming_back(spec: RunSpec) -> bool:
    """Return whether the description has options for requeued jobs.

    An example is ``--max-attempts``.
    """
    return any(getattr(spec, name) != getattr(RunSpec(), name) for name in _COMING_BACK)


def _plan(
    spec: RunSpec, platform: Platform, repair: "Durations | None"
) -> "tuple[FailurePlan | None, list[dict[str, Any]]]":
    if spec.failures == (NO_FAILURES,):
        return None, []
    if NO_FAILURES in spec.failures:
        raise InputError("--failures none cannot be combined with a model", found=", ".join(spec.failures))
    if spec.failures:
        from pipistrelle.runs.inputs.outages import failure_plan

        named = failure_plan(spec.failures, platform, repair, spec.reliability_factor)
        return named, [{"model": text, "repair": spec.repair, **_digest(text)} for text in spec.failures]
    plan = platform_failures(platform, repair, spec.reliability_factor)
    return plan, [{**msgspec.to_builtins(failing), **_digest(failing.model)} for failing in platform.failures]


def _outages(
    spec: RunSpec, platform: Platform, hosts: Sequence[str], repair: "Durations | None"
) -> "tuple[Outages | None, dict[str, Any] | None, bool]":
    """Read the file of outages.

    Returns:
        The outages (None without a file), their entry in the run's configuration, and whether repair times are drawn at
        random.
    """
    if spec.outages is None:
        if (spec.outages_class, spec.outages_start, spec.outages_shortest) != (None, None, None):
            raise InputError("--outages-class, --outages-start and --outages-shortest need --outages FILE")
        return None, None, False
    from pipistrelle.models.reliability.outage_summary import clock_text
    from pipistrelle.platforms.failures.outage import csv_chunks
    from pipistrelle.runs.inputs.outages import on_machine
    from pipistrelle.traces.outages.load import load_outage_log

    log = load_outage_log(spec.outages)
    if spec.outages_class is not None:
        log = log.only(spec.outages_class)
    if spec.outages_shortest is not None:
        with said_of("--outages-shortest"):
            shortest = parse_seconds(spec.outages_shortest)
        log = log.select(~(log.up - log.down < shortest))  # outages with unknown end (NaN) remain
    start = None if spec.outages_start is None else _start(log, spec.outages_start)
    outages = on_machine(log, platform, start=start, repair=repair, seed=spec.seed, hosts=hosts)
    outages.check_nodes(platform.nodes)
    if start is not None and len(log) and not len(outages):
        raise InputError(
            "all outages of the file end before this time",
            where="--outages-start",
            expected=f"before {clock_text(log, float(np.nanmax(log.down)))}",
            found=spec.outages_start,
        )
    digest = hashlib.sha256(b"".join(csv_chunks(outages))).hexdigest()
    said = {"source": log.source, "outages": len(outages), "sha256": digest}
    return outages, said, bool(np.isnan(log.up).any())


def _maintenance(
    spec: RunSpec, platform: Platform, hosts: Sequence[str], workload: Workload
) -> "tuple[MaintenancePlan | None, list[str]]":
    if not spec.maintenance:
        return None, []
    from pipistrelle.platforms.maintenance.plan import MaintenancePlan
    from pipistrelle.platforms.maintenance.text import parse_maintenance, rules_of_lines
    from pipistrelle.platforms.topology.nodes import numbers_by_name

    rules: list[MaintenanceRule] = []
    read = partial(
        parse_maintenance,
        platform=platform,
        epoch=workload.epoch,
        timezone=workload.timezone,
        names={name: number for number, name in enumerate(hosts)} or numbers_by_name(platform),
    )
    for text in spec.maintenance:
        if os.path.isfile(text):
            found = rules_of_lines(read_text(Path(text)).splitlines(), read, where=text)
            if not found:
                raise InputError("the file has no maintenance rules", where=text, expected="one rule per line")
            rules += found
        elif len(text.split()) == 1:  # a rule has at least three words, so this is a file name
            raise InputError(
                "this is neither a maintenance rule nor a file of them",
                where="--maintenance",
                expected="a rule such as '2017-01-29 08:00 +8h all', or a file's name",
                found=f"'{text}', " + ("a folder" if os.path.isdir(text) else "and there is no such file"),
                hint="See 'pipistrelle help failures'.",
            )
        else:
            rules.append(read(text, where="--maintenance"))
    return MaintenancePlan(tuple(rules)), [rule.text for rule in rules]


def _refuse_idle_options(
    spec: RunSpec, *, models: bool, drawn: bool, interrupts: bool, dumps: bool, ways: bool
) -> None:
    """Raise InputError for an option that has no effect in this run.

    Args:
        models: whether the run has failure models.
        drawn: whether the run draws random numbers.
        interrupts: whether jobs can lose nodes.
        dumps: whether some jobs write checkpoints.
        ways: whether some jobs have their own resilience options.
    """
    default = RunSpec()
    nothing = ("nothing fails", "--failures, --outages or --maintenance, or a platform with failures")
    ends = "the file says when its outages end" if spec.outages is not None else "nothing fails"
    drawing = (ends, "--failures, or a platform with failures")
    without_models = ("there are no failure models", "--failures, or a platform with failures")
    for name, works, (why, expected) in (
        ("repair", drawn, drawing),
        ("reliability_factor", models, without_models),
        ("seed", drawn, drawing if spec.repair is not None else without_models),
        ("requeue", interrupts, nothing),
        ("max_attempts", interrupts, nothing),
        ("expected_attempts", models, without_models),
        ("restart_walltime", interrupts, nothing),
        ("checkpoint_walltime", interrupts, nothing),
        ("max_attempts", spec.requeue != "never", ("jobs are not requeued", "another --requeue than never")),
        ("expected_attempts", spec.requeue != "never", ("jobs are not requeued", "another --requeue than never")),
        ("expected_attempts", spec.max_attempts is None, ("--max-attempts limits attempts", "one of the two")),
        ("restart_walltime", spec.requeue != "never", ("jobs are not requeued", "another --requeue than never")),
        ("restart_walltime", dumps, ("no job saves work", "--checkpoint")),
        ("checkpoint_walltime", ways, ("no job has dumps or spares", "--checkpoint, --spares or --resilience")),
    ):
        if not works and getattr(spec, name) != getattr(default, name):
            raise InputError(f"--{name.replace('_', '-')} has no effect: {why}", expected=expected)


def platform_failures(
    platform: Platform, repair: "Durations | None" = None, factor: float = 1.0
) -> "FailurePlan | None":
    """Return the failure plan of a platform.

    Return None if the platform file has no failures.

    Args:
        repair: the repair time, which replaces that of each failure model; None: keep these.
        factor: multiplies all failure rates.

    Raises:
        PipistrelleError: a failure model is wrong, or does not suit the machine.
    """
    if not platform.failures:
        return None
    from pipistrelle.platforms.failures.plan import FailurePlan, Source
    from pipistrelle.platforms.failures.text import parse_durations
    from pipistrelle.runs.inputs.outages import failure_plan

    sources: list[Source] = []
    for number, failing in enumerate(platform.failures):
        own = repair
        if own is None and failing.repair is not None:
            own = parse_durations(failing.repair, f"{platform.name}: failures[{number}].repair")
        sources += failure_plan([failing.model], platform, own, factor, where=f"{platform.name}: failures").sources
    return FailurePlan(tuple(sources))


def _digest(text: str) -> dict[str, str]:
    """Return {"sha256": digest} of the file that a failure model names.

    ``text`` is the failure model. The result is {} if it names no file.
    """
    name = text.partition(",")[0].strip()
    if not name.endswith(".toml"):
        return {}
    return {"sha256": hashlib.sha256(read_text(Path(name)).encode()).hexdigest()}


def _start(log: "OutageLog", text: str) -> float:
    from pipistrelle.runs.inputs.outages import clock_time

    with said_of("--outages-start"):
        return clock_time(log, text)
