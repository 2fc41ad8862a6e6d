"""The passes of slurmctld: main loop, backfill, arrays, dependencies, reservations, preemption."""

import json

import pytest
from msgspec.structs import replace
from tests.schedulers.slurm.conftest import Queue, cluster, shared

from pipistrelle.schedulers.slurm.backfill.backfill_pass import backfill_pass
from pipistrelle.schedulers.slurm.cluster.jobs import COMPLETED, FAILED, PENDING, RUNNING
from pipistrelle.schedulers.slurm.config.accounts import AssociationSettings, QosSettings
from pipistrelle.schedulers.slurm.config.machine import PartitionSettings, ReservationSettings
from pipistrelle.schedulers.slurm.config.parameters import PreemptSettings, SchedulerParameters
from pipistrelle.schedulers.slurm.passes.controller import Controller
from pipistrelle.schedulers.slurm.passes.dependencies import parse_dependency
from pipistrelle.schedulers.slurm.passes.main_pass import main_pass


def started(queue: Queue, now: int, *, full: bool = True) -> list[str]:
    """Run a pass of the main loop and return the ids of the jobs started."""
    return [job.ids[0] for job in main_pass(queue.controller, now, full=full).started]


def test_a_job_that_does_not_fit_closes_its_partition() -> None:
    """A smaller job behind a large one is left to backfill."""
    queue = Queue(cluster())
    for nodes in (3, 2, 1):
        queue.add(nodes=nodes)
    assert started(queue, 1) == ["1"]
    waiting = list(queue.controller.pending.values())
    assert [job.reason for job in waiting] == ["Resources", "Priority"]


def test_a_job_too_large_for_what_closed_partitions_leave_closes_nothing() -> None:
    """The third job needs n02, which the closed partition has, too; the fourth job starts on n03."""
    config = shared(3)
    first = replace(config.partitions[0], nodes=("n01", "n02"))
    other = replace(first, name="other", nodes=("n02", "n03"), default=False)
    queue = Queue(replace(config, partitions=(first, other)))
    queue.add(tasks=8)
    queue.add(tasks=4)
    third = queue.add(tasks=8, partitions=("other",))
    queue.add(tasks=4, partitions=("other",))
    assert started(queue, 1) == ["1", "4"]
    assert third.reason == "ReqNodeNotAvail"


def test_default_pass_tests_one_job_more_than_its_depth() -> None:
    """default_queue_depth=1 lets two jobs be tested."""
    queue = Queue(cluster(scheduler_parameters=SchedulerParameters(default_queue_depth=1)))
    for _ in range(4):
        queue.add(nodes=1)
    assert started(queue, 1, full=False) == ["1", "2"]


def test_partition_job_depth_limits_each_partition() -> None:
    """partition_job_depth=1 tests one job of each partition."""
    config = cluster(scheduler_parameters=SchedulerParameters(partition_job_depth=1))
    other = replace(config.partitions[0], name="other", default=False)
    queue = Queue(replace(config, partitions=(*config.partitions, other)))
    for part in ("batch", "batch", "other"):
        queue.add(nodes=1, partitions=(part,))
    assert started(queue, 1) == ["1", "3"]


def test_backfill_reserves_for_more_tasks_than_may_run_at_once() -> None:
    """The limit of running tasks (%N) does not limit the reservations of an array."""
    queue = Queue(cluster())
    queue.add(nodes=4)
    assert started(queue, 1) == ["1"]
    queue.add(array=(0, 1, 2), nodes=1, array_limit=1)
    outcomes = backfill_pass(queue.controller, 30).outcomes
    assert [one.kind for one in outcomes] == ["reserve"] * 3


def test_running_jobs_with_equal_ends_are_in_the_order_of_slurmctlds_list() -> None:
    """A task that starts takes the place of its array; the waiting tasks go to the end of the list."""
    queue = Queue(cluster())
    queue.add(array=(0, 1), nodes=1)
    queue.add(nodes=1)
    started(queue, 1)
    assert [job.ids[0] for job in queue.controller.running_jobs()] == ["1_0", "2", "1_1"]


def test_higher_tier_goes_first() -> None:
    """PriorityTier comes before the time of submission."""
    config = cluster()
    urgent = replace(config.partitions[0], name="urgent", default=False, priority_tier=2)
    queue = Queue(replace(config, partitions=(*config.partitions, urgent)))
    queue.add(nodes=4)
    queue.add(nodes=4, partitions=("urgent",))
    assert started(queue, 1) == ["2"]


