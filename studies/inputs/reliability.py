"""What fails in a run, and how its jobs live with it, from what a user says on the command line."""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from pipistrelle.platforms.description import Platform
from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.protocol.base.log import logger
from pipistrelle.server.outages.reliability import Reliability
from pipistrelle.studies.inputs.named import InputError, read_text
from pipistrelle.traces.resilience import NONE, Requeue, Resilience, RestartWalltime, Walltime
from pipistrelle.traces.workload import Workload

# Most runs have no failures: what deals with them is imported when there are some.
if TYPE_CHECKING:
    from pipistrelle.platforms.failures.durations import Durations
    from pipistrelle.platforms.failures.outage import Outages
    from pipistrelle.platforms.failures.plan import FailurePlan
    from pipistrelle.platforms.maintenance import MaintenancePlan, MaintenanceRule
    from pipistrelle.platforms.simgrid.platform_file import SimGridPlatform
    from pipistrelle.traces.outages.log import OutageLog

#: in place of a model: the platform's own failures are left out
NO_FAILURES: Final = "none"


@dataclass(frozen=True, slots=True)
class ReliabilityOptions:
    """What a user may say; every text as on the command line (docs/failures.md).

    Parameters
    ----------
    failures
        models, which replace those of the platform; ``none``: none. Empty: the platform's.
    repair
        how long repairs take; None: as models and platform have it.
    seed, factor
        of the models.
    outages
        a file of outages; None: none.
    outages_class, outages_start
        the part of the file's nodes to take, and when on its clock time 0 is.
    maintenance
        rules, or files of rules.
    resilience
        how jobs meet failures whose workload does not say.
    """

    failures: tuple[str, ...] = ()
    repair: str | None = None
    seed: int = 1
    factor: float = 1.0
    outages: str | None = None
    outages_class: str | None = None
    outages_start: str | None = None
    maintenance: tuple[str, ...] = ()
    resilience: Resilience = NONE
    requeue: Requeue = "original"
    max_attempts: int | None = None
    restart_walltime: RestartWalltime = "full"
    walltime: Walltime = "asked"

    @property
    def files(self) -> list[str]:
        """What may be names of files that are read."""
        models = [text.partition(",")[0] for text in self.failures]
        return [*models, *self.maintenance, *([] if self.outages is None else [self.outages])]

    def load(self, machine: "Platform | SimGridPlatform", workload: Workload) -> Reliability | None:
        """Return what happens on a machine during a workload; None if nothing ever fails or is maintained.

        Failures with which a workload can hardly end are warned of. A file of outages can name the hosts of a machine
        that has names for them.

        Raises
        ------
        PipistrelleError
            if a text is wrong, a file cannot be read, they do not suit the machine, or one has no effect.
        """
        repair = None
        if self.repair is not None:
            from pipistrelle.platforms.failures.text import parse_durations

            repair = parse_durations(self.repair)
        platform = machine if isinstance(machine, Platform) else machine.to_platform()
        hosts = [] if isinstance(machine, Platform) else [host.name for host in machine.hosts]
        plan, said = self._plan(platform, repair)
        outages, log, drawn = self._outages(platform, hosts, repair)
        maintenance, rules = self._maintenance(platform, workload)
        interrupts = not (plan is None and outages is None and maintenance is None)
        own, models = _have_own_ways(workload), plan is not None
        self._refuse_idle_options(models=models, drawn=drawn or models, interrupts=interrupts, own=own)
        if not interrupts and self.resilience == NONE:
            return None
        for remark in [
            *([] if plan is None else [*_remarks(plan, platform, workload), *self._endless(plan, platform, workload)]),
            *([] if outages is None else _losses(outages, platform, workload)),
            *([] if maintenance is None else _squeezes(maintenance, platform, workload)),
        ]:
            logger().warning("{}", remark)
        described: dict[str, Any] = {
            "failures": said,
            "repair": self.repair,
            "seed": self.seed,
            "reliability_factor": self.factor,
            "outages": log,
            "maintenance": rules,
        }
        return Reliability(
            plan,
            self.seed,
            outages,
            maintenance,
            self.resilience,
            self.requeue,
            self.max_attempts,
            self.restart_walltime,
            self.walltime,
            described,
        )

    def _plan(
        self, platform: Platform, repair: "Durations | None"
    ) -> "tuple[FailurePlan | None, list[dict[str, Any]]]":
        """Return the failures, and what the run's configuration says of them."""
        if self.failures == (NO_FAILURES,):
            return None, []
        if NO_FAILURES in self.failures:
            raise InputError("--failures none goes with no other model", found=", ".join(self.failures))
        if self.failures:
            from pipistrelle.studies.inputs.outages import failure_plan

            named = failure_plan(self.failures, platform, repair, self.factor)
            return named, [{"model": text, "repair": self.repair, **_digest(text)} for text in self.failures]
        plan = platform_failures(platform, repair, self.factor)
        return plan, [{**msgspec.to_builtins(failing), **_digest(failing.model)} for failing in platform.failures]

    def _outages(
        self, platform: Platform, hosts: Sequence[str], repair: "Durations | None"
    ) -> "tuple[Outages | None, dict[str, Any] | None, bool]":
        """Return the outages of the file, what the run's configuration says of them, and whether ends are drawn."""
        if self.outages is None:
            if self.outages_class is not None or self.outages_start is not None:
                raise InputError("--outages-class and --outages-start choose a part of --outages FILE")
            return None, None, False
        from pipistrelle.platforms.failures.outage import csv_chunks
        from pipistrelle.studies.fits.outage_summary import clock_text
        from pipistrelle.studies.inputs.outages import on_machine
        from pipistrelle.traces.outages.load import load_outage_log

        log = load_outage_log(self.outages)
        if self.outages_class is not None:
            log = log.only(self.outages_class)
        start = None if self.outages_start is None else _start(log, self.outages_start)
        outages = on_machine(
            log,
            platform,
            start=start,
            repair=repair,
            seed=self.seed,
            hosts=hosts if _names_hosts(log, hosts) else None,
        )
        outages.check_nodes(platform.nodes)
        if start is not None and len(log) and not len(outages):
            raise InputError(
                "all outages of the file are over by then",
                where="--outages-start",
                expected=f"before {clock_text(log, float(np.nanmax(log.down)))}",
                found=self.outages_start,
            )
        digest = hashlib.sha256(b"".join(csv_chunks(outages))).hexdigest()
        said = {"source": log.source, "outages": len(outages), "sha256": digest}
        return outages, said, bool(np.isnan(log.up).any())

    def _maintenance(self, platform: Platform, workload: Workload) -> "tuple[MaintenancePlan | None, list[str]]":
        if not self.maintenance:
            return None, []
        from pipistrelle.platforms.maintenance import (
            MaintenancePlan,
            parse_maintenance,
            parse_maintenance_lines,
        )

        rules: list[MaintenanceRule] = []
        epoch, zone = workload.epoch, workload.timezone
        for text in self.maintenance:
            if os.path.isfile(text):
                lines = read_text(Path(text)).splitlines()
                found = parse_maintenance_lines(lines, platform, where=text, epoch=epoch, timezone=zone)
                if not found:
                    raise InputError("there is no maintenance in the file", where=text, expected="a rule a line")
                rules += found
            elif len(text.split()) == 1:  # a rule has three words at least
                raise InputError(
                    "this is neither a rule of maintenance nor a file of them",
                    where="--maintenance",
                    expected="as '2017-01-29 08:00 +8h all', or a file's name",
                    found=f"'{text}', " + ("a folder" if os.path.isdir(text) else "and there is no such file"),
                    hint="docs/failures.md has the language.",
                )
            else:
                rules.append(parse_maintenance(text, platform, where="--maintenance", epoch=epoch, timezone=zone))
        return MaintenancePlan(tuple(rules)), [rule.text for rule in rules]

    def _endless(self, plan: "FailurePlan", platform: Platform, workload: Workload) -> list[str]:
        """Return what is to be said of jobs that fail again and again before they have saved or done anything.

        With a rate L of failures together, e^(L t) attempts are to be expected until one works for a time t. Domains,
        whose nodes fail together, and jobs that can go on with fewer nodes are left out.
        """
        way = self.resilience
        limited = self.requeue == "never" or self.max_attempts is not None or _have_own_ways(workload)
        if limited or isinstance(way.interval, str) or way.kind not in ("none", "checkpoint"):
            return []
        if any(source.domains for source in plan.sources):
            return []
        needed = np.minimum(workload.runtime, workload.walltime)
        if way.interval is not None:
            needed = np.minimum(needed, way.interval + way.dump + way.read)
        nodes = np.ceil(workload.size / max(pool.units_per_node for pool in platform.pools))
        rate = float(plan.rates(platform.nodes).mean())
        rows = np.flatnonzero((nodes * rate * needed > np.log(_MANY)) & (workload.size <= platform.units))
        if not rows.size:
            return []
        return [f"{_named(rows, workload)} will hardly ever be over: more than {_MANY:,} attempts are to be expected"]

    def _refuse_idle_options(self, *, models: bool, drawn: bool, interrupts: bool, own: bool) -> None:
        """Raise InputError if something is said of what never comes.

        ``models`` tells whether there are models of failures, ``drawn`` whether something is random, ``interrupts``
        whether jobs can lose nodes at all, ``own`` whether jobs of the workload have ways of their own to meet it.
        """
        default, way = ReliabilityOptions(), self.resilience
        nothing = ("nothing fails", "--failures, --outages or --maintenance, or a platform with failures")
        ends = "the file says when its outages end" if self.outages is not None else "nothing fails"
        drawing = (ends, "--failures, or a platform with failures")
        without_models = ("there are no models of failures", "--failures, or a platform with failures")
        for name, works, (why, expected) in (
            ("repair", drawn, drawing),
            ("factor", models, without_models),
            ("seed", drawn, drawing if self.repair is not None else without_models),
            ("requeue", interrupts, nothing),
            ("max_attempts", interrupts, nothing),
            ("restart_walltime", interrupts, nothing),
            ("walltime", interrupts, nothing),
            ("max_attempts", self.requeue != "never", ("jobs do not come back", "another --requeue than never")),
            ("restart_walltime", self.requeue != "never", ("jobs do not come back", "another --requeue than never")),
            ("restart_walltime", own or way.interval is not None, ("no job saves work", "--checkpoint")),
            ("walltime", own or way != NONE, ("no job has dumps or spares", "--checkpoint, --spares or --resilience")),
        ):
            if not works and getattr(self, name) != getattr(default, name):
                option = _OPTION_OF.get(name, name.replace("_", "-"))
                raise InputError(f"--{option} has no effect: {why}", expected=expected)


