"""The associations and QOS of a cluster, with the usage of their jobs."""

from collections.abc import Collection, Iterator, Mapping
from math import inf
from typing import Any, Final

import numpy as np

from pipistrelle.schedulers.slurm.config.accounts import AssociationSettings, QosSettings
from pipistrelle.schedulers.slurm.config.settings import SlurmConfig

#: {TRES: amount}
Tres = dict[str, float]
#: slurmctld's mark for a normalised usage that was never computed; it calculates with this number
NEVER_USED: Final = float(0xFFFFFFFE)
#: effective usage of a user that has not been computed in this period
UNKNOWN: Final = -1.0
#: limits that only refuse submissions
_SUBMIT_LIMITS: Final = {"grp_submit_jobs", "max_submit_jobs", "max_submit_jobs_pu", "max_submit_jobs_pa"}


class Used:
    """The present usage by jobs: running jobs, their TRES, and submitted jobs.

    Attributes:
        nodes: {node: jobs on it}, if a limit needs it. A node with several jobs counts as one.
    """

    __slots__ = ("jobs", "nodes", "submitted", "tres")

    def __init__(self) -> None:
        self.jobs = 0
        self.submitted = 0
        self.tres: Tres = {}
        self.nodes: dict[int, int] = {}

    def begin(self, tres: Mapping[str, float], nodes: Collection[int]) -> None:
        """Add a job that starts.

        Args:
            tres: the job's TRES.
            nodes: the job's nodes, if a limit needs them.
        """
        self.jobs += 1
        mine = self.tres
        for name, amount in tres.items():
            mine[name] = mine.get(name, 0) + amount
        for node in nodes:
            self.nodes[node] = self.nodes.get(node, 0) + 1
        if nodes:
            mine["node"] = len(self.nodes)

    def end(self, tres: Mapping[str, float], nodes: Collection[int]) -> None:
        """Remove a job that ends.

        Args:
            tres: the job's TRES.
            nodes: the job's nodes, if a limit needs them.
        """
        self.jobs -= 1
        mine = self.tres
        for name, amount in tres.items():
            mine[name] = mine.get(name, 0) - amount
        for node in nodes:
            self.nodes[node] -= 1
            if not self.nodes[node]:
                del self.nodes[node]
        if nodes:
            mine["node"] = len(self.nodes)

    def new_nodes(self, tres: Tres, nodes: Collection[int]) -> Tres:
        """Return ``tres`` without the nodes among ``nodes`` that are counted already."""
        if not self.nodes or not nodes:
            return tres
        return {**tres, "node": sum(node not in self.nodes for node in nodes)}

    def state(self) -> list[Any]:
        """Return the counts as a list."""
        return [self.jobs, self.submitted, dict(self.tres), list(self.nodes.items())]

    @classmethod
    def restored(cls, state: list[Any]) -> "Used":
        """Return the counts saved in ``state``, a result of the method `state`."""
        used = cls()
        used.jobs, used.submitted, used.tres, used.nodes = state[0], state[1], dict(state[2]), dict(state[3])
        return used


class _Column:
    """An attribute of `Association`, stored for all associations in one array.

    The array is the attribute of the same name of the table of associations.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, one: "Association", owner: type) -> float:
        value: float = getattr(one.table, self._name).item(one.index)
        return value

    def __set__(self, one: "Association", value: float) -> None:
        getattr(one.table, self._name)[one.index] = value


class Association:
    """An account, or a user in an account, with its usage.

    Attributes:
        is_user: whether it is a user's rather than an account's.
        parent, children: positions in the table; -1 for no parent.
        usage: decayed billing-seconds of the jobs.
        wall: decayed run time of the jobs, s.
        minutes: {TRES: decayed TRES-seconds}.
        shares: its own shares; inf if it uses its parent's.
        level_fs, factor: results of the last calculation of fairshare.
        norm_usage: usage divided by that of root, when classic fairshare last needed it.
    """

    __slots__ = (
        "children",
        "index",
        "is_user",
        "minutes",
        "parent",
        "settings",
        "shares",
        "table",
        "used",
    )

    usage = _Column()
    wall = _Column()
    level_fs = _Column()
    norm_shares = _Column()
    norm_usage = _Column()
    effective = _Column()
    factor = _Column()

    def __init__(self, table: "Accounts", index: int, settings: AssociationSettings) -> None:
        self.table = table
        self.index = index
        self.settings = settings
        self.is_user = bool(settings.user)
        self.parent = -1
        self.children: list[int] = []
        self.shares = settings.shares
        self.minutes: Tres = {}
        self.used = Used()


class Qos:
    """A QOS with its usage: in total, per user and per account."""

    __slots__ = ("by_account", "by_user", "index", "minutes", "settings", "usage", "used", "wall")

    def __init__(self, index: int, settings: QosSettings) -> None:
        self.index = index
        self.settings = settings
        self.usage = 0.0
        self.wall = 0.0
        self.minutes: Tres = {}
        self.used = Used()
        self.by_user: dict[str, Used] = {}
        self.by_account: dict[str, Used] = {}

    def user(self, name: str) -> Used:
        """Return the present usage by a user's jobs of this QOS."""
        return self.by_user.setdefault(name, Used())

    def account(self, name: str) -> Used:
        """Return the present usage by an account's jobs of this QOS."""
        return self.by_account.setdefault(name, Used())


