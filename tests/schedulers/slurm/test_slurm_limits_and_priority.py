"""Limits of QOS and associations, priorities by factor, fairshare and usage."""

from math import inf, log

import pytest
from msgspec.structs import replace
from tests.schedulers.slurm.conftest import Queue, cluster, shared

from pipistrelle.schedulers.slurm.accounts.records import Accounts
from pipistrelle.schedulers.slurm.cluster.jobs import COMPLETED, PREEMPTED, RUNNING
from pipistrelle.schedulers.slurm.config.accounts import AssociationSettings, QosSettings
from pipistrelle.schedulers.slurm.config.parameters import PrioritySettings
from pipistrelle.schedulers.slurm.config.settings import SlurmConfig
from pipistrelle.schedulers.slurm.daemon import Daemon
from pipistrelle.schedulers.slurm.passes.main_pass import main_pass
from pipistrelle.schedulers.slurm.priority.fair_tree import FairTree
from pipistrelle.schedulers.slurm.priority.fairshare import ClassicFairshare
from pipistrelle.schedulers.slurm.tables import factors_table, queue_table, shares_table

ENFORCED = frozenset({"associations", "limits", "qos"})


def limited(
    qos: tuple[QosSettings, ...] = (QosSettings(name="normal"),),
    account: dict[str, object] | None = None,
    user: dict[str, object] | None = None,
    **more: object,
) -> SlurmConfig:
    """Return a cluster whose user ann has an account ``bio`` below root."""
    people = (
        AssociationSettings(account="root"),
        AssociationSettings(account="bio", parent="root", **(account or {})),
        AssociationSettings(account="bio", user="ann", **(user or {})),
        AssociationSettings(account="bio", user="bob"),
    )
    return cluster(
        8, qos=qos, associations=people, accounting_storage=True, accounting_storage_enforce=ENFORCED, **more
    )


def held(config: SlurmConfig, jobs: int = 2, **options: object) -> list[str]:
    """Return the reasons of the jobs that wait after a pass in which all nodes are free."""
    queue = Queue(config)
    for _ in range(jobs):
        queue.add(nodes=1, account="bio", **options)
    main_pass(queue.controller, 1, full=True)
    return [job.reason for job in queue.controller.pending.values()]


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"max_jobs_pu": 1}, "QOSMaxJobsPerUserLimit"),
        ({"max_jobs_pa": 1}, "MaxJobsPerAccount"),
        ({"grp_jobs": 1}, "QOSGrpJobsLimit"),
        ({"grp_tres": {"cpu": 7}}, "QOSGrpCpuLimit"),
        ({"grp_tres": {"node": 1}}, "QOSGrpNodeLimit"),
        ({"max_tres_pu": {"cpu": 7}}, "QOSMaxCpuPerUserLimit"),
        ({"max_tres_pu": {"node": 1}}, "QOSMaxNodePerUserLimit"),
        ({"max_tres_pa": {"cpu": 7}}, "MaxCpuPerAccount"),
        ({"grp_tres_run_mins": {"cpu": 70}}, "QOSGrpCPURunMinutesLimit"),
    ],
)
def test_limits_of_a_qos_hold_the_second_job(limits: dict[str, object], reason: str) -> None:
    """The second of two equal jobs waits with Slurm's reason."""
    assert held(limited((QosSettings(name="normal", **limits),))) == [reason]


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"max_tres_pj": {"cpu": 3}}, "QOSMaxCpuPerJobLimit"),
        ({"max_tres_pn": {"cpu": 3}}, "QOSMaxCpuPerNode"),
        ({"max_tres_mins_pj": {"cpu": 39}}, "QOSMaxCpuMinutesPerJobLimit"),
        ({"min_tres_pj": {"cpu": 5}}, "QOSMinCpuNotSatisfied"),
        ({"max_wall_pj": 599.0}, "QOSMaxWallDurationPerJobLimit"),
    ],
)
def test_limits_per_job_hold_a_job_alone(limits: dict[str, object], reason: str) -> None:
    """A job that alone is over a limit waits for good."""
    assert held(limited((QosSettings(name="normal", **limits),)), jobs=1) == [reason]


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"grp_jobs": 1}, "AssocGrpJobsLimit"),
        ({"grp_tres": {"cpu": 7}}, "AssocGrpCpuLimit"),
        ({"grp_tres_run_mins": {"cpu": 70}}, "AssocGrpCPURunMinutesLimit"),
        ({"max_jobs": 1}, "AssocMaxJobsLimit"),
    ],
)
def test_limits_of_an_account_hold_its_users(limits: dict[str, object], reason: str) -> None:
    """Group limits of an account, and its limits per user, hold the second job of a user."""
    assert held(limited(account=limits)) == [reason]