def test_job_with_two_partitions_starts_in_the_one_that_has_room() -> None:
    """A job names several partitions and starts in one of them only."""
    config = cluster()
    small = PartitionSettings(name="small", nodes=("n01",), over_subscribe="EXCLUSIVE")
    rest = replace(config.partitions[0], nodes=("n02", "n03", "n04"))
    queue = Queue(replace(config, partitions=(rest, small)))
    queue.add(nodes=3)
    queue.add(nodes=1, partitions=("batch", "small"))
    assert started(queue, 1) == ["1", "2"]
    assert queue.controller.machine.names_of(queue.controller.by_number[2][0].nodes) == ["n01"]


def test_backfill_starts_a_job_that_ends_before_the_reservation() -> None:
    """The large job is reserved when the running one ends; a short job may run before that, a long one not."""
    queue = Queue(cluster())
    queue.add(nodes=3, time_limit=600.0)
    assert started(queue, 0) == ["1"]
    large = queue.add(1, nodes=4, time_limit=600.0)
    queue.add(1, nodes=1, time_limit=3600.0)
    short = queue.add(1, nodes=1, time_limit=300.0)
    result = backfill_pass(queue.controller, 30)
    assert [job.ids[0] for job in result.started] == [short.ids[0]]
    assert large.expected == 600


def test_backfill_makes_no_reservation_beyond_its_window() -> None:
    """With bf_window=5 a start in 10 minutes is too far."""
    queue = Queue(cluster(scheduler_parameters=SchedulerParameters(bf_window=5)))
    queue.add(nodes=4)
    started(queue, 0)
    queue.add(1, nodes=4)
    outcome = backfill_pass(queue.controller, 30).outcomes[0]
    assert outcome.kind == "window"


@pytest.mark.parametrize(("busy", "nodes"), [(False, ["n01", "n02"]), (True, ["n02", "n03"])])
def test_bf_busy_nodes_takes_nodes_in_use_for_expected_starts(*, busy: bool, nodes: list[str]) -> None:
    """n02 and n03 are in use now; when the large job can start, all three nodes are free."""
    queue = Queue(shared(3, scheduler_parameters=SchedulerParameters(bf_busy_nodes=busy)))
    for name in ("n02", "n03"):
        queue.add(tasks=4, required=(name,))
    assert started(queue, 0) == ["1", "2"]
    queue.add(1, nodes=2, tasks=8)
    (outcome,) = backfill_pass(queue.controller, 30).outcomes
    assert (outcome.kind, outcome.start) == ("reserve", 600)
    assert queue.controller.machine.names_of(outcome.nodes) == nodes


@pytest.mark.parametrize(
    ("exclusive", "mode", "every", "nodes"),
    [
        (False, "OFF", False, (["n02"], ["n02"])),
        (True, "OFF", False, (["n03"], ["n02"])),
        (True, "OFF", True, (["n03"], ["n03"])),
        (True, "REQUEUE", True, (["n02"], ["n02"])),
    ],
)
def test_exclusive_jobs_are_in_the_table_of_reservations(
    *, exclusive: bool, mode: str, every: bool, nodes: tuple[list[str], list[str]]
) -> None:
    """In the pass that starts them, and with bf_running_job_reserve in all passes, if they cannot be preempted.

    The last job runs too long to wait for n02, which is reserved until the exclusive job's limit.
    """
    parameters = SchedulerParameters(bf_running_job_reserve=every)
    queue = Queue(shared(3, scheduler_parameters=parameters, preempt=PreemptSettings(mode=(mode,))))
    queue.add(tasks=4)
    started(queue, 0)
    queue.add(1, nodes=3, tasks=12)
    queue.add(1, nodes=1, tasks=None if exclusive else 4, exclusive=exclusive, time_limit=300.0)
    queue.add(1, tasks=4, time_limit=300.0)
    queue.add(1, tasks=4, time_limit=270.0)
    found = []
    for now in (0, 10):
        outcome = backfill_pass(queue.controller, now).outcomes[-1]
        assert (outcome.job.ids[0], outcome.kind, outcome.start) == ("5", "reserve", 300)
        found.append(queue.controller.machine.names_of(outcome.nodes))
    assert tuple(found) == nodes