def _have_own_ways(workload: Workload) -> bool:
    """Return whether jobs say themselves how they meet failures."""
    return any(b'"resilience"' in raw for raw in workload.job_json or ())


def platform_failures(
    platform: Platform, repair: "Durations | None" = None, factor: float = 1.0
) -> "FailurePlan | None":
    """Return the plan of the failures that a platform's own file names; None if it names none.

    ``repair`` replaces that of each model, ``factor`` multiplies all rates.

    Raises
    ------
    PipistrelleError
        if one of its texts is wrong, or does not suit the machine.
    """
    if not platform.failures:
        return None
    from pipistrelle.platforms.failures.plan import FailurePlan, Source
    from pipistrelle.platforms.failures.text import parse_durations
    from pipistrelle.studies.inputs.outages import failure_plan

    sources: list[Source] = []
    for number, failing in enumerate(platform.failures):
        own = repair
        if own is None and failing.repair is not None:
            own = parse_durations(failing.repair, f"{platform.name}: failures[{number}].repair")
        sources += failure_plan([failing.model], platform, own, factor, where=f"{platform.name}: failures").sources
    return FailurePlan(tuple(sources))


#: options whose names on the command line are longer
_OPTION_OF: Final = {"walltime": "checkpoint-walltime", "factor": "reliability-factor"}
_DAY: Final = 86400.0
#: by so much (s) a gap between two dates can be longer than the days between them
_CLOCK_CHANGE: Final = 3600.0
#: attempts of one job
_MANY: Final = 1000
#: so many standard deviations above the mean are hardly ever seen
_NEVER: Final = 4.0