@pytest.mark.parametrize("place", ["qos", "account", "partition"])
@pytest.mark.parametrize(("enforce", "minutes", "waiting"), [("safe", 79, 1), ("safe", 80, 0), ("limits", 79, 0)])
def test_with_safe_the_minutes_of_running_jobs_count_for_group_limits(
    place: str, enforce: str, minutes: int, waiting: int
) -> None:
    """A job takes 4 CPUs for 10 minutes; while one runs, another needs 80 minutes, but only `safe` tests this."""
    limits = {"grp_tres_mins": {"cpu": minutes}}
    qos = (QosSettings(name="normal", **(limits if place == "qos" else {})), QosSettings(name="of-part", **limits))
    config = limited(qos, limits if place == "account" else None)
    parts = tuple(replace(one, qos="of-part" if place == "partition" else "") for one in config.partitions)
    config = replace(config, partitions=parts, accounting_storage_enforce=ENFORCED | {enforce})
    who = "Assoc" if place == "account" else "QOS"

    assert held(config) == [f"{who}GrpCPUMinutesLimit"] * waiting


def test_minutes_of_a_resource_hold_only_jobs_that_use_it() -> None:
    """Used-up minutes of GPUs do not hold a job without GPUs."""
    assert held(limited(account={"grp_tres_mins": {"gres/gpu": 0}}), jobs=1) == []
    assert held(limited(account={"grp_tres_mins": {"cpu": 0}}), jobs=1) == ["AssocGrpCPUMinutesLimit"]


@pytest.mark.parametrize("most", [79, 80])
def test_run_minutes_of_a_partitions_qos_count_all_jobs_of_the_partition(most: int) -> None:
    """The running job has another QOS of its own."""
    qos = (QosSettings(name="normal"), QosSettings(name="of-part", grp_tres_run_mins={"cpu": most}))
    config = limited(qos)
    config = replace(config, partitions=tuple(replace(one, qos="of-part") for one in config.partitions))

    assert held(config) == ["QOSGrpCPURunMinutesLimit"] * (80 - most)


@pytest.mark.parametrize(
    ("of_qos", "of_account", "reason"),
    [
        ({"max_tres_pj": {"cpu": 3}}, {}, "QOSMaxCpuPerJobLimit"),
        ({"grp_tres": {"cpu": 3}}, {}, "QOSGrpCpuLimit"),
        ({"max_tres_pu": {"cpu": 3}}, {}, "QOSMaxCpuPerUserLimit"),
        ({"max_tres_pn": {"cpu": 3}}, {}, "QOSMaxCpuPerNode"),
        ({"max_tres_mins_pj": {"cpu": 39}}, {}, "QOSMaxCpuMinutesPerJobLimit"),
        ({"min_tres_pj": {"cpu": 5}}, {}, "QOSMinCpuNotSatisfied"),
        ({"max_wall_pj": 599.0}, {}, "QOSMaxWallDurationPerJobLimit"),
        ({}, {"grp_tres": {"cpu": 3}}, "AssocGrpCpuLimit"),
        ({}, {"max_tres_pj": {"cpu": 3}}, "AssocMaxCpuPerJobLimit"),
        ({}, {"max_tres_pn": {"cpu": 3}}, "AssocMaxCpuPerNode"),
        ({}, {"max_tres_mins_pj": {"cpu": 39}}, "AssocMaxCpuMinutesPerJobLimit"),
        ({}, {"max_wall_pj": 599.0}, "AssocMaxWallDurationPerJobLimit"),
        ({"max_wall_pj": 600.0}, {"max_wall_pj": 599.0}, ""),
        ({"max_tres_pj": {"cpu": 4}}, {"max_tres_pj": {"cpu": 3}}, ""),
    ],
)
def test_deny_on_limit_rejects_a_job_that_is_over_a_limit_alone(
    of_qos: dict[str, object], of_account: dict[str, object], reason: str
) -> None:
    """The limits of QOS and associations count; a limit of the QOS hides the same one of the association.

    The CPUs that the job asks for count, not those of its whole nodes, as with an unmodified slurmctld.
    """
    qos = QosSettings(name="normal", flags=frozenset({"DenyOnLimit"}), **of_qos)
    queue = Queue(limited((qos,), account=of_account))
    queue.add(nodes=1, tasks=4, account="bio")
    assert queue.refused == reason
    queue = Queue(limited((replace(qos, flags=frozenset()),), account=of_account))
    queue.add(nodes=1, tasks=4, account="bio")
    assert queue.refused == ""