class Accounts:
    """All associations and QOS of a cluster.

    Attributes:
        associations: in the order of the settings. An account that is only named as a parent is added.
        usage, wall, level_fs, norm_shares, norm_usage, effective, factor: attributes of all associations, by position.
        by_user: {(user, account): position}.
        default_account: {user: account}.
        wanted_minutes: the TRES whose decayed usage is recorded, because a limit needs it.
    """

    def __init__(self, config: SlurmConfig) -> None:
        enforced = config.accounting_storage_enforce
        self.enforces_limits = bool(enforced & {"limits", "safe"})
        self.enforces_qos = "qos" in enforced
        self.enforces_associations = bool(enforced & {"associations", "limits", "safe", "qos", "wckeys"})
        self.safe = "safe" in enforced
        self._inherited: dict[tuple[int, str], Any] = {}
        self.associations = [Association(self, at, one) for at, one in enumerate(config.associations)]
        count = len(self.associations)
        self.usage = np.zeros(count)
        self.wall = np.zeros(count)
        self.level_fs = np.full(count, inf)
        self.norm_shares = np.zeros(count)
        self.norm_usage = np.full(count, NEVER_USED)
        self.effective = np.zeros(count)
        self.factor = np.zeros(count)
        accounts = {one.settings.account: one.index for one in self.associations if not one.is_user}
        self.by_account = accounts
        for one in list(self.associations):
            above = one.settings.account if one.is_user else one.settings.parent
            if above and above in accounts and accounts[above] != one.index:
                one.parent = accounts[above]
            elif one.index != accounts.get("root", one.index):
                one.parent = accounts.get("root", -1)
            if one.parent >= 0:
                self.associations[one.parent].children.append(one.index)
        #: for each association, its position and those of its accounts up to root
        self.lines = [np.array([one.index for one in self.line(at)], np.intp) for at in range(len(self.associations))]
        self.root = accounts.get("root", 0 if self.associations else -1)
        self.by_user: dict[tuple[str, str, str], int] = {
            (one.settings.user, one.settings.account, one.settings.partition): one.index
            for one in self.associations
            if one.is_user
        }
        self.default_account: dict[str, str] = {}
        for one in self.associations:
            if one.is_user and (one.settings.is_default or one.settings.user not in self.default_account):
                self.default_account[one.settings.user] = one.settings.account
        self.users = sum(one.is_user for one in self.associations)
        self.qos = [Qos(at, one) for at, one in enumerate(config.qos)]
        self.qos_index = {one.settings.name: one.index for one in self.qos}
        self.most_qos_priority = max((one.settings.priority for one in self.qos), default=0)
        self.most_assoc_priority = max((one.settings.priority for one in self.associations), default=0)
        limits: list[Any] = [*config.qos, *config.associations]
        self.wanted_minutes = sorted(
            {name for one in limits for name in one.grp_tres_mins} | {"cpu" for one in limits if one.grp_tres_mins}
        )
        #: whether MinPrioThresh is set
        self.sets_priorities = any(one.min_prio_thresh for one in limits)
        limiting = {
            name
            for one in limits
            for name in one.__struct_fields__
            if name.startswith(("grp_", "max_", "min_tres_")) and _limits(getattr(one, name))
        }
        #: whether any QOS or association has a limit, and whether it has one that queued jobs may have to wait for
        self.has_limits = bool(limiting)
        self.has_holding_limits = bool(limiting - _SUBMIT_LIMITS)
        #: whether a limit counts the nodes of several jobs
        self.counts_nodes = any(
            "node" in amounts
            for one in limits
            for amounts in (one.grp_tres, getattr(one, "max_tres_pu", ()), getattr(one, "max_tres_pa", ()))
        )

    def find(self, user: str, account: str, partition: str = "") -> int:
        """Return the position of a user's association; -1: there is none."""
        if not account:
            account = self.default_account.get(user, "")
        found = self.by_user.get((user, account, partition))
        return self.by_user.get((user, account, ""), -1) if found is None else found

    def line(self, index: int) -> Iterator[Association]:
        """Iterate over an association and its accounts up to root."""
        while index >= 0:
            one = self.associations[index]
            yield one
            index = one.parent

    def inherited(self, index: int, name: str) -> Any:
        """Return the value of a limit that applies to an association; None if none does.

        It is the association's own limit, or else that of the nearest account above it that has one.

        Args:
            name: the limit's attribute in `AssociationSettings`, such as ``max_jobs``.
        """
        if (index, name) not in self._inherited:
            values = (getattr(one.settings, name) for one in self.line(index))
            self._inherited[index, name] = next((value for value in values if _limits(value)), None)
        return self._inherited[index, name]

    def sharing(self) -> tuple[list[int], list[list[int]]]:
        """Return, for each association, the account whose share it divides, and the associations that divide its own.

        This account is the nearest one above that has shares of its own. So the children of an account with
        ``Fairshare=parent`` divide the share of its parent.
        """
        table = self.associations
        above = [one.parent for one in table]
        below: list[list[int]] = [[] for _ in table]
        for one in table:
            at = one.parent
            while at >= 0 and table[at].shares == inf and table[at].parent >= 0:
                at = table[at].parent
            above[one.index] = at
            if at >= 0:
                below[at].append(one.index)
        return above, below

    def allowed_qos(self, index: int) -> tuple[str, ...]:
        """Return the names of the QOS that an association may use."""
        for one in self.line(index):
            if one.settings.qos is not None:
                return one.settings.qos
        return ()

    def default_qos(self, index: int) -> str:
        """Return the QOS of a job that names none; "" if there is none."""
        allowed = self.allowed_qos(index) if index >= 0 else ()
        for one in self.line(index):
            name = one.settings.default_qos
            if name and (not allowed or name in allowed):
                return name
        if len(allowed) == 1:
            return allowed[0]
        return "normal" if "normal" in self.qos_index else ""

    def state(self) -> dict[str, Any]:
        """Return all usage as values that JSON can hold."""
        return {
            "associations": [
                [
                    *(one.usage, one.wall, one.minutes, one.used.state()),
                    *(one.level_fs, one.factor, one.effective, one.norm_usage),
                ]
                for one in self.associations
            ],
            "qos": [
                [
                    *(one.usage, one.wall, one.minutes, one.used.state()),
                    {name: used.state() for name, used in one.by_user.items()},
                    {name: used.state() for name, used in one.by_account.items()},
                ]
                for one in self.qos
            ],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the usage that the method `state` returned."""
        for one, known in zip(self.associations, state["associations"], strict=True):
            one.usage, one.wall, one.minutes = known[0], known[1], dict(known[2])
            one.used = Used.restored(known[3])
            one.level_fs, one.factor, one.effective, one.norm_usage = known[4:]
        for qos, known in zip(self.qos, state["qos"], strict=True):
            qos.usage, qos.wall, qos.minutes = known[0], known[1], dict(known[2])
            qos.used = Used.restored(known[3])
            qos.by_user = {name: Used.restored(used) for name, used in known[4].items()}
            qos.by_account = {name: Used.restored(used) for name, used in known[5].items()}


def _limits(value: Any) -> bool:
    """Return whether a setting is a limit: neither None nor an empty TRES map."""
    return value is not None and value != {}


#: positions that mean "none"
NONE: Final = -1
