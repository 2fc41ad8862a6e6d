"""The limits of QOS and associations, in the order in which Slurm tests them."""

from collections.abc import Callable, Collection, Iterator, Mapping
from math import inf

from pipistrelle.schedulers.slurm.accounts.reasons import (
    account_reason,
    group_reason,
    job_minutes_reason,
    job_reason,
    least_reason,
    minutes_reason,
    node_reason,
    user_reason,
)
from pipistrelle.schedulers.slurm.accounts.records import Accounts, Association, Qos, Tres, Used
from pipistrelle.schedulers.slurm.cluster.jobs import SlurmJob
from pipistrelle.schedulers.slurm.config.accounts import AssociationSettings, QosSettings

#: seconds per TRES that running jobs of a set may still use
RunningSeconds = Callable[[Callable[[SlurmJob], bool]], Tres]


class SlurmLimits:
    """Tests jobs against the limits of QOS and associations, in Slurm's order.

    The order is: the partition's QOS (or the job's, with the flag OverPartQOS), the other QOS, the association, then
    its accounts up to root. If several of these set the same limit, only that of the first is tested.

    Args:
        partition_qos: returns the position of the QOS of a job's partition; -1: none.
        running_seconds: returns the TRES-seconds that selected running jobs may still use.
    """

    def __init__(
        self, accounts: Accounts, partition_qos: Callable[[SlurmJob], int], running_seconds: RunningSeconds
    ) -> None:
        self.accounts = accounts
        self.partition_qos = partition_qos
        self.running_seconds = running_seconds
        #: whether no limit can refuse any submission, and whether none can hold any queued job
        self.admits_all = not (accounts.enforces_limits and accounts.has_limits)
        self.idle = not (accounts.enforces_limits and accounts.has_holding_limits)

    def qos_of(self, job: SlurmJob) -> list[Qos]:
        """Return the QOS whose limits apply to a job, in the order of testing."""
        accounts = self.accounts
        own = accounts.qos[job.qos] if job.qos >= 0 else None
        at = self.partition_qos(job)
        of_part = accounts.qos[at] if at >= 0 else None
        if own is None or of_part is None or own is of_part:
            return [one for one in (own or of_part,) if one is not None]
        return [own, of_part] if "OverPartQOS" in own.settings.flags else [of_part, own]

    def before(self, job: SlurmJob) -> str:
        """Return why a job must wait, by limits that do not depend on the chosen nodes.

        The result is one of Slurm's reasons; "" if none of these limits keeps the job waiting.
        """
        if self.idle or job.assoc < 0:
            return ""
        hidden: set[str] = set()
        for qos in self.qos_of(job):
            reason = self._qos_before(qos, job, hidden)
            if reason:
                return reason
        accounts = self.accounts
        for at, one in enumerate(accounts.line(job.assoc)):
            limit = one.settings
            if limit.grp_jobs is not None and "grp_jobs" not in hidden and one.used.jobs >= limit.grp_jobs:
                return "AssocGrpJobsLimit"
            if limit.grp_wall is not None and "grp_wall" not in hidden and one.wall >= limit.grp_wall:
                return "AssocGrpWallLimit"
            if at == 0:
                most = accounts.inherited(job.assoc, "max_jobs")
                if most is not None and "max_jobs" not in hidden and one.used.jobs >= most:
                    return "AssocMaxJobsLimit"
                wall = accounts.inherited(job.assoc, "max_wall_pj")
                if wall is not None and "max_wall" not in hidden and job.limit > wall:
                    return "AssocMaxWallDurationPerJobLimit"
        return self.most_nodes(job)[1] if 0 < job.node_limit < job.min_nodes else ""

    def most_nodes(self, job: SlurmJob) -> tuple[int, str]:
        """Return the most nodes that limits allow a job, and the lowest limit's reason.

        Slurm never chooses more nodes for the job. Return (0, "") if there is no such limit.
        """
        if self.idle or job.assoc < 0:
            return 0, ""
        group = alone = holder = inf
        for qos in self.qos_of(job):
            limit = qos.settings
            if group == inf:
                group = limit.grp_tres.get("node", inf)
            if alone == inf:
                alone = limit.max_tres_pj.get("node", inf)
            if holder == inf:
                holder = min(limit.max_tres_pa.get("node", inf), limit.max_tres_pu.get("node", inf))
        found = [(group, group_reason("QOS", "node")), (alone, job_reason("QOS", "node"))]
        found.append((holder, user_reason("node")))
        for at, one in enumerate(self.accounts.line(job.assoc)):
            if group == inf:
                found.append((one.settings.grp_tres.get("node", inf), group_reason("Assoc", "node")))
            if at == 0 and alone == inf:
                own = self.accounts.inherited(job.assoc, "max_tres_pj") or {}
                found.append((own.get("node", inf), job_reason("Assoc", "node")))
        most, reason = min(found)
        return (0, "") if most == inf else (int(most), reason)

    def least_priority(self, job: SlurmJob, default: int) -> int:
        """Return the priority from which a job gets a reservation (MinPrioThresh).

        Return ``default`` if no limit sets it.
        """
        for qos in self.qos_of(job):
            if qos.settings.min_prio_thresh is not None:
                return qos.settings.min_prio_thresh
        found = self.accounts.inherited(job.assoc, "min_prio_thresh") if job.assoc >= 0 else None
        return default if found is None else int(found)

    @property
    def kills(self) -> bool:
        """Whether running jobs are killed once past usage reaches one of their limits."""
        limited: list[QosSettings | AssociationSettings] = [one.settings for one in self.accounts.qos]
        limited += [one.settings for one in self.accounts.associations]
        usage = any(one.grp_wall is not None or one.grp_tres_mins for one in limited)
        return usage and not self.idle and not self.accounts.safe

    def is_used_up(self, job: SlurmJob) -> bool:
        """Return whether past usage has reached a limit that applies to a running job.

        The limits are GrpWall and GrpTRESMins.

        Slurm then kills the job, unless limits are ``safe``. The limits of root kill no job.
        """
        if job.assoc < 0:
            return False
        hidden: set[str] = set()
        levels: list[Qos | Association] = list(self.qos_of(job))
        levels += [one for one in self.accounts.line(job.assoc) if one.index != self.accounts.root]
        for one in levels:
            limit = one.settings
            if limit.grp_wall is not None and "wall" not in hidden and one.wall >= limit.grp_wall:
                return True
            for name, minutes in limit.grp_tres_mins.items():
                if name not in hidden and job.tres.get(name) and one.minutes.get(name, 0.0) / 60 >= minutes:
                    return True
            if isinstance(one, Qos):
                hidden |= {*limit.grp_tres_mins, *(("wall",) if limit.grp_wall is not None else ())}
        return False

    @staticmethod
    def _qos_before(qos: Qos, job: SlurmJob, hidden: set[str]) -> str:
        limit = qos.settings
        if limit.grp_jobs is not None and "grp_jobs" not in hidden:
            hidden.add("grp_jobs")
            if qos.used.jobs >= limit.grp_jobs:
                return "QOSGrpJobsLimit"
        if limit.grp_wall is not None and "grp_wall" not in hidden:
            hidden.add("grp_wall")
            if qos.wall >= limit.grp_wall:
                return "QOSGrpWallLimit"
        if limit.max_jobs_pa is not None and "jobs_pa" not in hidden:
            hidden.add("jobs_pa")
            if qos.account(job.account).jobs >= limit.max_jobs_pa:
                return "MaxJobsPerAccount"
        if limit.max_jobs_pu is not None and "max_jobs" not in hidden:
            hidden.add("max_jobs")
            if qos.user(job.user).jobs >= limit.max_jobs_pu:
                return "QOSMaxJobsPerUserLimit"
        if limit.max_wall_pj is not None and "max_wall" not in hidden:
            hidden.add("max_wall")
            if job.limit > limit.max_wall_pj:
                return "QOSMaxWallDurationPerJobLimit"
        return ""

    def after(self, job: SlurmJob, tres: Tres, nodes: Collection[int] = ()) -> str:
        """Return why a job must wait, by the limits on its TRES ``tres``.

        The result is one of Slurm's reasons; "" if none of these limits keeps the job waiting.

        Args:
            nodes: the nodes on which the job would start; empty: unknown. A node that other jobs of the same user or
                account already use is not counted again.
        """
        if self.idle or job.assoc < 0:
            return ""
        hidden: set[str] = set()
        if not self.accounts.counts_nodes:
            nodes = ()
        for qos in self.qos_of(job):
            for reason in self._qos_after(qos, job, tres, nodes, hidden):
                if reason:
                    return reason
        accounts = self.accounts
        for at, one in enumerate(accounts.line(job.assoc)):
            limit = one.settings
            below = self._below(one.index)
            name = self._minutes(limit.grp_tres_mins, one.minutes, tres, job, below, hidden)
            if name:
                return minutes_reason("Assoc", name)
            name = _over(limit.grp_tres, one.used.tres, one.used.new_nodes(tres, nodes), "grp", hidden)
            if name:
                return group_reason("Assoc", name)
            if limit.grp_tres_run_mins:
                name = self._run_minutes(limit.grp_tres_run_mins, below, tres, job, "grp_run", hidden)
                if name:
                    return minutes_reason("Assoc", name, running=True)
            if at == 0:
                reason = self._own(job, tres, hidden)
                if reason:
                    return reason
        return ""

    def _own(self, job: SlurmJob, tres: Tres, hidden: set[str]) -> str:
        """Return the reason of the first limit of its association that a job exceeds.

        Return "" if the job exceeds none. A limit that the association lacks is inherited from its accounts. Limits in
        ``hidden``, which a QOS sets, are not tested.
        """
        inherited = self.accounts.inherited
        minutes = inherited(job.assoc, "max_tres_mins_pj") or {}
        name = _alone_minutes(minutes, tres, job, "pj_mins", hidden)
        if name:
            return job_minutes_reason("Assoc", name)
        return self._own_amounts(job, tres, hidden)

    def _qos_after(
        self, qos: Qos, job: SlurmJob, tres: Tres, nodes: Collection[int], hidden: set[str]
    ) -> Iterator[str]:
        limit = qos.settings

        def mine(one: SlurmJob) -> bool:
            return any(other is qos for other in self.qos_of(one))

        name = self._minutes(limit.grp_tres_mins, qos.minutes, tres, job, mine, hidden, mark=True)
        yield minutes_reason("QOS", name) if name else ""
        name = _over(limit.grp_tres, qos.used.tres, qos.used.new_nodes(tres, nodes), "grp", hidden, mark=True)
        yield group_reason("QOS", name) if name else ""
        if limit.grp_tres_run_mins:
            name = self._run_minutes(limit.grp_tres_run_mins, mine, tres, job, "grp_run", hidden, mark=True)
            yield minutes_reason("QOS", name, running=True) if name else ""
        name = _alone_minutes(limit.max_tres_mins_pj, tres, job, "pj_mins", hidden, mark=True)
        yield job_minutes_reason("QOS", name) if name else ""
        name = _alone(limit.max_tres_pj, tres, "pj", hidden, mark=True)
        yield job_reason("QOS", name) if name else ""
        name = _alone_node(limit.max_tres_pn, tres, "pn", hidden, mark=True)
        yield node_reason("QOS", name) if name else ""
        for name, least in limit.min_tres_pj.items():
            if tres.get(name, 0) < least:
                yield least_reason(name)
        if limit.max_tres_pa:
            used = qos.account(job.account)
            name = _over(limit.max_tres_pa, used.tres, used.new_nodes(tres, nodes), "pa", hidden, mark=True)
            yield account_reason(name) if name else ""
        if limit.max_tres_pu:
            used = qos.user(job.user)
            name = _over(limit.max_tres_pu, used.tres, used.new_nodes(tres, nodes), "pu", hidden, mark=True)
            yield user_reason(name) if name else ""

    def _minutes(
        self,
        limit: Mapping[str, float],
        used: Tres,
        tres: Tres,
        job: SlurmJob,
        chosen: Callable[[SlurmJob], bool],
        hidden: set[str],
        *,
        mark: bool = False,
    ) -> str:
        """Return the first TRES of a job whose used minutes reach a group's limit.

        Return "" if there is none. With ``safe``, the minutes that running jobs of the group may still use, and those
        of the job, count as used.

        Args:
            limit: {TRES: minutes}.
            used: {TRES: seconds used in the past}.
            tres: the job's TRES.
            chosen: returns whether a running job belongs to the group.
            hidden: limits (``grp_mins/TRES``) that are not tested.
            mark: add the tested limits to ``hidden``.
        """
        left = self.running_seconds(chosen) if limit and self.accounts.safe else {}
        for name, minutes in limit.items():
            key = f"grp_mins/{name}"
            if key in hidden:
                continue
            if mark:
                hidden.add(key)
            if not tres.get(name):
                continue
            if self.accounts.safe:
                whole = used.get(name, 0.0) // 60 + left.get(name, 0.0) // 60
                if whole + tres.get(name, 0) * job.limit / 60 > minutes:
                    return name
            if used.get(name, 0.0) / 60 >= minutes:
                return name
        return ""

    def _run_minutes(
        self,
        limit: Mapping[str, float],
        chosen: Callable[[SlurmJob], bool],
        tres: Tres,
        job: SlurmJob,
        kind: str,
        hidden: set[str],
        *,
        mark: bool = False,
    ) -> str:
        used = self.running_seconds(chosen)
        for name, minutes in limit.items():
            key = f"{kind}/{name}"
            if key in hidden:
                continue
            if mark:
                hidden.add(key)
            # Slurm counts the whole minutes that running jobs may still use.
            if used.get(name, 0.0) // 60 + tres.get(name, 0) * job.limit / 60 > minutes:
                return name
        return ""

    def _below(self, index: int) -> Callable[[SlurmJob], bool]:
        line = self.accounts.line
        return lambda job: any(one.index == index for one in line(job.assoc))

    def refusal(self, job: SlurmJob, tres: Tres) -> str:
        """Return why a submission is refused permanently; "" if it is accepted.

        A submission is refused if it exceeds a limit on submitted jobs. If a QOS of the job has the flag DenyOnLimit,
        it is also refused if the job alone exceeds another limit of this QOS or of one tested later.
        """
        if self.admits_all or job.assoc < 0:
            return ""
        hidden: set[str] = set()
        count = max(1, len(job.ids))
        for qos in self.qos_of(job):
            limit = qos.settings
            for most, used, reason in (
                (limit.grp_submit_jobs, qos.used, "QOSGrpSubmitJobsLimit"),
                (limit.max_submit_jobs_pa, qos.account(job.account), "MaxSubmitJobsPerAccount"),
                (limit.max_submit_jobs_pu, qos.user(job.user), "QOSMaxSubmitJobPerUserLimit"),
            ):
                if most is not None:
                    hidden.add(reason[3:])
                    if used.submitted + count > most:
                        return reason
        reason = self._denied(job, tres)
        if reason:
            return reason
        accounts = self.accounts
        for at, one in enumerate(accounts.line(job.assoc)):
            most = one.settings.grp_submit_jobs
            if most is not None and "GrpSubmitJobsLimit" not in hidden and one.used.submitted + count > most:
                return "AssocGrpSubmitJobsLimit"
            if at == 0:
                most = accounts.inherited(job.assoc, "max_submit_jobs")
                free = most is None or "MaxSubmitJobPerUserLimit" in hidden
                if not free and one.used.submitted + count > most:
                    return "AssocMaxSubmitJobLimit"
        return ""

    def _denied(self, job: SlurmJob, tres: Tres) -> str:
        """Return the limit for which Slurm denies a job at submission; "" if none.

        A limit counts if the job alone exceeds it, and a QOS with the flag DenyOnLimit applies to the job. The QOS are
        tested first, then the associations. Once a QOS has the flag, the QOS and associations tested after it deny,
        too. If a QOS sets a limit, the same limit of a later QOS or association is ignored.
        """
        hidden: set[str] = set()
        strict = False
        for qos in self.qos_of(job):
            strict = strict or "DenyOnLimit" in qos.settings.flags
            reason = self._over_alone(job, tres, qos.settings, hidden) if strict else ""
            if reason:
                return reason
        if not strict:
            return ""
        for at, one in enumerate(self.accounts.line(job.assoc)):
            name = _alone(one.settings.grp_tres, tres, "grp", hidden)
            if name:
                return group_reason("Assoc", name)
            if at == 0:
                reason = self._own_alone(job, tres, hidden)
                if reason:
                    return reason
        return ""

    @staticmethod
    def _over_alone(job: SlurmJob, tres: Tres, limit: QosSettings, hidden: set[str]) -> str:
        if name := _alone(limit.grp_tres, tres, "grp", hidden, mark=True):
            return group_reason("QOS", name)
        if name := _alone(limit.max_tres_pa, tres, "pa", hidden, mark=True):
            return account_reason(name)
        if name := _alone(limit.max_tres_pj, tres, "pj", hidden, mark=True):
            return job_reason("QOS", name)
        if name := _alone(limit.max_tres_pu, tres, "pu", hidden, mark=True):
            return user_reason(name)
        if name := _alone_node(limit.max_tres_pn, tres, "pn", hidden, mark=True):
            return node_reason("QOS", name)
        if name := _alone_minutes(limit.max_tres_mins_pj, tres, job, "pj_mins", hidden, mark=True):
            return job_minutes_reason("QOS", name)
        for name, least in limit.min_tres_pj.items():
            if tres.get(name, 0) < least:
                return least_reason(name)
        if limit.max_wall_pj is not None and "max_wall" not in hidden:
            hidden.add("max_wall")
            if job.limit > limit.max_wall_pj:
                return "QOSMaxWallDurationPerJobLimit"
        return ""

    def _own_amounts(self, job: SlurmJob, tres: Tres, hidden: set[str]) -> str:
        """Return the reason of the association's limit that a job's TRES exceed.

        Return "" if there is none. Only limits on a single job are tested, first its total and then its amounts per
        node.
        """
        inherited = self.accounts.inherited
        name = _alone(inherited(job.assoc, "max_tres_pj") or {}, tres, "pj", hidden)
        if name:
            return job_reason("Assoc", name)
        name = _alone_node(inherited(job.assoc, "max_tres_pn") or {}, tres, "pn", hidden)
        return node_reason("Assoc", name) if name else ""

    def _own_alone(self, job: SlurmJob, tres: Tres, hidden: set[str]) -> str:
        inherited = self.accounts.inherited
        reason = self._own_amounts(job, tres, hidden)
        if reason:
            return reason
        name = _alone_minutes(inherited(job.assoc, "max_tres_mins_pj") or {}, tres, job, "pj_mins", hidden)
        if name:
            return job_minutes_reason("Assoc", name)
        wall = inherited(job.assoc, "max_wall_pj")
        if wall is not None and "max_wall" not in hidden and job.limit > wall:
            return "AssocMaxWallDurationPerJobLimit"
        return ""

    def count_submitted(self, job: SlurmJob, count: int) -> None:
        """Add ``count`` to the submitted jobs of a job's QOS and associations.

        ``count`` may be negative.
        """
        for used in self._users(job):
            used.submitted += count

    def begin(self, job: SlurmJob) -> None:
        """Count a starting job, and its ``tres``, for its QOS and associations."""
        for used in self._users(job):
            used.begin(job.tres, self._nodes_of(job))

    def end(self, job: SlurmJob) -> None:
        """Stop counting a running job that ends or is requeued."""
        for used in self._users(job):
            used.end(job.tres, self._nodes_of(job))

    def _nodes_of(self, job: SlurmJob) -> Collection[int]:
        """Return the nodes of a running job if a limit counts nodes; else nothing."""
        return job.alloc if self.accounts.counts_nodes else ()

    def _users(self, job: SlurmJob) -> Iterator[Used]:
        if job.assoc >= 0:
            for one in self.accounts.line(job.assoc):
                yield one.used
        for qos in self.qos_of(job):
            yield qos.used
            yield qos.user(job.user)
            yield qos.account(job.account)