@pytest.mark.parametrize(("stops", "large", "expected"), [(False, False, 0), (True, False, 530), (True, True, 1200)])
def test_assoc_limit_stop_reserves_for_a_job_that_a_limit_holds(*, stops: bool, large: bool, expected: int) -> None:
    """The job fits now, but may not start: it is expected when more nodes open, or else in 500 s."""
    bio = AssociationSettings(account="bio")
    users = (replace(bio, user="ann", max_jobs=1), replace(bio, user="bob"))
    queue = Queue(
        shared(
            2,
            accounting_storage=True,
            accounting_storage_enforce=frozenset({"limits"}),
            associations=(bio, *users),
            scheduler_parameters=SchedulerParameters(assoc_limit_stop=stops),
        )
    )
    queue.add(account="bio", tasks=4)
    started(queue, 0)
    if large:
        queue.add(1, account="bio", user="bob", nodes=2, tasks=8)
    held = queue.add(1, account="bio", tasks=4, time_limit=300.0)
    assert not backfill_pass(queue.controller, 30).started
    assert held.expected == expected


@pytest.mark.parametrize(
    ("option", "tested"),
    [
        ({"bf_max_job_test": 1}, 1),
        ({"bf_max_job_user": 1}, 1),
        ({"bf_max_job_part": 2}, 2),
        ({"bf_max_job_assoc": 1}, 3),
    ],
)
def test_backfill_counts_jobs(option: dict[str, int], tested: int) -> None:
    """Limits on the number of tested jobs leave the others without reservation; without accounts none has one."""
    queue = Queue(cluster(scheduler_parameters=SchedulerParameters(**option)))
    queue.add(nodes=4)
    started(queue, 0)
    for _ in range(3):
        queue.add(1, nodes=4)
    outcomes = backfill_pass(queue.controller, 30).outcomes
    assert sum(one.kind == "reserve" for one in outcomes) == tested


def test_bf_one_resv_per_job_and_min_age() -> None:
    """With bf_min_age_reserve a young job gets no reservation."""
    queue = Queue(cluster(scheduler_parameters=SchedulerParameters(bf_min_age_reserve=600.0)))
    queue.add(nodes=4)
    started(queue, 0)
    queue.add(1, nodes=4)
    assert backfill_pass(queue.controller, 30).outcomes[0].kind == ""
    assert backfill_pass(queue.controller, 601).outcomes[0].kind == "reserve"


def test_array_limit_holds_back_tasks() -> None:
    """%2 lets two tasks run; the next starts when one has ended."""
    queue = Queue(cluster())
    queue.add(array=(0, 1, 2, 3), nodes=1, array_limit=2)
    assert started(queue, 1) == ["1_0", "1_1"]
    array = queue.controller.by_number[1][0]
    assert array.reason == "JobArrayTaskLimit"
    first = next(job for job in queue.controller.by_number[1] if job.state == RUNNING)
    queue.controller.release(first, COMPLETED, 50)
    assert started(queue, 51) == ["1_2"]
    assert array.eligible == 0


@pytest.mark.parametrize(
    ("kind", "state", "runs"),
    [
        ("afterany", FAILED, True),
        ("afterok", COMPLETED, True),
        ("afterok", FAILED, False),
        ("afternotok", FAILED, True),
        ("afternotok", COMPLETED, False),
    ],
)
def test_dependencies_on_the_end_of_a_job(kind: str, state: str, runs: bool) -> None:
    """afterany runs in any case, afterok after success only, afternotok after failure only."""
    queue = Queue(cluster())
    first = queue.add(nodes=1)
    second = queue.add(nodes=1, dependency=f"{kind}:1")
    assert started(queue, 1) == ["1"]
    assert second.reason == "Dependency"
    queue.controller.release(first, state, 100)
    assert started(queue, 101) == (["2"] if runs else [])
    assert second.reason == ("None" if runs else "DependencyNeverSatisfied")
    if runs:
        assert second.eligible == 101


def test_kill_invalid_depend_cancels_the_job() -> None:
    """With kill_invalid_depend a job whose dependency can never be met is cancelled."""
    queue = Queue(cluster(scheduler_parameters=SchedulerParameters(kill_invalid_depend=True)))
    first = queue.add(nodes=1)
    second = queue.add(nodes=1, dependency="afterok:1")
    started(queue, 1)
    queue.controller.release(first, FAILED, 100)
    started(queue, 101)
    assert second.state == "CANCELLED"
    assert queue.controller.dropped == [second]


