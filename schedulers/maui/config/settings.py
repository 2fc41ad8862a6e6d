"""The settings of a maui.cfg: parameters, credentials with limits, reservations."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from math import inf
from typing import Final, NamedTuple, cast

from pipistrelle.schedulers.maui.config.parameters import PARAMETERS, Value
from pipistrelle.schedulers.policy.jobs import SchedulerJob

#: kinds of credentials, in Maui's order; a class is a job's queue
KINDS: Final = ("USER", "GROUP", "ACCOUNT", "CLASS", "QOS")
DEFAULT: Final = "DEFAULT"
#: flags of jobs that may preempt others, and of jobs that may be preempted
PREEMPTOR: Final = "PREEMPTOR"
PREEMPTEE: Final = "PREEMPTEE"
DAY: Final = 86400.0
WEEK: Final = 7 * DAY
#: {period of a standing reservation: length (s)}; INFINITY has none
PERIODS: Final = {"DAY": DAY, "WEEK": WEEK}


class TargetMode(Enum):
    """The kind of a fairshare target, given by the mark after the number, such as 25+."""

    TARGET = ""
    FLOOR = "+"
    CEILING = "-"
    #: a cap on usage, in percent
    CAP = "%"
    #: a cap on usage, in processor-seconds
    ABSOLUTE_CAP = "^"


class Limit(NamedTuple):
    """A limit from an attribute such as ``MAXPROC[USER]=32,64``.

    Attributes:
        metric: JOB, NODE, PROC, PS (unit x s), WC (s) or IJOB.
        per: kind of credential, such as USER, if the limit is for each credential of this kind separately; None: the
            limit is for all jobs together.
    """

    metric: str
    per: str | None
    soft: float
    hard: float


@dataclass(frozen=True)
class Credential:
    """The attributes of one user, group, account, class or QOS, or of DEFAULT."""

    priority: float = 0.0
    #: percent, or processor-seconds for an absolute cap; 0: none
    target: float = 0.0
    mode: TargetMode = TargetMode.TARGET
    limits: tuple[Limit, ...] = ()
    #: largest job: units and walltime (s)
    most_nodes_per_job: float = inf
    most_units_per_job: float = inf
    longest_job: float = inf
    default_qos: str | None = None
    #: PREEMPTOR, PREEMPTEE
    flags: frozenset[str] = frozenset()
    #: only for a QOS: added to QUEUETIMEWEIGHT and XFACTORWEIGHT; targets in seconds, and without unit
    queue_time_weight: float = 0.0
    xfactor_weight: float = 0.0
    queue_time_target: float = 0.0
    xfactor_target: float = 0.0


@dataclass(frozen=True)
class Standing:
    """A standing reservation (SRCFG); times in seconds from the start of its period."""

    name: str
    period: str = "DAY"
    start: float = 0.0
    end: float | None = None
    #: 0 is Sunday
    days: tuple[int, ...] = (0, 1, 2, 3, 4, 5, 6)
    depth: int = 2
    #: numbers, names or regular expressions, as `units_of_hosts` reads them; None: all
    hosts: tuple[str, ...] | None = None
    #: file and line of the hosts
    where: str = ""
    tasks: int = 0
    units_per_task: int = 1
    #: {kind: admitted names}
    access: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: jobs of at most this walltime (s) are also admitted; negative: none
    time_limit: float = -1.0


class Names(NamedTuple):
    """The credentials of a job; None for a kind of credential that the job lacks."""

    user: str | None
    group: str | None
    account: str | None
    class_: str | None
    qos: str | None


@dataclass(frozen=True)
class MauiSettings:
    """The settings of a maui.cfg; parameters that are not set have Maui's defaults.

    Attributes:
        values: {parameter: value} of the parameters that the file sets.
        credentials: {kind: {name: attributes}}; DEFAULT is for credentials that lack an attribute.
        system: limits of all jobs together, and the default QOS.
        stacks: {X: (RESERVATIONDEPTH[X], names in RESERVATIONQOSLIST[X] or None for all QOS)}.
    """

    values: Mapping[str, Value] = field(default_factory=dict)
    credentials: Mapping[str, Mapping[str, Credential]] = field(default_factory=dict)
    system: Credential = field(default_factory=Credential)
    stacks: Mapping[str, tuple[int, frozenset[str] | None]] = field(default_factory=lambda: {"0": (1, None)})
    standing: tuple[Standing, ...] = ()

    @cached_property
    def _has_default_qos(self) -> bool:
        return any(found.default_qos for names in self.credentials.values() for found in names.values())

    def number(self, name: str) -> float:
        """Return a numeric parameter; times in seconds."""
        return float(cast(float, self.values.get(name, PARAMETERS[name].default)))

    def text(self, name: str) -> str:
        """Return the value of a parameter that accepts one of several words."""
        return str(self.values.get(name, PARAMETERS[name].default))

    def flag(self, name: str) -> bool:
        """Return a boolean parameter."""
        return bool(self.values.get(name, PARAMETERS[name].default))

    def own(self, kind: str, name: str | None) -> Credential | None:
        """Return the attributes that the file sets for one credential.

        Return None if the file does not name the credential.
        """
        return None if name is None else self.credentials.get(kind, {}).get(name)

    def default(self, kind: str) -> Credential | None:
        """Return the attributes that DEFAULT sets for credentials of a kind.

        Return None if the file has no DEFAULT for this kind.
        """
        return self.credentials.get(kind, {}).get(DEFAULT)

    def flags(self, names: Names) -> frozenset[str]:
        """Return the flags of all credentials of a job.

        A credential without its own flags has those of DEFAULT.
        """
        found: frozenset[str] = frozenset()
        for kind, name in zip(KINDS, names, strict=True):
            own = self.own(kind, name)
            default = None if name is None else self.default(kind)
            found |= (own.flags if own is not None else found) or (default.flags if default is not None else found)
        return found

    @cached_property
    def preempts(self) -> bool:
        """Whether some jobs may preempt others."""
        flags = [one.flags for names in self.credentials.values() for one in names.values()]
        both = all(any(flag in some for some in flags) for flag in (PREEMPTOR, PREEMPTEE))
        return both and self.text("PREEMPTPOLICY") != "NONE"

    def walltime(self, job: SchedulerJob) -> float:
        """Return a job's walltime (s), or the default walltime if it has none."""
        return job.walltime if job.walltime != inf else self.number("SYSTEMDEFAULTJOBWALLTIME")

    def names(self, job: SchedulerJob) -> Names:
        """Return a job's credentials, with the default QOS if it has none."""
        description = job.description
        if description is None:
            return Names(None, None, None, None, self.system.default_qos or DEFAULT)
        user, group, account, class_ = (description.user, description.group, description.account, description.queue)
        qos = description.qos
        if qos is None and self._has_default_qos:
            for kind, name in zip(KINDS, (user, group, account, class_), strict=False):
                for found in (self.own(kind, name), self.default(kind) if name is not None else None):
                    if qos is None and found is not None:
                        qos = found.default_qos
        return Names(user, group, account, class_, qos or self.system.default_qos or DEFAULT)
