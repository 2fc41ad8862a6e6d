"""The scheduler of a run: a built-in policy with options, or an external program."""

import math
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from msgspec import Meta, Struct, field
from msgspec.structs import fields, force_setattr

from pipistrelle.protocol.base.errors import PipistrelleError, printable
from pipistrelle.protocol.base.lengths import seconds_of
from pipistrelle.protocol.base.log import logger
from pipistrelle.schedulers.catalogue.foreign import read_foreign
from pipistrelle.schedulers.catalogue.names import PLACEHOLDER, SLURMCTLD, is_foreign

if TYPE_CHECKING:
    from pipistrelle.platforms.topology.partitions import RankedClass
    from pipistrelle.runs.slurm.cluster import SlurmCluster
    from pipistrelle.schedulers.policy.interfaces import Policy

MAUI: Final = "maui"
SLURM: Final = "slurm"
#: take the size classes from the jobs submitted so far
AUTO: Final[Literal["auto"]] = "auto"
#: longest time (s), as in failure files; a double loses precision for longer times
_LONGEST_S: Final = 1e14
_AXES: Final = ("order", "backfill", "placement")
#: {field: (part of the policy, key of the option in a preset's table for that part)}
_KEYS: Final = {
    "formula": ("order", "formula"),
    "queue_priority": ("order", "queue-priorities"),
    "fairshare_entity": ("order", "fairshare-entity"),
    "fairshare_shares": ("order", "fairshare-shares"),
    "unknown_shares": ("order", "unknown-shares"),
    "fairshare_decay_time": ("order", "decay-time"),
    "fairshare_decay_factor": ("order", "decay-factor"),
    "backfill_depth": ("backfill", "depth"),
    "strict_ordering": ("backfill", "strict-ordering"),
    "node_order": ("placement", "node-order"),
    "age_aware": ("placement", "age-aware"),
    "dual_ended": ("placement", "dual-ended"),
    "base_order": ("placement", "base-order"),
    "reliability_target": ("placement", "reliability-target"),
}


#: {field: name of the preemption option}
_PREEMPTION: Final = {
    "preempt_type": "type",
    "preempt_mode": "mode",
    "preempt": "preempt",
    "priority_tier": "priority_tier",
    "preempt_grace": "grace",
    "preempt_exempt_time": "exempt_time",
    "preempt_youngest_first": "youngest_first",
}
#: {field that is true by default: option that sets it to false}
OPPOSITES: Final = {"strict_config": "--lenient-config"}


class PolicySpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """The scheduler of a run; each field is an option (docs/reference/cli.md).

    Attributes:
        scheduler: a name, ``file.toml``, ``file.py:OBJECT``, a folder with ``scheduler.toml``, or a command with
            ``{endpoint}``; a tuple: a program and its arguments; an empty tuple: the user starts the scheduler.
        order, backfill, placement: policy parts to use instead of the scheduler's own.
        formula, queue_priority, fairshare_entity, fairshare_shares, unknown_shares: options of the job order ``pbs``.
        fairshare_decay_time, fairshare_decay_factor: how fast recorded usage decays in the job order ``pbs``.
        backfill_depth, strict_ordering: options of the backfill ``depth``.
        node_order, age_aware, dual_ended, base_order, reliability_target: options of every placement
            (docs/reference/placing.md). ``dual_ended`` and ``base_order`` are conditions that select jobs, such as
            ``nodes<=16``.
        reliability, blocking, admission: for reliability partitions, the size classes (bundled, a file, or ``auto``),
            the blocking probability, and what happens to a job that cannot start at once.
        preempt_type and the fields after it up to preempt_youngest_first: options of preemption
            (docs/reference/preemption.md).
        config: the scheduler's configuration file: a maui.cfg, a slurm.conf, or the folder of a slurm.conf. The files
            beside a slurm.conf are read, too.
        strict_config: whether unknown parameters in it are errors and not warnings. In a maui.cfg, this also holds for
            unsupported parameters that would change decisions.
        accounting: files of sacctmgr, for ``slurm`` and ``slurmctld``.
        reservations: for ``slurm``, files of ``scontrol create reservation`` (``FILE`` or ``FILE,zero=DATE``).
        slurm_prefix: for ``slurmctld``, the folder in which Slurm is installed; None: the programs in the PATH.
        slurm: values that override the files of ``slurm``, by key of the configuration, such as ``bf_window``,
            ``partition.debug.MaxTime`` or ``qos.high.MaxTRESPU``.
        poll: make decisions only at multiples of this time, such as ``5s``; None: at every event.
    """

    scheduler: str | tuple[str, ...] = "easy"
    order: str | None = None
    backfill: str | None = None
    placement: str | None = None
    formula: str | None = None
    queue_priority: dict[str, float] = field(default_factory=dict)
    fairshare_entity: Literal["user", "group", "account", "queue", "qos"] | None = None
    fairshare_shares: dict[str, Annotated[float, Meta(ge=0)]] = field(default_factory=dict)
    unknown_shares: Annotated[float, Meta(ge=0)] | None = None
    fairshare_decay_time: str | None = None
    fairshare_decay_factor: Annotated[float, Meta(ge=0, le=1)] | None = None
    backfill_depth: Annotated[int, Meta(ge=0)] | None = None
    strict_ordering: bool | None = None
    node_order: Literal["id", "snake", "hilbert", "alps"] | None = None
    age_aware: bool | None = None
    dual_ended: tuple[str, ...] = ()
    base_order: tuple[str, ...] = ()
    reliability_target: Annotated[float, Meta(gt=0, lt=1)] | None = None
    reliability: str | None = None
    blocking: Annotated[float, Meta(ge=0, le=1)] | None = None
    admission: Literal["queue", "block"] | None = None
    preempt_type: Literal["qos", "partition_prio"] | None = None
    preempt_mode: tuple[str, ...] = ()
    preempt: tuple[str, ...] = ()
    priority_tier: dict[str, float] = field(default_factory=dict)
    preempt_grace: tuple[str, ...] = ()
    preempt_exempt_time: str | None = None
    preempt_youngest_first: bool | None = None
    config: str | None = None
    strict_config: bool = True
    accounting: tuple[str, ...] = ()
    reservations: tuple[str, ...] = ()
    slurm: dict[str, str | float | bool] = field(default_factory=dict)
    slurm_prefix: str | None = None
    poll: str | None = None

    def __post_init__(self) -> None:
        """Replace a folder by the slurm.conf in it."""
        if self.config is not None and self.scheduler in (SLURM, SLURMCTLD) and os.path.isdir(self.config):
            force_setattr(self, "config", os.path.join(self.config, "slurm.conf"))

    @property
    def program(self) -> tuple[str, ...] | None:
        """Return the command of a scheduler program.

        Return () if the user starts the program, and None if the scheduler is a built-in policy.
        """
        if not isinstance(self.scheduler, str):
            return self.scheduler
        if self.scheduler == SLURMCTLD:
            return self._slurmctld()
        if self.folder is not None:
            return read_foreign(self.folder).argv
        return split_words(self.scheduler, "--scheduler") if PLACEHOLDER in self.scheduler else None

    @property
    def folder(self) -> str | None:
        """Return the folder of a scheduler written in another language, else None."""
        return self.scheduler if isinstance(self.scheduler, str) and is_foreign(self.scheduler) else None

    def _slurmctld(self) -> tuple[str, ...]:
        """Return the command of ``slurmctld``.

        Raise PolicyError if other schedulers' options are given.
        """
        from pipistrelle.schedulers.policy.errors import PolicyError

        others = self._options_besides({"scheduler", "config", "accounting", "slurm_prefix"})
        if others:
            raise PolicyError(f"'slurmctld' does not take {', '.join(others)}", hint="Everything is in its slurm.conf.")
        if self.config is None:
            raise SchedulerChoice(
                "the scheduler slurmctld needs the configuration of a cluster",
                where="--config",
                expected="--config slurm.conf",
                hint="'pipistrelle help slurmctld' describes its needs.",
            )
        own = (sys.executable, "-m", "pipistrelle.cli", "schedule", SLURMCTLD, "--quiet")
        prefix = () if self.slurm_prefix is None else ("--slurm-prefix", self.slurm_prefix)
        accounting = [word for file in self.accounting for word in ("--accounting", file)]
        return (*own, "--config", self.config, *accounting, *prefix, "--connect", PLACEHOLDER)

    def _options_besides(self, own: set[str]) -> list[str]:
        """Return the options that are given, without those of the fields ``own``."""
        default = PolicySpec()
        return [
            f"--{one.encode_name}"
            for one in fields(PolicySpec)
            if one.name not in own and getattr(self, one.name) != getattr(default, one.name)
        ]

    @property
    def program_name(self) -> str | None:
        """Return the name of the scheduler program.

        Return None for a built-in policy, or if the user starts the program.
        """
        if self.scheduler == SLURMCTLD:
            return SLURMCTLD
        if self.folder is not None:
            return read_foreign(self.folder).name
        return short_name(self.program) if self.program else None

    @property
    def code(self) -> str | None:
        """Return ``file.py:CLASS`` if the scheduler is Python code to execute, else None."""
        from pipistrelle.schedulers.catalogue.names import entries, is_ours

        name = self.scheduler
        if not isinstance(name, str) or ":" not in name or self.program is not None:
            return None
        return None if is_ours(name) or name in entries() else name

    @property
    def options(self) -> list[str]:
        """Return the scheduler's parts and options that the user gave.

        The result is a list of command-line arguments.
        """
        words: list[str] = []
        for one in fields(PolicySpec)[1:]:
            value, option = getattr(self, one.name), f"--{one.encode_name}"
            if one.name == "slurm":
                words += [word for name, text in self.slurm_changes.items() for word in (option, f"{name}={text}")]
            elif isinstance(value, dict):
                words += [word for name, number in value.items() for word in (option, f"{name}={number!r}")]
            elif isinstance(value, tuple):
                words += [word for text in value for word in (option, text)]
            elif isinstance(value, bool):
                no = OPPOSITES.get(one.name, f"--no-{one.encode_name}")
                words += [option if value else no] if value != one.default else []
            elif value is not None:
                words += [option, str(value)]
        return words

    @property
    def may_preempt(self) -> bool:
        """Return whether the scheduler may preempt.

        It is True for every program and for Python code.
        """
        if self.preempt_type is not None or self.program is not None or self.code is not None:
            return True
        if self.scheduler == MAUI and self.config is not None:
            from pipistrelle.schedulers.maui.config.read import read_maui_config

            return read_maui_config(Path(self.config), strict=self.strict_config)[0].preempts
        if self.scheduler == SLURM:
            return self.config is not None and self.slurm_cluster().config.preempt.type != "preempt/none"
        assert isinstance(self.scheduler, str), "a program"
        from pipistrelle.schedulers.catalogue.registry import preemption_of

        return preemption_of(self.scheduler) is not None

    @property
    def slurm_changes(self) -> dict[str, str]:
        """Return {key: value as text} of the settings that override files.

        They override the files of the scheduler ``slurm``.
        """
        from pipistrelle.schedulers.slurm.files.overrides import text_of

        return {key: text_of(value) for key, value in self.slurm.items()}

    def slurm_cluster(self) -> "SlurmCluster":
        """Read the files of the scheduler ``slurm``.

        Raise PipistrelleError if a file is missing or wrong.
        """
        from pipistrelle.runs.slurm.cluster import load_cluster

        if self.config is None:
            raise SchedulerChoice(
                "the scheduler slurm needs the configuration of a cluster",
                where="--config",
                expected="--config slurm.conf",
                hint="'pipistrelle help slurm' describes the files.",
            )
        strict = self.strict_config and self.scheduler != SLURMCTLD  # slurmctld itself judges its file
        return load_cluster(self.config, self.accounting, self.reservations, self.slurm_changes, strict=strict)

    @property
    def asks_of_nodes(self) -> bool:
        """Return whether the policy needs properties of nodes, such as an MTTF.

        A machine may lack such properties.
        """
        placed = self.node_order not in (None, "id") or bool(self.age_aware) or self.reliability_target is not None
        return placed or self.reliability is not None

    @property
    def size_classes(self) -> "tuple[RankedClass, ...] | None":
        """Return the job size classes of the reliability partitions.

        Return None without partitions, or with ``auto``.
        """
        if self.reliability in (None, AUTO):
            return None
        from pipistrelle.models.reliability.resources import described  # most runs have no size classes
        from pipistrelle.models.workloads.classes import load_classes

        return tuple(one.sizes for one in described(load_classes(str(self.reliability))).classes)

    def make_policy(self, *, warn: bool = True, polls: bool = True) -> "Policy":
        """Return the policy object of this description.

        The scheduler must not be a program.

        Args:
            warn: log warnings about the scheduler's configuration files.
            polls: if False, ignore the polling interval (``poll``).

        Raises:
            PipistrelleError: the scheduler is unknown or cannot be loaded, or the parts and options do not suit it.
        """
        from pipistrelle.schedulers.catalogue.registry import make_policy, own_placement  # help needs none of these

        name = self.scheduler
        assert isinstance(name, str), "a program"
        if self.folder is not None:
            raise SchedulerChoice(
                "the scheduler in a folder can only run as a program of its own",
                where=printable(self.folder),
                hint=f"Start it with 'pipistrelle run --scheduler {printable(self.folder)}'.",
            )
        step = None if self.poll is None else step_of(self.poll)
        parts = {axis: part for axis in _AXES if (part := getattr(self, axis)) is not None}
        tables: dict[str, dict[str, Any]] = {axis: {} for axis in _AXES}
        for option, (axis, key) in _KEYS.items():
            if (value := getattr(self, option)) not in (None, {}, ()):
                tables[axis][key] = value
        if self.formula is not None:
            from pipistrelle.schedulers.orders.pbs import UNKNOWN, VARIABLES
            from pipistrelle.schedulers.pbs.formula import Formula

            Formula(self.formula, VARIABLES, "--formula", UNKNOWN)  # the error then names the option
        if name == SLURM:
            return self._slurm(parts, warn=warn)
        self._refuse_slurm_options(name)
        if self.config is not None or not self.strict_config:
            self._read_config(name, warn=warn)
            if name != MAUI:
                tables["order"] |= {"config": self.config, "strict-config": self.strict_config}
        divided = self._partitions()
        preemption = {
            key: value for option, key in _PREEMPTION.items() if (value := getattr(self, option)) not in (None, {}, ())
        }
        if preemption:
            divided["preemption"] = preemption
        own = not parts.keys() - {"placement"} and not tables["order"] and not divided
        if name == MAUI and self.config is not None and own:
            from pipistrelle.schedulers.maui.config.read import read_maui_config  # most runs start without it
            from pipistrelle.schedulers.maui.policy import MauiPolicy

            policy: Policy = MauiPolicy(
                read_maui_config(Path(self.config), strict=self.strict_config)[0],
                placement=own_placement(self.placement, tables["placement"]),
            )
        else:
            policy = make_policy(
                name,
                **parts,
                order_options=tables["order"],
                backfill_options=tables["backfill"],
                placement_options=tables["placement"],
                **divided,
            )
        if step is None or not polls:
            return policy
        from pipistrelle.schedulers.runtime.polling import Polling

        return Polling(policy, step)

    def _slurm(self, parts: dict[str, str], *, warn: bool) -> "Policy":
        """Return the policy of the scheduler ``slurm``.

        Raise PolicyError if other schedulers' options are given.
        """
        from pipistrelle.schedulers.policy.errors import PolicyError

        others = self._options_besides({"scheduler", "config", "strict_config", "accounting", "reservations", "slurm"})
        if parts or others:
            raise PolicyError(
                f"'slurm' does not take {', '.join(others)}",
                hint="Everything is in its slurm.conf; --slurm KEY=VALUE changes it.",
            )
        cluster = self.slurm_cluster()
        for warning in cluster.warnings if warn else ():
            logger().warning("{}", warning)
        from pipistrelle.schedulers.slurm.policy import SlurmPolicy  # most runs do not need it

        return SlurmPolicy(cluster.config)

    def _refuse_slurm_options(self, name: str) -> None:
        from pipistrelle.schedulers.policy.errors import PolicyError

        for option in ("accounting", "reservations", "slurm"):
            if getattr(self, option):
                raise PolicyError(
                    f"'{printable(name)}' does not take --{option}", where=f"--{option}", expected="--scheduler slurm"
                )
        if self.slurm_prefix is not None:
            option = "--slurm-prefix"
            raise PolicyError(
                f"'{printable(name)}' does not take {option}", where=option, expected="--scheduler slurmctld"
            )

    def _partitions(self) -> dict[str, Any]:
        """Return the arguments of `make_policy` that describe the reliability partitions."""
        found: dict[str, Any] = {
            key: value for key in ("blocking", "admission") if (value := getattr(self, key)) is not None
        }
        if self.reliability is None:
            return found
        from pipistrelle.schedulers.partitions.placement import PartitionOptions  # rarely needed

        return {"reliability": PartitionOptions(classes=self.size_classes or AUTO), **found}

    def _read_config(self, name: str, *, warn: bool) -> None:
        """Read the maui.cfg that the description names, and log its warnings.

        Raise PolicyError if the policy uses no maui.cfg.
        """
        from pipistrelle.schedulers.catalogue.registry import order_of
        from pipistrelle.schedulers.policy.errors import PolicyError

        if self.config is None:
            raise PolicyError(f"{OPPOSITES['strict_config']} requires --config FILE")
        ordered = None if name == MAUI else order_of(name, self.order)
        if MAUI not in (name, ordered and ordered[0]):
            raise PolicyError(
                f"'{printable(name)}' does not read a maui.cfg",
                where="--config",
                expected="the scheduler maui, or the order maui",
            )
        from pipistrelle.schedulers.maui.config.read import read_maui_config

        for warning in read_maui_config(Path(self.config), strict=self.strict_config)[1]:
            if warn:
                logger().warning("{}", warning)