@pytest.mark.parametrize(("cluster_kills", "own", "state"), [(True, False, "PENDING"), (False, True, "CANCELLED")])
def test_kill_on_invalid_dep_of_a_job_wins_over_the_cluster(cluster_kills: bool, own: bool, state: str) -> None:
    """sbatch --kill-on-invalid-dep=yes|no."""
    queue = Queue(cluster(scheduler_parameters=SchedulerParameters(kill_invalid_depend=cluster_kills)))
    first = queue.add(nodes=1)
    second = queue.add(nodes=1, dependency="afterok:1", kill_on_invalid=own)
    started(queue, 1)
    queue.controller.release(first, FAILED, 100)
    started(queue, 101)
    assert second.state == state


def test_after_waits_for_a_start_and_its_delay() -> None:
    """after:1+2 is met two minutes after the start of job 1."""
    queue = Queue(cluster())
    queue.add(nodes=1)
    queue.add(nodes=1, dependency="after:1+2")
    assert started(queue, 10) == ["1"]
    assert started(queue, 129) == []
    assert started(queue, 130) == ["2"]


def test_singleton_runs_one_job_of_a_name_at_a_time() -> None:
    """Jobs of the same user and name run one after the other, by id."""
    queue = Queue(cluster())
    first = queue.add(nodes=1, name="ring", dependency="singleton")
    queue.add(nodes=1, name="ring", dependency="singleton")
    queue.add(nodes=1, name="ring", user="bob", dependency="singleton")
    assert started(queue, 1) == ["1", "3"]
    queue.controller.release(first, COMPLETED, 50)
    assert started(queue, 51) == ["2"]


def test_aftercorr_pairs_tasks() -> None:
    """Task 1 of the second array waits for task 1 of the first."""
    queue = Queue(cluster())
    queue.add(nodes=1)
    queue.add(array=(1,), nodes=1)
    third = queue.add(array=(1,), nodes=1, dependency="aftercorr:2")
    assert started(queue, 1) == ["1", "2_1"]
    queue.controller.release(queue.controller.by_number[2][0], COMPLETED, 20)
    assert started(queue, 21) == ["3_1"]
    assert third.state == RUNNING


def test_any_of_several_dependencies_suffices_with_a_question_mark() -> None:
    """afterok:1?afterok:2 starts when either succeeds."""
    queue = Queue(cluster())
    first = queue.add(nodes=1)
    second = queue.add(nodes=1)
    queue.add(nodes=1, dependency="afterok:1?afterok:2")
    started(queue, 1)
    queue.controller.release(first, FAILED, 20)
    assert started(queue, 21) == []
    queue.controller.release(second, COMPLETED, 30)
    assert started(queue, 31) == ["3"]


@pytest.mark.parametrize("text", ["afterok", "afterok:x", "sometime:3", "after:1+x"])
def test_malformed_dependency_is_refused(text: str) -> None:
    """A dependency that cannot be read raises an error that quotes it."""
    with pytest.raises(ValueError, match="dependency"):
        parse_dependency(text)


def test_begin_time_sets_the_eligible_time() -> None:
    """A job with --begin waits with reason BeginTime, and is eligible from then on."""
    queue = Queue(cluster())
    job = queue.add(nodes=1, begin=100.0)
    assert started(queue, 1) == []
    assert (job.reason, job.eligible) == ("BeginTime", 100)
    assert started(queue, 103) == ["1"]
    assert job.eligible == 100


def test_held_job_does_not_start() -> None:
    """A job submitted with -H has priority 0 and never starts."""
    queue = Queue(cluster())
    job = queue.add(nodes=1, hold=True)
    assert started(queue, 1) == []
    assert job.reason == "JobHeldUser"


def test_too_large_job_waits_for_good() -> None:
    """A job with more nodes than its partition has stays queued with PartitionNodeLimit."""
    queue = Queue(cluster())
    job = queue.add(nodes=5)
    assert (queue.refused, started(queue, 1), job.reason) == ("", [], "PartitionNodeLimit")


def test_reservation_keeps_jobs_off_its_nodes() -> None:
    """No job whose limit reaches into a reservation starts on its nodes; short jobs do."""
    maintenance = ReservationSettings(name="m", start=300.0, end=900.0, nodes=("n01", "n02"), flags=("MAINT",))
    queue = Queue(cluster(reservations=(maintenance,)))
    queue.add(nodes=2, time_limit=600.0)
    queue.add(nodes=2, time_limit=240.0)
    assert started(queue, 1) == ["1", "2"]
    names = queue.controller.machine.names_of
    assert [names(queue.controller.by_number[at][0].nodes) for at in (1, 2)] == [["n03", "n04"], ["n01", "n02"]]