@pytest.mark.parametrize(
    ("flag", "options", "reason"),
    [
        ("PartitionMaxNodes", {"nodes": 3}, "PartitionNodeLimit"),
        ("PartitionMinNodes", {"nodes": 1}, "PartitionNodeLimit"),
        ("PartitionTimeLimit", {"nodes": 2, "time_limit": 1200.0}, "PartitionTimeLimit"),
    ],
)
def test_flags_of_a_qos_exempt_jobs_from_limits_of_the_partition(
    flag: str, options: dict[str, object], reason: str
) -> None:
    """Without the flag the job waits with the reason, or is rejected with EnforcePartLimits."""
    parts = tuple(replace(one, min_nodes=2, max_nodes=2, max_time=600.0) for one in cluster(8).partitions)
    for flags, enforce, refused, reasons in (
        (set(), "NO", False, [reason]),
        (set(), "ALL", True, []),
        ({flag}, "ALL", False, []),
    ):
        config = limited((QosSettings(name="normal", flags=frozenset(flags)),), partitions=parts)
        queue = Queue(replace(config, enforce_part_limits=enforce))
        queue.add(account="bio", **options)
        assert bool(queue.refused) is refused
        main_pass(queue.controller, 1, full=True)
        assert [job.reason for job in queue.controller.pending.values()] == reasons


def test_a_qos_may_require_a_reservation() -> None:
    """RequiresReservation rejects jobs that name no reservation."""
    queue = Queue(limited((QosSettings(name="normal", flags=frozenset({"RequiresReservation"})),)))
    queue.add(nodes=1, account="bio")
    assert queue.refused == "QOS normal requires a reservation"


@pytest.mark.parametrize(
    ("of_part", "of_cluster", "options", "waits"),
    [
        (None, 3000, {"mem_per_node": 3001}, True),
        (None, 3000, {"mem_per_node": 3000}, False),
        (4000, 3000, {"mem_per_node": 3001}, False),
        (None, 3000, {"mem_per_cpu": 1000, "tasks": 4, "nodes": 1}, True),
        (None, 3000, {"mem_per_cpu": 1000, "tasks": 4, "nodes": 2}, False),
    ],
)
def test_max_mem_per_node_holds_jobs_that_ask_for_more(
    of_part: int | None, of_cluster: int, options: dict[str, int], waits: bool
) -> None:
    """The job waits with MaxMemPerLimit, or is rejected with EnforcePartLimits; the partition's limit wins."""
    config = shared()
    parts = tuple(replace(one, max_mem_per_node=of_part) for one in config.partitions)
    select = replace(config.select, max_mem_per_node=of_cluster)
    for enforce in ("NO", "ALL"):
        queue = Queue(replace(config, partitions=parts, select=select, enforce_part_limits=enforce))
        queue.add(**options)
        main_pass(queue.controller, 1, full=True)
        reasons = [job.reason for job in queue.controller.pending.values()]
        assert reasons == (["MaxMemPerLimit"] if waits and enforce == "NO" else [])
        assert bool(queue.refused) is (waits and enforce == "ALL")


def test_limit_of_a_user_comes_before_the_accounts() -> None:
    """A user's own MaxJobs replaces what the account gives."""
    assert held(limited(account={"max_jobs": 1}, user={"max_jobs": 2}), jobs=3) == ["AssocMaxJobsLimit"]