def _digest(text: str) -> dict[str, str]:
    """Return the digest of the file that a model's text names, none if it names no file: its name alone says little."""
    name = text.partition(",")[0].strip()
    if not name.endswith(".toml"):
        return {}
    return {"sha256": hashlib.sha256(read_text(Path(name)).encode()).hexdigest()}


def _names_hosts(log: "OutageLog", hosts: Sequence[str]) -> bool:
    """Return whether a log's nodes are these hosts: some of its names are, or it is a list for people with names."""
    if not hosts:
        return False
    known = set(hosts)
    by_hand = log.format == "CSV" and not all(name.isdecimal() for name in log.nodes)
    return by_hand or any(name in known for name in log.nodes)


def _start(log: "OutageLog", text: str) -> float:
    from pipistrelle.studies.inputs.outages import clock_time

    try:
        return clock_time(log, text)
    except PipistrelleError as error:
        raise InputError(
            error.what, where="--outages-start", expected=error.expected, found=error.found, hint=error.hint
        ) from None


def _remarks(plan: "FailurePlan", platform: Platform, workload: Workload) -> list[str]:
    """Return what is to be said of failures with which a workload can hardly end."""
    if not len(workload):
        return []
    remarks = []
    span = float(workload.submit.max() - workload.submit.min() + np.nanmax(workload.runtime, initial=0.0))
    repair = max(source.model.repair.mean for source in plan.sources)
    if repair > span:
        remarks.append(
            f"a repair takes {repair:,.6g} s on average, longer than all jobs of {workload.name} take to be submitted "
            f"and run ({span:,.6g} s): a node that fails will hardly be back by then"
        )
    up, spread = plan.units_up(platform)
    largest = workload.size <= platform.units
    row = int(np.argmax(np.where(largest, workload.size, 0)))
    size = int(workload.size[row])
    if largest[row] and size > up + _NEVER * spread:
        remarks.append(
            f"{up:,.6g} of {platform.units:,} units are up on average: job {workload.ids[row]} of {size:,} units "
            "will hardly ever find as many"
        )
    return remarks