def test_reservation_of_all_nodes_does_not_close_the_partition() -> None:
    """A job refused only because all nodes are reserved lets later ones be tested."""
    everything = ("n01", "n02", "n03", "n04")
    queue = Queue(cluster(reservations=(ReservationSettings(name="m", start=300.0, end=900.0, nodes=everything),)))
    queue.add(nodes=1, time_limit=600.0)
    queue.add(nodes=1, time_limit=240.0)
    assert started(queue, 1) == ["2"]


def test_daily_reservation_comes_again() -> None:
    """A daily reservation moves on by a day when it ends."""
    daily = ReservationSettings(name="d", start=0.0, end=3600.0, nodes=("n01",), flags=("DAILY",))
    queue = Queue(cluster(reservations=(daily,)))
    queue.controller.reservations.advance(4000)
    one = queue.controller.reservations.all[0]
    assert (one.start, one.end) == (86400, 90000)


@pytest.mark.parametrize(
    ("flag", "days"),
    [
        ("WEEKDAY", {8: 9, 9: 12, 10: 12, 11: 12}),
        ("WEEKEND", {8: 10, 9: 10, 10: 11, 11: 17}),
        ("WEEKLY", {8: 15, 9: 16}),
    ],
)
def test_reservations_of_weekdays_and_weekends_come_again(flag: str, days: dict[int, int]) -> None:
    """Time 0 is Monday, 5 January 2026; the next starts after those of Thursday to Sunday are slurmctld's."""
    for first, following in days.items():
        begin = (first - 5) * 86400.0 + 36000
        one = ReservationSettings(name="d", start=begin, end=begin + 600, nodes=("n01",), flags=(flag,))
        queue = Queue(cluster(reservations=(one,)))
        queue.controller.reservations.advance(begin + 700)
        assert queue.controller.reservations.all[0].start == (following - 5) * 86400 + 36000


def test_hourly_reservation_comes_again() -> None:
    """After a pause of hours, it is at its next interval."""
    one = ReservationSettings(name="h", start=0.0, end=600.0, nodes=("n01",), flags=("HOURLY",))
    queue = Queue(cluster(reservations=(one,)))
    queue.controller.reservations.advance(7300)
    found = queue.controller.reservations.all[0]
    assert (found.start, found.end) == (7200, 7800)


def test_a_job_that_its_reservation_does_not_admit_is_refused() -> None:
    """So does slurmctld at the submission, also if there is no such reservation."""
    own = ReservationSettings(name="r", start=100.0, end=2000.0, nodes=("n02",), users=("ann",))
    queue = Queue(cluster(reservations=(own,)))

    queue.add(user="bob", reservation="r")
    assert queue.refused == "access denied to reservation r"
    queue.add(user="ann", reservation="other")
    assert queue.refused == "there is no reservation other"
    queue.add(user="ann", reservation="r")
    assert queue.refused == ""


def test_users_of_a_reservation_run_in_it() -> None:
    """A job that names a reservation runs on its nodes, only within its time."""
    own = ReservationSettings(name="r", start=100.0, end=2000.0, nodes=("n02",), users=("ann",))
    queue = Queue(cluster(reservations=(own,)))
    job = queue.add(nodes=1, reservation="r")
    assert started(queue, 1) == []
    assert backfill_pass(queue.controller, 1).started == []
    assert started(queue, 100) == ["1"]
    assert queue.controller.machine.names_of(job.nodes) == ["n02"]


def test_expected_starts_around_reservations() -> None:
    """A job of a reservation has no nodes after its end; a job that requires a reserved node starts behind it."""
    own = ReservationSettings(name="r", start=100.0, end=2000.0, nodes=("n02",), users=("ann",))
    queue = Queue(cluster(2, reservations=(own,)))
    job = queue.add(nodes=1, reservation="r")
    for when, nodes in ((150, ["n02"]), (2000, ["n02"]), (2001, [])):
        found, _, start = queue.controller.reservations.open_nodes(job, when, 600)
        assert (queue.controller.machine.names_of(found), start) == (nodes, when)

    queue.add(nodes=1, required=("n02",), user="bob")
    outcomes = backfill_pass(queue.controller, 50).outcomes
    assert [(one.job.ids, one.start) for one in outcomes] == [(["2"], 2001)]