def test_qos_limit_hides_the_same_limit_of_the_association() -> None:
    """GrpTRES of the QOS replaces that of the association for the same TRES."""
    qos = (QosSettings(name="normal", grp_tres={"cpu": 1000}),)
    assert held(limited(qos, account={"grp_tres": {"cpu": 4}})) == []


def test_partition_qos_is_tested_first() -> None:
    """The partition's QOS holds a job before its own one."""
    qos = (QosSettings(name="normal", grp_jobs=1), QosSettings(name="part", max_jobs_pu=1))
    config = limited(qos)
    parts = tuple(replace(one, qos="part") for one in config.partitions)
    assert held(replace(config, partitions=parts)) == ["QOSMaxJobsPerUserLimit"]
    over = (replace(qos[0], flags=frozenset({"OverPartQOS"})), qos[1])
    assert held(replace(limited(over), partitions=parts)) == ["QOSGrpJobsLimit"]


def test_limits_let_later_jobs_through() -> None:
    """A job held by a limit does not close its partition, unless assoc_limit_stop is set."""
    queue = Queue(limited((QosSettings(name="normal", max_jobs_pu=1),)))
    for user in ("ann", "ann", "bob"):
        queue.add(nodes=1, account="bio", user=user)
    started = [job.ids[0] for job in main_pass(queue.controller, 1, full=True).started]
    assert started == ["1", "3"]


@pytest.mark.parametrize(
    ("qos", "account", "why"),
    [
        ({"max_submit_jobs_pu": 1}, {}, "QOSMaxSubmitJobPerUserLimit"),
        ({"grp_submit_jobs": 1}, {}, "QOSGrpSubmitJobsLimit"),
        ({}, {"grp_submit_jobs": 1}, "AssocGrpSubmitJobsLimit"),
        ({}, {"max_submit_jobs": 1}, "AssocMaxSubmitJobLimit"),
        ({"flags": frozenset({"DenyOnLimit"}), "max_tres_pj": {"cpu": 3}}, {}, "QOSMaxCpuPerJobLimit"),
    ],
)
def test_submissions_over_a_limit_are_refused(qos: dict[str, object], account: dict[str, object], why: str) -> None:
    """MaxSubmit limits and DenyOnLimit refuse a submission for good."""
    queue = Queue(limited((QosSettings(name="normal", **qos),), account=account))
    queue.add(nodes=1, tasks=4, account="bio")
    queue.add(nodes=1, tasks=4, account="bio")
    assert queue.refused == why


def test_unknown_account_and_qos_are_refused() -> None:
    """With enforcement a user needs an association, and the QOS must be allowed."""
    queue = Queue(limited(user={"qos": ("normal",)}))
    queue.add(nodes=1, account="chem")
    assert "invalid account" in queue.refused
    queue.add(nodes=1, account="bio", qos="gold")
    assert "invalid qos" in queue.refused


def tree(usage: dict[str, float], shares: dict[str, float]) -> Accounts:
    """Return two accounts a and b with users a1, a2, b1, and usage by name."""
    people = (
        AssociationSettings(account="root"),
        *(AssociationSettings(account=name, parent="root", shares=shares.get(name, 1.0)) for name in "ab"),
        *(AssociationSettings(account=name[0], user=name, shares=shares.get(name, 1.0)) for name in ("a1", "a2", "b1")),
    )
    accounts = Accounts(SlurmConfig(associations=people))
    for one in accounts.associations:
        amount = usage.get(one.settings.user, 0.0)
        for above in accounts.line(one.index) if one.is_user else ():
            above.usage += amount
    return accounts


def factor(accounts: Accounts) -> dict[str, float]:
    """Return the fairshare factor of each user."""
    return {one.settings.user: one.factor for one in accounts.associations if one.is_user}


def test_fair_tree_ranks_users_depth_first() -> None:
    """All users of the better account come before those of the other one."""
    accounts = tree({"a1": 10, "a2": 20, "b1": 60}, {})
    FairTree(accounts).update()
    assert factor(accounts) == pytest.approx({"a1": 1, "a2": 2 / 3, "b1": 1 / 3})