def _losses(outages: "Outages", platform: Platform, workload: Workload) -> list[str]:
    """Return what is to be said of jobs for which too many units are gone for good when they are submitted."""
    gone = np.isinf(outages.up)
    if not gone.any():
        return []
    each = np.repeat([pool.units_per_node for pool in platform.pools], [pool.nodes for pool in platform.pools])
    order = np.argsort(outages.down[gone], kind="stable")
    times = outages.down[gone][order]
    left = platform.units - np.concatenate([[0], np.cumsum(each[outages.node[gone][order]])])
    rows = np.flatnonzero(
        (workload.size > left[np.searchsorted(times, workload.submit, side="right")])
        & (workload.size <= platform.units)
    )
    if not rows.size:
        return []
    return [f"{_named(rows, workload)} can never start, for nodes that never come back"]


def _squeezes(plan: "MaintenancePlan", platform: Platform, workload: Workload) -> list[str]:
    """Return what is to be said of jobs whose walltimes fit between no two occurrences of what recurs for ever."""
    remarks = []
    each = np.repeat([pool.units_per_node for pool in platform.pools], [pool.nodes for pool in platform.pools])
    for rule in plan.rules:
        if not rule.endless:
            continue
        gap = rule.days * _DAY - rule.length + (0.0 if rule.first.date is None else _CLOCK_CHANGE)
        beside = platform.units - int(sum(each[low : high + 1].sum() for low, high in rule.nodes.intervals))
        rows = np.flatnonzero(
            (workload.size > beside)
            & (workload.size <= platform.units)
            & (workload.walltime > gap)
            & (workload.submit + workload.walltime > rule.first.seconds)
        )
        if rows.size:
            remarks.append(f"{_named(rows, workload)} can hardly be over between two occurrences of '{rule.text}'")
    return remarks


def _named(rows: NDArray[np.intp], workload: Workload) -> str:
    """Return how many jobs these are, and which, as far as that is short."""
    names = ", ".join(workload.ids[row] for row in rows[:3].tolist())
    if rows.size == 1:
        return f"job {names}"
    return f"{rows.size:,} jobs ({names}{' and others' if rows.size > 3 else ''})"