class SchedulerChoice(PipistrelleError):
    """The name or the options of a scheduler are not valid."""


def span_of(text: str) -> float:
    """Parse a duration such as ``24h``; return seconds.

    Raise ValueError if it is malformed, negative or too long.
    """
    try:
        seconds = seconds_of(text)
    except ValueError as error:
        raise ValueError(f"'{text}' is not a length of time: {error}.") from None
    if seconds > _LONGEST_S or math.isnan(seconds):
        raise ValueError(f"'{text}' is longer than {_LONGEST_S:g} s.")
    return seconds


def step_of(text: str) -> float:
    """Parse a polling interval into seconds, or raise SchedulerChoice."""
    try:
        if (seconds := span_of(text)) > 0:
            return seconds
    except ValueError as error:
        raise SchedulerChoice(str(error).removesuffix("."), where="--poll") from None
    raise SchedulerChoice(f"'{text}' is not above zero", where="--poll")


def split_words(text: str, where: str) -> tuple[str, ...]:
    """Split a command into arguments as a shell does, or raise SchedulerChoice."""
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise SchedulerChoice(f"this cannot be split into words ({error})", where=where, found=text) from None


def short_name(scheduler: str | Sequence[str]) -> str:
    """Return a short name for a run: its policy, script or program."""
    if isinstance(scheduler, str):
        return scheduler.removeprefix("./")
    words = [word for word in scheduler[1:] if Path(word).suffix and not word.startswith("-")]
    return Path(next((word for word in words if PLACEHOLDER not in word), scheduler[0])).stem