def test_licences_are_counted() -> None:
    """A job that finds too few licences waits with reason Licenses."""
    queue = Queue(cluster(licenses={"matlab": 1}))
    queue.add(nodes=1, licenses={"matlab": 1})
    second = queue.add(nodes=1, licenses={"matlab": 1})
    assert started(queue, 1) == ["1"]
    assert second.reason == "Licenses"


def preempting(mode: str = "REQUEUE", **more: object) -> Queue:
    """Return a queue with the QOS low and high, of which high preempts low."""
    qos = (QosSettings(name="low"), QosSettings(name="high", priority=10, preempt=("low",)))
    config = cluster(preempt=PreemptSettings(type="preempt/qos", mode=(mode,)), qos=qos, accounting_storage=True)
    return Queue(replace(config, **more))


def test_preemption_takes_the_smallest_jobs_first() -> None:
    """Victims are ordered by the QOS priority, then by their number of nodes."""
    queue = preempting()
    queue.add(nodes=3, qos="low")
    queue.add(nodes=1, qos="low")
    started(queue, 0)
    queue.add(10, nodes=1, qos="high")
    gone = []
    main_pass(queue.controller, 10, full=True, preempt=lambda victim, _: gone.append(victim.ids[0]))
    assert gone == ["2"]


def test_exempt_time_protects_young_jobs() -> None:
    """PreemptExemptTime keeps a job from being preempted before it."""
    queue = preempting(preempt=PreemptSettings(type="preempt/qos", mode=("REQUEUE",), exempt_time=60.0))
    queue.add(nodes=4, qos="low")
    started(queue, 0)
    queue.add(10, nodes=1, qos="high")
    gone: list[str] = []
    main_pass(queue.controller, 30, full=True, preempt=lambda victim, _: gone.append(victim.ids[0]))
    assert gone == []
    main_pass(queue.controller, 60, full=True, preempt=lambda victim, _: gone.append(victim.ids[0]))
    assert gone == ["1"]


def test_no_further_preemption_while_one_is_in_progress() -> None:
    """For KillWait + MessageTimeout after the first preemption, a job preempts no others."""
    queue = preempting()
    queue.add(nodes=4, qos="low")
    started(queue, 0)
    queue.add(10, nodes=1, qos="high")
    gone: list[str] = []
    for now in (10, 20, 51):
        main_pass(queue.controller, now, full=True, preempt=lambda victim, _, now=now: gone.append(now))
    assert gone == [10, 51]


def test_requeued_victim_waits_and_keeps_its_id() -> None:
    """A victim is submitted anew, and may start again 121 s later."""
    queue = preempting()
    job = queue.add(nodes=4, qos="low")
    started(queue, 0)
    queue.controller.release(job, "PREEMPTED", 10, completing=True)
    assert queue.controller.machine.completing
    queue.controller.clean(job)
    queue.controller.requeue(job, 10)
    assert (job.state, job.submit, job.eligible, job.number, job.restarts) == (PENDING, 10, 131, 1, 1)


def test_partition_preemption_by_tier() -> None:
    """With preempt/partition_prio jobs of a higher tier preempt those of a lower one."""
    config = cluster(preempt=PreemptSettings(type="preempt/partition_prio", mode=("CANCEL",)))
    high = replace(config.partitions[0], name="high", default=False, priority_tier=5)
    queue = Queue(replace(config, partitions=(*config.partitions, high)))
    job = queue.add(nodes=4)
    started(queue, 0)
    queue.add(10, nodes=1, partitions=("high",))
    gone: list[str] = []
    main_pass(queue.controller, 10, full=True, preempt=lambda victim, _: gone.append(victim.ids[0]))
    assert gone == ["1"]
    assert queue.controller.preemption.mode_of(job) == "CANCEL"


def test_state_is_plain_and_restores_to_the_same_decisions() -> None:
    """A restored controller starts the same jobs on the same nodes."""
    queue = Queue(shared())
    for at in range(12):
        queue.add(at, cpus_per_task=1 + at % 3)
    started(queue, 12)
    state = json.loads(json.dumps(queue.controller.state()))
    other = Controller(queue.controller.config)
    other.restore(state)
    results = [backfill_pass(one, 30) for one in (queue.controller, other)]
    assert len({str([(o.job.ids, o.kind, o.start, o.nodes) for o in result.outcomes]) for result in results}) == 1
    assert other.state() == queue.controller.state()