def test_fair_tree_gives_equal_users_one_rank() -> None:
    """Users without usage have the same, the best, factor."""
    accounts = tree({}, {})
    FairTree(accounts).update()
    assert set(factor(accounts).values()) == {1.0}
    assert all(one.level_fs == inf for one in accounts.associations if one.is_user)


def needed(accounts: Accounts, *, depth_oblivious: bool = False) -> None:
    """Compute the classic factors of all users in two periods of equal usage."""
    fairshare = ClassicFairshare(accounts, depth_oblivious=depth_oblivious)
    for _ in range(2):
        fairshare.begin()
        for one in accounts.associations:
            fairshare.need(one.index)


def test_classic_fairshare_is_a_half_at_the_share() -> None:
    """2^(-usage/share) is 0.5 if usage equals the share; a user also bears a share of the account's other usage."""
    accounts = tree({"a1": 25, "a2": 25, "b1": 50}, {})
    needed(accounts)
    assert factor(accounts) == pytest.approx({"a1": 2**-1.5, "a2": 2**-1.5, "b1": 0.5})


def test_usage_decays_by_the_half_life() -> None:
    """Running use is added once per period, decayed over the period itself."""
    settings = PrioritySettings(decay_half_life=3600.0, calc_period=60.0, weight_fairshare=1000)
    queue = Queue(limited(priority=settings))
    job = queue.add(nodes=1, account="bio")
    main_pass(queue.controller, 0, full=True)
    queue.controller.recalculate(60)
    d = 1 - 0.693 / 3600
    user = queue.controller.accounts.associations[2]
    assert user.usage == pytest.approx(4 * 60 * d**60)
    queue.controller.release(job, COMPLETED, 90)
    assert user.usage == pytest.approx(4 * 60 * d**60 + 4 * 30 * d**30)
    before = user.usage
    queue.controller.recalculate(120)
    assert user.usage == pytest.approx(before * d**60)


def test_usage_is_reset_on_sunday() -> None:
    """PriorityUsageResetPeriod=WEEKLY sets usage to 0 on Sunday at 00:00."""
    settings = PrioritySettings(usage_reset_period="WEEKLY")
    queue = Queue(limited(priority=settings))
    queue.controller.accounts.associations[0].usage = 5.0
    queue.controller.recalculate(6 * 86400 - 60)
    assert queue.controller.accounts.associations[0].usage > 0
    queue.controller.recalculate(6 * 86400)
    assert queue.controller.accounts.associations[0].usage == 0


def test_multifactor_adds_weighted_factors() -> None:
    """Age, size, partition and QOS factors are those of the documentation; nice is subtracted."""
    settings = PrioritySettings(
        weight_age=1000, max_age=1000.0, weight_job_size=800, weight_partition=100, weight_qos=500
    )
    qos = (QosSettings(name="normal", priority=5), QosSettings(name="high", priority=10))
    queue = Queue(limited(qos, priority=settings))
    job = queue.add(10, nodes=2, account="bio", nice=7)
    # 2 of 8 nodes and 2 of 32 CPUs asked for
    assert job.priority == int(800 * (2 / 8 + 2 / 32) / 2 + 100 + 250 - 7)
    queue.controller.recalculate(510)
    # after the test of its submission the job counts with all CPUs of its nodes
    assert job.priority == int(500 + 800 * (2 / 8 + 8 / 32) / 2 + 100 + 250 - 7)


def test_favor_small_turns_the_size_factor_round() -> None:
    """With PriorityFavorSmall small jobs get the larger factor."""
    settings = PrioritySettings(weight_job_size=1000, favor_small=True)
    queue = Queue(limited(priority=settings))
    assert queue.add(nodes=2, account="bio").priority == int(1000 * ((1 - 2 / 8) + (1 - 2 / 32)) / 2)


def test_tables_show_what_slurms_commands_show() -> None:
    """Rows for sprio, sshare and squeue come from the same controller."""
    queue = Queue(limited(priority=PrioritySettings(weight_age=10, weight_fairshare=1000)))
    queue.add(nodes=9, account="bio")
    job = queue.add(nodes=1, account="bio")
    main_pass(queue.controller, 1, full=True)
    assert [row["JOBID"] for row in factors_table(queue.controller, 1)] == [1]
    assert {row["User"] for row in shares_table(queue.controller)} == {"", "ann", "bob"}
    table = {row["JOBID"]: row for row in queue_table(queue.controller, 1)}
    assert table["1"]["REASON"] == "PartitionNodeLimit"
    assert table[str(job.number)]["NODELIST"] == "n01"


