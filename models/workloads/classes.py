"""Workloads described by classes of jobs.

Classes have sizes, rates, service times and accounts.
"""

import math
import re
from typing import Annotated, Final

import numpy as np
from msgspec import Meta, Struct

from pipistrelle.models.samples.estimates import NORMAL_95
from pipistrelle.platforms.catalogue import Catalogue
from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.failures.durations import Durations, Exponential, Fixed, Lognormal, Weibull
from pipistrelle.platforms.failures.text import parse_durations
from pipistrelle.protocol.base.errors import PipistrelleError, did_you_mean, shown
from pipistrelle.protocol.base.lengths import QUANTITY, parse_seconds
from pipistrelle.protocol.base.shapes import convert_table
from pipistrelle.protocol.base.toml import read_toml
from pipistrelle.traces.files import text_if_file

_MANUAL: Final = "'pipistrelle help reliability' lists every key."
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}")
_RANGE: Final = re.compile(r"(\d{1,9})\s*:\s*(\d{1,9})", re.ASCII)
#: seconds per hour, because rates are per hour
HOUR: Final = 3600.0
#: quantile of a class's service times that the reliability formulas use as run time T
_MOST_JOBS: Final = 0.95
#: number of points of the integral over truncated service times
_POINTS: Final = 20_001

Count = Annotated[int, Meta(ge=1, le=10_000_000)]
Positive = Annotated[float, Meta(gt=0)]


class ClassesError(PlatformError):
    """Classes of a workload are invalid or do not fit a machine."""