def _over(
    limit: Mapping[str, float], used: Tres, tres: Tres, kind: str, hidden: set[str], *, mark: bool = False
) -> str:
    """Return the first TRES whose used plus requested amount exceeds its limit.

    Return "" if there is none. Limits in ``hidden`` (``kind/TRES``) are not tested. With ``mark``, the tested limits
    are added to ``hidden``.
    """
    for name, most in limit.items():
        key = f"{kind}/{name}"
        if key in hidden:
            continue
        if mark:
            hidden.add(key)
        asked = tres.get(name, 0)
        if asked and used.get(name, 0) + asked > most:
            return name
    return ""


def _alone(limit: Mapping[str, float], tres: Tres, kind: str, hidden: set[str], *, mark: bool = False) -> str:
    return _over(limit, {}, tres, kind, hidden, mark=mark)


def _alone_node(limit: Mapping[str, float], tres: Tres, kind: str, hidden: set[str], *, mark: bool = False) -> str:
    nodes = max(1.0, tres.get("node", 1))
    return _over(limit, {}, {name: amount // nodes for name, amount in tres.items()}, kind, hidden, mark=mark)


def _alone_minutes(
    limit: Mapping[str, float], tres: Tres, job: SlurmJob, kind: str, hidden: set[str], *, mark: bool = False
) -> str:
    if not limit:
        return ""
    return _over(limit, {}, {name: amount * job.limit / 60 for name, amount in tres.items()}, kind, hidden, mark=mark)