def test_limits_on_nodes_count_a_shared_node_once() -> None:
    """Two jobs of ann share a node; a third one, which would need another node, waits."""
    config = limited(user={"grp_tres": {"node": 1}})
    config = replace(shared(2), associations=config.associations, qos=config.qos, accounting_storage_enforce=ENFORCED)
    queue = Queue(config)
    jobs = [queue.add(tasks=2, account="bio") for _ in range(3)]
    main_pass(queue.controller, 1, full=True)
    assert [job.reason for job in queue.controller.pending.values()] == ["AssocGrpNodeLimit"]
    queue.controller.release(jobs[0], COMPLETED, 2)
    main_pass(queue.controller, 3, full=True)
    assert not queue.controller.pending


def test_limits_on_nodes_are_the_most_nodes_of_a_job() -> None:
    """A job without -N may not take the three nodes that would fit, and a job that asks for three waits."""
    config = limited((QosSettings(name="normal", max_tres_pj={"node": 2}),))
    config = replace(shared(3), associations=config.associations, qos=config.qos, accounting_storage_enforce=ENFORCED)
    queue = Queue(config)
    for _ in range(3):
        queue.add(tasks=3, account="bio")
    main_pass(queue.controller, 1, full=True)
    wide = queue.add(tasks=3, account="bio")
    more = queue.add(nodes=3, tasks=3, account="bio")
    main_pass(queue.controller, 2, full=True)
    assert (wide.reason, more.reason) == ("Resources", "QOSMaxNodePerJobLimit")


@pytest.mark.parametrize(("safe", "state"), [(False, "TIMEOUT"), (True, RUNNING)])
def test_used_up_minutes_kill_running_jobs(safe: bool, state: str) -> None:
    """Half a minute after ann's account has used its time, her other job is killed, unless limits are safe."""
    config = limited(account={"grp_wall": 240.0})
    enforce = ENFORCED | ({"safe"} if safe else set())
    queue = Queue(replace(config, accounting_storage_enforce=frozenset(enforce)))
    jobs = [queue.add(nodes=1, account="bio", time_limit=3600.0) for _ in range(2)]
    daemon = Daemon(queue.controller)
    daemon.submitted(0)
    while (due := daemon.next_time()) < 250:
        daemon.advance(due)
    daemon.ended(jobs[0], COMPLETED, 250, 250.02)
    while (due := daemon.next_time()) < 300:
        daemon.advance(due)
    assert jobs[1].state == state


def test_jobs_before_the_first_recalculation_have_their_full_fair_share() -> None:
    """Slurm computes the factors at its start, too, and nobody has any usage then."""
    weighed = PrioritySettings(type="priority/multifactor", weight_fairshare=3000)
    queue = Queue(replace(limited(), priority=weighed))
    assert queue.add(1, account="bio").priority == 3000


def test_backfill_does_not_run_because_a_limit_holds_a_job_as_before() -> None:
    """A pass of the main loop that finds the same limit again changes no job, as in recordings of slurmctld."""
    queue = Queue(limited(account={"grp_tres": {"cpu": 4.0}}))
    for _ in range(2):
        queue.add(nodes=1, account="bio")
    assert main_pass(queue.controller, 1, full=True).seen
    again = main_pass(queue.controller, 61, full=True)
    assert (len(again.tested), again.seen) == (1, False)


def test_usage_counts_for_the_partitions_qos() -> None:
    """GrpWall of the QOS of the partition holds the next job, whatever its own QOS."""
    config = limited((QosSettings(name="normal"), QosSettings(name="of-part", grp_wall=60.0)))
    queue = Queue(replace(config, partitions=tuple(replace(one, qos="of-part") for one in config.partitions)))
    job = queue.add(nodes=1, account="bio")
    main_pass(queue.controller, 1, full=True)
    queue.controller.release(job, COMPLETED, 70)
    assert queue.add(nodes=1, account="bio").reason == "QOSGrpWallLimit"


