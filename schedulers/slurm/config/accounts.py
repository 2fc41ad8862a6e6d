"""QOS, accounts and users with their shares and limits, as values."""

from collections.abc import Mapping
from math import inf

from msgspec import Struct, field


class QosSettings(Struct, frozen=True, kw_only=True):
    """A QOS as ``sacctmgr`` prints it; a limit that is None does not exist.

    A TRES map is, for example, {"cpu": 32, "gres/gpu": 4, "mem": 64000}, with memory in MiB. Fields that end in ``_pu``
    are limits per user, in ``_pa`` per account, in ``_pj`` per job, in ``_pn`` per node.

    Attributes:
        preempt: names of the QOS whose jobs may be preempted by jobs of this QOS.
        preempt_mode: ``PreemptMode``; None for the cluster's.
        preempt_exempt_time: s; None for the cluster's.
        flags: by Slurm's names, such as DenyOnLimit, NoReserve, OverPartQOS, UsageFactorSafe, NoDecay.
        grace_time, max_wall, grp_wall: s.
        *_tres_mins: {TRES: minutes}; ``*_tres_run_mins`` limit what running jobs may still use.
        limit_factor: multiplies the associations' limits; None for 1.
    """

    name: str
    priority: int = 0
    preempt: tuple[str, ...] = ()
    preempt_mode: str | None = None
    preempt_exempt_time: float | None = None
    grace_time: float = 0.0
    usage_factor: float = 1.0
    usage_thres: float | None = None
    limit_factor: float | None = None
    flags: frozenset[str] = frozenset()
    grp_jobs: int | None = None
    grp_submit_jobs: int | None = None
    grp_tres: Mapping[str, float] = field(default_factory=dict)
    grp_tres_mins: Mapping[str, float] = field(default_factory=dict)
    grp_tres_run_mins: Mapping[str, float] = field(default_factory=dict)
    grp_wall: float | None = None
    grp_jobs_accrue: int | None = None
    max_jobs_pu: int | None = None
    max_jobs_pa: int | None = None
    max_submit_jobs_pu: int | None = None
    max_submit_jobs_pa: int | None = None
    max_jobs_accrue_pu: int | None = None
    max_jobs_accrue_pa: int | None = None
    max_tres_pj: Mapping[str, float] = field(default_factory=dict)
    max_tres_pn: Mapping[str, float] = field(default_factory=dict)
    max_tres_pu: Mapping[str, float] = field(default_factory=dict)
    max_tres_pa: Mapping[str, float] = field(default_factory=dict)
    max_tres_mins_pj: Mapping[str, float] = field(default_factory=dict)
    max_wall_pj: float | None = None
    min_tres_pj: Mapping[str, float] = field(default_factory=dict)
    min_prio_thresh: int | None = None


class AssociationSettings(Struct, frozen=True, kw_only=True):
    """An account, or a user in an account, with its limits.

    ``user`` is "" for an account. A limit that is None is not set.

    Attributes:
        parent: name of the account above; "" for root.
        shares: ``Fairshare``; inf for ``Fairshare=parent``, which gives the user the account's share.
        priority: the association's priority factor.
        qos: names of the allowed QOS; None: those of the parent.
        default_qos: "" means the parent's, or ``normal``.
        max_wall_pj, grp_wall: s.
        *_tres_*: TRES maps as in `QosSettings`.
    """

    account: str
    user: str = ""
    partition: str = ""
    parent: str = ""
    shares: float = 1.0
    priority: int = 0
    is_default: bool = False
    qos: tuple[str, ...] | None = None
    default_qos: str = ""
    grp_jobs: int | None = None
    grp_submit_jobs: int | None = None
    grp_jobs_accrue: int | None = None
    grp_tres: Mapping[str, float] = field(default_factory=dict)
    grp_tres_mins: Mapping[str, float] = field(default_factory=dict)
    grp_tres_run_mins: Mapping[str, float] = field(default_factory=dict)
    grp_wall: float | None = None
    max_jobs: int | None = None
    max_submit_jobs: int | None = None
    max_jobs_accrue: int | None = None
    max_tres_pj: Mapping[str, float] = field(default_factory=dict)
    max_tres_pn: Mapping[str, float] = field(default_factory=dict)
    max_tres_mins_pj: Mapping[str, float] = field(default_factory=dict)
    max_wall_pj: float | None = None
    min_prio_thresh: int | None = None

    @property
    def inherits_share(self) -> bool:
        """Whether the share is the parent's (``Fairshare=parent``)."""
        return self.shares == inf