class Project(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A project that owns jobs, in a description of classes.

    Args:
        name: account and group of the project's jobs.
        share: weight of the project among the accounts of a class.
        users: number of users, all equally busy.
        gpu: whether the project's jobs use GPUs.
    """

    name: str
    share: Positive = 1.0
    users: Annotated[int, Meta(ge=1, le=10_000)] = 1
    gpu: bool = True


class ServiceClass(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Jobs of one kind; docs/how-to/reliability.md has the grammar of the texts.

    Args:
        name: name of the class and of the jobs' queue; None: its size.
        size: units per job: a number, or "MIN:MAX", uniform.
        rate: jobs per hour, a Poisson process; alternative to `jobs`.
        jobs: number of jobs, at uniform times of the workload.
        service: distribution of the run time. "0.476h" is an exponential distribution with this mean. Other
            distributions are written as "fixed,mean=1h" or "lognormal,...".
        service_95: run time that 95 % do not exceed; None: from the distribution.
        longest: upper bound to which run times are cut; None: no limit.
        walltime: requested time, as in `workload scale --walltime`; None: ``longest``, or no limit.
        accounts: accounts that submit these jobs; empty: all.
    """

    size: Count | str
    service: str
    name: str | None = None
    rate: Positive | None = None
    jobs: Count | None = None
    service_95: str | None = None
    longest: str | None = None
    walltime: str | None = None
    accounts: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Return the name of the class; without a name, its size."""
        return self.name or str(self.size).replace(":", "-").replace(" ", "")

    @property
    def sizes(self) -> tuple[int, int]:
        """Return the smallest and the largest job size of the class (units)."""
        if isinstance(self.size, int):
            return self.size, self.size
        found = _RANGE.fullmatch(self.size.strip())
        if found is None or not 1 <= int(found[1]) <= int(found[2]):
            raise ClassesError(
                "a size cannot be read", expected="a number of units, or 'MIN:MAX'", found=shown(self.size)
            )
        return int(found[1]), int(found[2])

    @property
    def distribution(self) -> Durations:
        """Return the distribution of run times (s), before long ones are cut to the limit."""
        if QUANTITY.fullmatch(self.service.strip()):
            return Exponential(parse_seconds(self.service, "service time"))
        return parse_durations(self.service, "service", "service time")

    @property
    def limit(self) -> float:
        """Return the longest possible run time of the class (s)."""
        return math.inf if self.longest is None else parse_seconds(self.longest, "longest service")

    @property
    def mean_service(self) -> float:
        """Return the mean run time (s): the integral of P(longer than t) up to the limit."""
        law, limit = self.distribution, self.limit
        if math.isinf(limit):
            return law.mean
        steps = np.linspace(0.0, limit, _POINTS)
        chances = np.array([_longer(law, time) for time in steps.tolist()])
        return float((chances[:-1] + chances[1:]).sum() / 2 * (limit / (_POINTS - 1)))

    @property
    def most_service(self) -> float:
        """Return the run time T (s) that 95 % of the jobs do not exceed."""
        if self.service_95 is not None:
            return parse_seconds(self.service_95, "service time of 95 %")
        law = self.distribution
        if isinstance(law, Weibull):
            most = law.scale * math.pow(-math.log(1 - _MOST_JOBS), 1 / law.shape)
        elif isinstance(law, Lognormal):
            most = law.median * math.exp(law.sigma * NORMAL_95)
        else:
            most = law.mean if isinstance(law, Fixed) else -math.log(1 - _MOST_JOBS) * law.mean
        return min(most, self.limit)


def _longer(law: Durations, time: float) -> float:
    """Return the probability that a run time is longer than `time` s."""
    if isinstance(law, Fixed):
        return float(time < law.mean)
    if isinstance(law, Lognormal):
        return 0.5 * math.erfc(math.log(time / law.median) / (law.sigma * math.sqrt(2))) if time else 1.0
    scale, shape = (law.scale, law.shape) if isinstance(law, Weibull) else (law.mean, 1.0)
    return math.exp(-((time / scale) ** shape))


class WorkloadClasses(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A workload as classes of jobs.

    Args:
        name, description, source: its name, one line about it, and the origin of its numbers.
        duration: how long jobs are submitted, such as "1824h".
        epoch: Unix time (s) of time 0; None: no dates.
    """

    name: str
    machine_size: Count
    duration: str
    classes: Annotated[tuple[ServiceClass, ...], Meta(min_length=1)]
    description: str = ""
    source: str = ""
    epoch: Annotated[float, Meta(ge=0, le=2.0**40)] | None = None
    timezone: str | None = None
    accounts: tuple[Project, ...] = ()

    @property
    def seconds(self) -> float:
        """Return the length of the time in which jobs are submitted (s)."""
        return parse_seconds(self.duration, "duration")

    def rate(self, one: ServiceClass) -> float:
        """Return how many jobs of a class are submitted per hour."""
        return one.rate if one.rate is not None else (one.jobs or 0) / (self.seconds / HOUR)

    @property
    def offered_load(self) -> float:
        """Return requested over available unit-hours.

        At 1 or more, the queue grows forever.
        """
        asked = math.fsum(self.rate(one) * sum(one.sizes) / 2 * one.mean_service / HOUR for one in self.classes)
        return asked / self.machine_size

    def of(self, one: ServiceClass) -> tuple[Project, ...]:
        """Return the accounts that submit a class's jobs."""
        return tuple(account for account in self.accounts if not one.accounts or account.name in one.accounts)


def parse_classes(text: str, where: str) -> WorkloadClasses:
    """Parse a workload of classes from TOML; error messages call the text ``where``."""
    hint = "Text needs quotes; a class begins with [[classes]]."
    raw = read_toml(text, where, ClassesError, manual=_MANUAL, hint=hint)
    found = convert_table(raw, WorkloadClasses, where, ClassesError, _MANUAL)
    try:
        check_classes(found)
    except PipistrelleError as error:
        raise error.at(f"{where}: {error.where}" if error.where else where, ClassesError) from None
    return found


def check_classes(workload: WorkloadClasses) -> None:
    """Raise ClassesError, naming the class or account, if a value is invalid."""
    _check_names("accounts", [one.name for one in workload.accounts])
    _check_names("classes", [one.label for one in workload.classes])
    try:
        _ = workload.seconds
    except PipistrelleError as error:
        raise error.at("duration", ClassesError) from None
    known = [one.name for one in workload.accounts]
    for one in workload.classes:
        where = f"class {one.label}"
        if (one.rate is None) == (one.jobs is None):
            what, found = "the number of jobs is not defined", "neither" if one.rate is None else "both"
            raise ClassesError(what, where=where, expected="'rate' or 'jobs'", found=found)
        try:
            largest = one.sizes[1]
            _ = one.distribution, one.limit, one.most_service
        except PipistrelleError as error:
            raise error.at(where if error.where is None else f"{where}: {error.where}", ClassesError) from None
        if largest > workload.machine_size:
            what, expected = "a class is larger than the machine", f"at most {workload.machine_size:,} units"
            raise ClassesError(what, where=where, expected=expected, found=f"{largest:,}")
        for name in one.accounts:
            if name not in known:
                raise ClassesError(f"unknown account {shown(name)}", where=where, hint=did_you_mean(name, known))


def _check_names(kind: str, names: list[str]) -> None:
    for index, name in enumerate(names):
        if _NAME.fullmatch(name) is None:
            expected = "1 to 64 letters, digits, '_', '.', '+' or '-', a letter or digit first"
            raise ClassesError("a name is not valid", where=f"{kind}[{index}]", expected=expected, found=shown(name))
        if name in names[:index]:
            raise ClassesError(f"the name {shown(name)} is used twice", where=f"{kind}[{index}]")


def _line(found: WorkloadClasses) -> str:
    return f"{found.description} ({len(found.classes)} classes, {found.machine_size:,} units)"


_CATALOGUE: Final = Catalogue("pipistrelle.models.workloads", "set of classes", parse_classes, ClassesError, _line)
names: Final = _CATALOGUE.names
get: Final = _CATALOGUE.get
describe: Final = _CATALOGUE.describe


def load_classes(name: str) -> WorkloadClasses:
    """Return bundled classes by their name, or the classes in a file."""
    return _CATALOGUE.named(name, text_if_file, "there are no classes", "bundled ones, or a TOML file")
