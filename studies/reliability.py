"""What fails in a run, and how its jobs live with it, from what a user says on the command line."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from pipistrelle.platforms.description import Platform
from pipistrelle.platforms.durations import Durations
from pipistrelle.platforms.failure_plan import FailurePlan
from pipistrelle.platforms.failure_text import parse_durations
from pipistrelle.platforms.maintenance import (
    MaintenancePlan,
    MaintenanceRule,
    parse_maintenance,
    parse_maintenance_lines,
)
from pipistrelle.platforms.outage import Outages
from pipistrelle.platforms.outage_csv import csv_chunks
from pipistrelle.server.reliability import Reliability, Requeue, RestartWalltime, Walltime
from pipistrelle.studies.inputs import InputError, read_text
from pipistrelle.studies.outages import clock_time, failure_plan, on_machine
from pipistrelle.traces.outage_logs import load_outage_log
from pipistrelle.traces.resilience import NONE, Resilience
from pipistrelle.traces.workload import Workload

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

    def load(self, platform: Platform, workload: Workload) -> Reliability | None:
        """Return what happens on a machine during a workload; None if nothing ever fails or is maintained.

        Raises
        ------
        PipistrelleError
            if a text is wrong, a file cannot be read, or they do not suit the machine.
        """
        repair = None if self.repair is None else parse_durations(self.repair)
        plan, said = self._plan(platform, repair)
        outages, log = self._outages(platform, workload, repair)
        maintenance, rules = self._maintenance(platform, workload)
        if plan is None and outages is None and maintenance is None:
            self._refuse_idle_options()
            if self.resilience == NONE:
                return None
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

    def _plan(self, platform: Platform, repair: Durations | None) -> tuple[FailurePlan | None, list[dict[str, Any]]]:
        """Return the failures, and what the run's configuration says of them."""
        if self.failures == (NO_FAILURES,):
            return None, []
        if self.failures:
            plan = failure_plan(self.failures, platform, repair, self.factor)
            return plan, [{"model": text, "repair": self.repair} for text in self.failures]
        parts: list[FailurePlan] = []
        for number, failing in enumerate(platform.failures):
            own = repair
            if own is None and failing.repair is not None:
                own = parse_durations(failing.repair, f"{platform.name}: failures[{number}].repair")
            parts.append(failure_plan([failing.model], platform, own, self.factor, where=f"{platform.name}: failures"))
        if not parts:
            return None, []
        plan = FailurePlan(tuple(source for part in parts for source in part.sources))
        return plan, [msgspec.to_builtins(failing) for failing in platform.failures]

    def _outages(
        self, platform: Platform, workload: Workload, repair: Durations | None
    ) -> tuple[Outages | None, dict[str, Any] | None]:
        if self.outages is None:
            if self.outages_class is not None or self.outages_start is not None:
                raise InputError("--outages-class and --outages-start choose a part of --outages FILE")
            return None, None
        log = load_outage_log(self.outages)
        if self.outages_class is not None:
            log = log.only(self.outages_class)
        start = None if self.outages_start is None else clock_time(log, self.outages_start)
        outages = on_machine(log, platform, start=start, repair=repair, seed=self.seed)
        outages.check_nodes(platform.nodes)
        digest = hashlib.sha256(b"".join(csv_chunks(outages))).hexdigest()
        return outages, {"source": log.source, "outages": len(outages), "sha256": digest}

    def _maintenance(self, platform: Platform, workload: Workload) -> tuple[MaintenancePlan | None, list[str]]:
        rules: list[MaintenanceRule] = []
        epoch, zone = workload.epoch, workload.timezone
        for text in self.maintenance:
            if os.path.isfile(text):
                lines = read_text(Path(text)).splitlines()
                found = parse_maintenance_lines(lines, platform, where=text, epoch=epoch, timezone=zone)
                if not found:
                    raise InputError("there is no maintenance in the file", where=text, expected="a rule a line")
                rules += found
            else:
                rules.append(parse_maintenance(text, platform, where="--maintenance", epoch=epoch, timezone=zone))
        return (MaintenancePlan(tuple(rules)), [rule.text for rule in rules]) if rules else (None, [])

    def _refuse_idle_options(self) -> None:
        """Raise InputError if something is said of failures that never come."""
        default = ReliabilityOptions(failures=self.failures)
        for name in ("repair", "requeue", "max_attempts", "restart_walltime", "walltime"):
            if getattr(self, name) != getattr(default, name):
                option = "checkpoint-walltime" if name == "walltime" else name.replace("_", "-")
                raise InputError(
                    f"--{option} has no effect: nothing fails",
                    expected="--failures, --outages or --maintenance, or a platform with failures",
                )
