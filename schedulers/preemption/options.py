"""Options of preemption, with Slurm's names."""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Final, Literal, NamedTuple, get_args

from msgspec import Struct, field

from pipistrelle.protocol.base.errors import did_you_mean, printable
from pipistrelle.protocol.base.lengths import LengthError, parse_seconds
from pipistrelle.protocol.fields import LONGEST, PreemptMode
from pipistrelle.schedulers.policy.errors import PolicyError
from pipistrelle.schedulers.policy.jobs import SchedulerJob

#: how jobs of a QOS or partition are preempted; off: never
Mode = PreemptMode | Literal["off"]
_MODES: Final = (*get_args(PreemptMode), "off")
#: Slurm's default of a partition's PriorityTier
USUAL_TIER: Final = 1.0


class PreemptionOptions(Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Options of preemption, from a preset's table or the command line.

    Attributes:
        type: with ``qos``, each QOS lists the QOS that it preempts; with ``partition_prio``, queues preempt queues of
            lower tiers.
        mode: how jobs are preempted, as texts ``MODE`` for all or ``NAME=MODE`` for a QOS or partition.
        preempt: for type ``qos``, texts ``QOS=QOS|QOS``: jobs of the first QOS may preempt jobs of the others.
        priority_tier: {QOS or partition: tier}; jobs of lower tiers are preempted first.
        grace: grace periods, as texts ``TIME`` for all or ``NAME=TIME`` for a QOS or partition.
        exempt_time: least time that a job runs before it may be preempted.
        youngest_first: whether jobs of a tier are preempted in reverse order of their starts.
    """

    type: Literal["qos", "partition_prio"]
    mode: tuple[str, ...] = ()
    preempt: tuple[str, ...] = ()
    priority_tier: dict[str, float] = field(default_factory=dict)
    grace: tuple[str, ...] = ()
    exempt_time: str | None = None
    youngest_first: bool = False


class Terms(NamedTuple):
    """How jobs of a QOS or partition are preempted.

    The fields are the mode and the grace period (s).
    """

    mode: Mode
    grace: float


class PreemptionRules:
    """The parsed options of preemption.

    Raises:
        PolicyError: an option is invalid, or no job could be preempted.
    """

    def __init__(self, options: PreemptionOptions, where: str | None = None) -> None:
        self._by_qos = options.type == "qos"
        self._where = where
        self._modes: dict[str | None, str] = {}
        for name, text in self._named("--preempt-mode", options.mode):
            if text not in _MODES:
                raise self._wrong("--preempt-mode", text, " or ".join(_MODES), did_you_mean(text, list(_MODES)))
            self._modes[name] = text
        self._graces: dict[str | None, float] = {
            name: self._time("--preempt-grace", text) for name, text in self._named("--preempt-grace", options.grace)
        }
        #: least run time before preemption, s
        self.exempt = 0.0
        if options.exempt_time is not None:
            self.exempt = self._time("--preempt-exempt-time", options.exempt_time)
        #: {QOS: the QOS that it preempts}
        self._lists: dict[str, frozenset[str]] = {}
        for text in options.preempt:
            name, sign, others = text.partition("=")
            if not (name and sign) or "" in others.split("|") or name in self._lists:
                raise self._wrong("--preempt", text, "QOS=QOS or QOS=QOS|QOS, each QOS once")
            self._lists[name] = frozenset(others.split("|"))
        for name, tier in options.priority_tier.items():
            if not isfinite(tier):
                raise self._wrong("--priority-tier", f"{name}={tier}", "a finite number")
        self.tiers: dict[str, float] = dict(options.priority_tier)
        self.youngest_first = options.youngest_first
        if self._by_qos and not self._lists:
            raise PolicyError("no QOS may preempt another", where=where, expected="--preempt QOS=QOS")
        if not self._by_qos and self._lists:
            what = "--preempt is for QOS, but --preempt-type says that partitions preempt by their tiers"
            raise PolicyError(what, where=where, expected="--preempt-type qos, or --priority-tier QUEUE=NUMBER")
        if self._modes.get(None) == "off" and set(self._modes.values()) == {"off"}:
            raise PolicyError("no job may be preempted", where=where, expected="a --preempt-mode other than off")

    def learn_classes(self, tiers: Mapping[str, float]) -> None:
        """Use ``tiers``, {queue: tier}, for queues whose tier no option sets.

        Raises:
            PolicyError: all tiers are equal, so that no queue may preempt another.
        """
        if self._by_qos:
            return
        self.tiers = {**tiers, **self.tiers}
        if {*self.tiers.values(), USUAL_TIER} == {USUAL_TIER}:
            raise PolicyError(
                "no partition may preempt another: all have the same tier",
                where=self._where,
                expected="--priority-tier QUEUE=NUMBER, or classes of the machine with other priorities",
            )

    def tier(self, job: SchedulerJob) -> float:
        """Return the tier of a job's QOS or partition."""
        name = self._name(job)
        return USUAL_TIER if name is None else self.tiers.get(name, USUAL_TIER)

    def may_ever(self, job: SchedulerJob) -> bool:
        """Return whether the options let a job preempt any other job."""
        if self._by_qos:
            return self._name(job) in self._lists
        return self.tier(job) > min((USUAL_TIER, *self.tiers.values()))

    def may(self, job: SchedulerJob, other: SchedulerJob) -> bool:
        """Return whether ``job`` may preempt ``other``."""
        if self._by_qos:
            found = self._name(other) in self._lists.get(self._name(job) or "", ())
        else:
            found = self.tier(job) > self.tier(other)
        return found and self.terms(other).mode != "off"

    def terms(self, job: SchedulerJob) -> Terms:
        """Return the mode and the grace period with which a job is preempted."""
        name = self._name(job)
        mode = self._modes.get(name, self._modes.get(None, "requeue"))
        return Terms(mode, self._graces.get(name, self._graces.get(None, 0.0)))  # type: ignore[arg-type]

    def _name(self, job: SchedulerJob) -> str | None:
        if job.description is None:
            return None
        return job.description.qos if self._by_qos else job.description.queue

    def _named(self, option: str, texts: Sequence[str]) -> list[tuple[str | None, str]]:
        """Split the texts of an option into (name, value) pairs.

        A text is ``VALUE`` (the name is None) or ``NAME=VALUE``.
        """
        found: list[tuple[str | None, str]] = []
        for text in texts:
            name, sign, value = text.rpartition("=")
            if (sign and not name) or not value or (name or None) in [one for one, _ in found]:
                raise self._wrong(option, text, "one value for all, and NAME=VALUE once per QOS or partition")
            found.append((name or None, value))
        return found

    def _time(self, option: str, text: str) -> float:
        try:
            seconds = parse_seconds(text, or_zero=True)
        except LengthError as error:
            raise PolicyError(error.what, where=option, expected=error.expected, found=error.found) from None
        if seconds > LONGEST:
            raise self._wrong(option, text, f"at most {LONGEST:g} s")
        return seconds

    def _wrong(self, option: str, found: str, expected: str, hint: str | None = None) -> PolicyError:
        what = f"invalid {option}"
        return PolicyError(what, where=self._where, expected=expected, found=f"'{printable(found)}'", hint=hint)