def test_job_has_the_reason_of_a_limit_from_its_submission_on() -> None:
    """A pass that does not come to the job leaves the reason as it is."""
    queue = Queue(limited((QosSettings(name="normal", max_wall_pj=599.0),)))
    assert queue.add(nodes=1, account="bio").reason == "QOSMaxWallDurationPerJobLimit"


@pytest.mark.parametrize("place", ["partition", "account", "user", "other user"])
def test_jobs_below_the_priority_of_their_account_reserve_no_nodes(place: str) -> None:
    """MinPrioThresh counts for the partition's QOS, and for accounts and users; a smaller job passes the wide one."""
    least = {"min_prio_thresh": 4_294_000_000}
    qos = (QosSettings(name="normal"), QosSettings(name="of-part", **(least if place == "partition" else {})))
    config = limited(qos, least if place == "account" else None, least if place == "user" else None)
    parts = tuple(replace(one, qos="of-part") for one in config.partitions)
    queue = Queue(replace(config, partitions=parts))
    queue.add(nodes=4, account="bio", time_limit=3600.0)
    main_pass(queue.controller, 1, full=True)
    queue.add(nodes=8, account="bio")
    small = queue.add(nodes=1, account="bio", user="ann" if place == "user" else "bob")
    main_pass(queue.controller, 2, full=True)
    assert (small.state == RUNNING) == (place != "other user")


def test_depth_oblivious_combines_the_ratios_of_account_and_parent() -> None:
    """One user below two accounts: 0.75 of the usage with 0.5 of the shares at the first level, 0.5 of 0.25 below."""
    people = (
        AssociationSettings(account="root"),
        AssociationSettings(account="a", parent="root"),
        AssociationSettings(account="b", parent="root"),
        AssociationSettings(account="a", user="ann"),
        AssociationSettings(account="a", user="bob", shares=3.0),
        AssociationSettings(account="b", user="cyd"),
    )
    accounts = Accounts(SlurmConfig(associations=people))
    for one, usage in zip(accounts.associations, (100.0, 75.0, 25.0, 37.5, 37.5, 25.0), strict=True):
        one.usage = usage
    needed(accounts, depth_oblivious=True)
    weight = 1 / (1 + (5 * log(1.5)) ** 2)
    found = [one.factor for one in accounts.associations[1:]]
    expected = [1.5, 0.5, 1.5 * 2.0, 1.5 * (0.5 / 0.75) ** weight, 0.5]
    assert found == pytest.approx([2.0**-ratio for ratio in expected])


def test_classic_factor_of_a_user_stays_until_the_next_period() -> None:
    """Usage that comes after the first need of a factor counts from the next period on."""
    accounts = tree({"a1": 25, "a2": 25, "b1": 50}, {})
    fairshare = ClassicFairshare(accounts)
    a1 = next(one for one in accounts.associations if one.settings.user == "a1")
    fairshare.need(a1.index)
    before = a1.factor
    for above in accounts.line(a1.index):
        above.usage += 100.0
    fairshare.need(a1.index)
    assert a1.factor == before
    fairshare.begin()
    fairshare.need(a1.index)
    assert a1.factor < before


def test_classic_factor_is_one_before_any_usage() -> None:
    """Nobody has used anything."""
    accounts = tree({}, {})
    fairshare = ClassicFairshare(accounts)
    for one in accounts.associations[3:]:
        fairshare.need(one.index)
    assert set(factor(accounts).values()) == {1.0}


def test_depth_oblivious_factor_is_one_beside_a_user_who_never_needed_one() -> None:
    """slurmctld takes the unknown usage of the other user for a very large number."""
    accounts = tree({"a1": 25, "b1": 75}, {})
    fairshare = ClassicFairshare(accounts, depth_oblivious=True)
    a1, a2 = (one.index for one in accounts.associations if one.settings.user in ("a1", "a2"))
    fairshare.need(a1)
    assert accounts.factor[a1] == pytest.approx(1.0)
    fairshare.begin()
    fairshare.need(a2)
    fairshare.need(a1)
    assert accounts.factor[a1] < 0.9


def test_children_of_an_account_that_uses_its_parents_share_compete_above() -> None:
    """They divide the share of the account above."""
    accounts = tree({"a1": 10, "a2": 30, "b1": 60}, {"a": inf, "a1": 1.0, "a2": 3.0, "b": 4.0})
    ClassicFairshare(accounts)
    norm = {one.settings.user or one.settings.account: one.norm_shares for one in accounts.associations}
    assert norm == pytest.approx({"root": 1, "a": 1, "b": 0.5, "a1": 1 / 8, "a2": 3 / 8, "b1": 0.5})


@pytest.mark.parametrize("first", ["running", "waiting"])
def test_a_waiting_job_sees_the_usage_of_earlier_running_jobs_only(first: str) -> None:
    """With classic fairshare, usage is added in the order of the jobs, and priorities are set on the way."""
    settings = PrioritySettings(
        calc_period=60.0, weight_fairshare=1000, flags=frozenset({"NO_FAIR_TREE"}), decay_half_life=0.0
    )
    queue = Queue(limited(priority=settings))
    if first == "waiting":
        waits = queue.add(nodes=1, account="bio", begin=1000.0)
    queue.add(nodes=1, account="bio")
    if first == "running":
        waits = queue.add(nodes=1, account="bio", begin=1000.0)
    main_pass(queue.controller, 0, full=True)
    queue.controller.recalculate(60)
    assert waits.priority == (500 if first == "running" else 1000)
    queue.controller.recalculate(120)
    assert waits.priority == 250


def test_an_array_keeps_its_age_when_its_limit_of_tasks_is_reached() -> None:
    """The age counts from the first pass after the submission."""
    settings = PrioritySettings(weight_age=1000, max_age=1000.0)
    queue = Queue(limited(priority=settings))
    array = queue.add(10, (0, 1, 2), nodes=1, account="bio", array_limit=1)
    assert array.accrued == 0
    for now in (20, 30):
        main_pass(queue.controller, now, full=True)
    assert array.reason == "JobArrayTaskLimit"
    queue.controller.recalculate(120)
    assert array.priority == 100


def test_a_requeued_job_keeps_its_priority_until_the_next_period() -> None:
    """Although its age begins anew."""
    settings = PrioritySettings(calc_period=300.0, weight_age=1000, max_age=1000.0)
    queue = Queue(limited(priority=settings))
    job = queue.add(nodes=1, account="bio")
    main_pass(queue.controller, 1, full=True)
    job.accrued = 1
    queue.controller.multifactor.set_priority(job, 501)
    queue.controller.release(job, PREEMPTED, 600, completing=True)
    queue.controller.clean(job)
    queue.controller.requeue(job, 600)
    assert job.priority == 500
    queue.controller.recalculate(900)
    assert job.priority < 500


@pytest.mark.parametrize(("minutes", "begins"), [(18, True), (17, False)])
def test_minutes_of_running_jobs_are_rounded_down(minutes: int, begins: bool) -> None:
    """A job that may still run 8 min 59 s and one of 10 min are within 18 minutes, as in slurmctld."""
    queue = Queue(limited((QosSettings(name="normal", grp_tres_run_mins={"node": minutes}),)))
    queue.add(nodes=1, account="bio")
    main_pass(queue.controller, 0, full=True)
    queue.controller.recalculate(61)
    second = queue.add(62, nodes=1, account="bio")
    main_pass(queue.controller, 62, full=True)
    assert (second.state == RUNNING) == begins


@pytest.mark.parametrize("memory", [{"mem_per_cpu": 4000}, {"mem_per_node": 8000}])
def test_priority_at_submission_ignores_cpus_added_for_memory(memory: dict[str, int]) -> None:
    """With MaxMemPerCPU=2000, the jobs need 4 CPUs, but count with the 2 that they ask for."""
    config = shared(4, priority=PrioritySettings(type="priority/multifactor", weight_job_size=1000))
    queue = Queue(replace(config, select=replace(config.select, max_mem_per_cpu=2000)))
    job = queue.add(nodes=1, tasks=2, **memory)
    assert job.min_cpus == 4
    assert job.priority == int(1000 * (1 / 4 + 2 / 16) / 2)
