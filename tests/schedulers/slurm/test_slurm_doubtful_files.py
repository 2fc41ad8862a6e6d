"""Settings that Slurm changes, ignores or refuses: each is one message with file and line.

What Slurm 22.05.8 does with them was asked of its slurmctld, slurmdbd and sacctmgr.
"""

from math import inf

import pytest
from tests.schedulers.slurm.conftest import Queue, cluster

from pipistrelle.platforms.slurm.conf import SlurmConfigError, read_slurm_conf
from pipistrelle.platforms.slurm.keys import KeySupport
from pipistrelle.schedulers.slurm.accounts.records import Accounts
from pipistrelle.schedulers.slurm.files.accounting import read_accounting
from pipistrelle.schedulers.slurm.files.config import FilesBeside, slurm_config

MACHINE = "NodeName=n[1-4] CPUs=8 RealMemory=32000\n"
PARTITION = "PartitionName=batch Nodes=ALL Default=YES\n"
QOS = "add qos low\nadd qos high\n"


def read(text: str, accounting: str = ""):
    """Return the settings of a slurm.conf, and the texts of its warnings."""
    people = read_accounting([("people", accounting)]) if accounting else None
    beside = FilesBeside() if people is None else FilesBeside(accounting=people)
    config, findings = slurm_config(read_slurm_conf(MACHINE + text, "slurm.conf"), beside)
    found = [*findings, *(people.findings if people else ())]
    return config, [str(one) for one in found if one.support is KeySupport.WARNED]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"OverTimeLimit=65536\n{PARTITION}", r"slurm.conf:2.*OverTimeLimit.*0 to 65,535 \(minutes\), or UNLIMITED"),
        (f"OverTimeLimit=-1\n{PARTITION}", r"slurm.conf:2: .*OverTimeLimit.*'-1'"),
        (f"OverTimeLimit=1:00\n{PARTITION}", r"slurm.conf:2: .*OverTimeLimit.*'1:00'"),
        ("PartitionName=p Nodes=ALL OverTimeLimit=70000\n", r"slurm.conf:2: .*OverTimeLimit.*'70000'"),
        ("PartitionName=p Nodes=ALL GraceTime=-1\n", r"slurm.conf:2: .*GraceTime.*\(seconds\), or UNLIMITED.*'-1'"),
        ("PartitionName=p Nodes=ALL GraceTime=1:00\n", r"slurm.conf:2: .*GraceTime.*'1:00'"),
        ("PartitionName=p Nodes=ALL TRESBillingWeights=-1\n", r"slurm.conf:2: .*TRESBillingWeights.*'-1'"),
        ("PartitionName=p Nodes=ALL TRESBillingWeights=cpu=-1\n", r"slurm.conf:2: .*weights of at least 0.*'cpu=-1'"),
        (f"Licenses=a:2,a:-3\n{PARTITION}", r"slurm.conf:2: .*Licenses.*at least 0"),
        *(
            (f"SchedulerParameters={key}={value}\n{PARTITION}", rf"slurm.conf:2: .*{key}.*whole number.*'{value}'")
            for key, value in (
                ("bf_max_job_user", -1),
                ("bf_max_job_part", -1),
                ("bf_max_job_user_part", -1),
                ("bf_max_job_assoc", -1),
                ("bf_interval", -2),
                ("default_queue_depth", -1),
                ("sched_interval", -2),
            )
        ),
    ],
)
def test_a_value_out_of_range_is_one_message(text, message):
    """slurmctld refuses such a value, or ignores it with an error in its log."""
    with pytest.raises(SlurmConfigError, match=message):
        read(text)


def test_unlimited_times_are_infinite():
    """OverTimeLimit counts minutes, GraceTime seconds."""
    config, _ = read("OverTimeLimit=UNLIMITED\nPartitionName=p Nodes=ALL OverTimeLimit=3 GraceTime=INFINITE\n")

    assert (config.over_time_limit, config.partitions[0].over_time_limit) == (inf, 180.0)
    assert config.partitions[0].grace_time == inf


def test_numbers_of_a_licence_that_is_named_twice_are_added():
    """As `scontrol show licenses` shows it."""
    assert read(f"Licenses=a:2,b,a:3\n{PARTITION}")[0].licenses == {"a": 5, "b": 1}


@pytest.mark.parametrize(
    ("key", "value", "limits"),
    [
        ("bf_max_job_part", 10, True),
        ("bf_max_job_part", 9, False),
        ("bf_max_job_user", 11, True),
        ("bf_max_job_user", 10, False),
        ("bf_max_job_user_part", 11, True),
        ("bf_max_job_assoc", 11, True),
    ],
)
def test_a_number_of_jobs_that_a_pass_never_reaches_is_a_warning(key, value, limits):
    """slurmctld writes it to its log, and keeps the value."""
    config, warnings = read(f"SchedulerParameters=bf_max_job_test=10,{key}={value}\n{PARTITION}")

    assert getattr(config.scheduler_parameters, key) == value
    assert warnings == (
        [f"slurm.conf:2: SchedulerParameters {key}: it is not below bf_max_job_test (10), so it limits nothing"]
        if limits
        else []
    )


def test_an_interval_of_minus_one_switches_the_passes_off():
    """For backfill and for full passes of the main loop; 0 is one full pass a second."""
    parameters = read(f"SchedulerParameters=bf_interval=-1,sched_interval=-1\n{PARTITION}")[0].scheduler_parameters

    assert (parameters.bf_interval, parameters.sched_interval) == (inf, None)
    config, _ = read(f"SchedulerParameters=sched_interval=0\n{PARTITION}")
    assert config.scheduler_parameters.sched_interval == 1.0


def test_a_partition_with_fewer_nodes_than_min_nodes_is_a_warning():
    """Slurm accepts it; its jobs wait forever."""
    _, warnings = read(f"{PARTITION}PartitionName=p Nodes=n[1-2] MinNodes=3\n")

    assert warnings == ["slurm.conf:3: MinNodes: partition p has only 2 nodes, so no job can run in it"]


def test_adding_what_exists_changes_nothing_and_is_a_warning():
    """Sacctmgr says 'Nothing new added', also for the QOS normal, which every cluster has at first."""
    text = (
        "add account bio,chem fairshare=5\nadd account bio fairshare=9\nadd account bio math fairshare=7\n"
        "add qos normal priority=3\nadd qos low priority=1\nadd qos low priority=2\n"
        "add user ann account=bio fairshare=3\nadd user ann account=bio,chem fairshare=8\n"
    )
    people = read_accounting([("people", text)])
    shares = {(one.account, one.user): one.shares for one in people.associations}
    warnings = [str(one) for one in people.findings if one.support is KeySupport.WARNED]

    assert shares["bio", ""] == shares["chem", ""] == 5.0
    assert (shares["math", ""], shares["bio", "ann"], shares["chem", "ann"]) == (7.0, 3.0, 8.0)
    assert {one.name: one.priority for one in people.qos} == {"normal": 0, "low": 1}
    assert warnings == [
        "people:2: add account: bio exists already, so sacctmgr changes nothing: use modify",
        "people:3: add account: bio exists already, so sacctmgr changes nothing: use modify",
        "people:4: add qos: normal exists already, so sacctmgr changes nothing: use modify",
        "people:6: add qos: low exists already, so sacctmgr changes nothing: use modify",
        "people:8: add user: user ann in account bio exists already, so sacctmgr changes nothing: use modify",
    ]


def test_a_removed_qos_normal_is_gone():
    """Unless a later command adds it again."""
    assert [one.name for one in read_accounting([("f", f"remove qos normal\n{QOS}")]).qos] == ["low", "high"]
    again = read_accounting([("f", "remove qos normal\nadd qos normal priority=4\n")])
    assert [(one.name, one.priority) for one in again.qos] == [("normal", 4)]


def test_a_user_is_in_the_default_account_and_in_those_of_account():
    """Sacctmgr adds both associations."""
    people = read_accounting([("f", "add account a,b\nadd user u DefaultAccount=a Account=b\nadd user v defacct=b\n")])
    users = [(one.account, one.user, one.is_default) for one in people.associations if one.user not in ("", "root")]

    assert users == [("b", "u", False), ("a", "u", True), ("b", "v", True)]


def test_a_new_cluster_allows_only_the_qos_normal():
    """Accounts and users inherit it; += and -= change the inherited list, also in a dump."""
    text = f"{QOS}add account a\nadd user u account=a\nmodify user u set qos+=high\n"
    allowed = {(one.account, one.user): one.qos for one in read_accounting([("f", text)]).associations}
    dump = "Cluster - 'c':QOS='normal'\nParent - 'root'\nAccount - 'a':QOS='+low'\n"
    user = "Parent - 'a'\nUser - 'u':QOS='+high'\nUser - 'v':QOS='-normal'\n"
    dumped = {(one.account, one.user): one.qos for one in read_accounting([("f", dump + user)]).associations}

    assert (allowed["root", ""], allowed["a", ""], allowed["a", "u"]) == (("normal",), None, ("normal", "high"))
    assert (dumped["a", ""], dumped["a", "u"]) == (("normal", "low"), ("normal", "low", "high"))
    assert dumped["a", "v"] == ("low",)


@pytest.mark.parametrize(
    ("user", "qos"),
    [
        ("qos=low defaultqos=high", "low"),
        ("qos=low,high defaultqos=high", "high"),
        ("qos=low,normal defaultqos=high", "normal"),
        ("qos=low", "low"),
    ],
)
def test_a_default_qos_outside_the_list_is_not_used(user, qos):
    """It is a warning; the only allowed QOS, or normal, takes its place."""
    config, warnings = read(
        f"AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageEnforce=qos\n{PARTITION}",
        f"{QOS}add account a\nadd user u account=a {user}\n",
    )
    accounts = Accounts(config)

    assert accounts.default_qos(accounts.find("u", "a")) == qos
    outside = qos != "high" and "defaultqos" in user
    why = "user u in account a may not use its default QOS high: jobs get another one, or are rejected"
    assert warnings == ([f"people:4: DefaultQOS: {why}"] if outside else [])


def test_without_an_allowed_default_a_job_must_name_its_qos():
    """Slurm says 'Invalid qos specification'."""
    people = read_accounting([("f", f"{QOS}add account a\nadd user ann account=a qos=low,high\n")])
    made = cluster(
        qos=people.qos,
        associations=people.associations,
        accounting_storage=True,
        accounting_storage_enforce=frozenset({"associations", "qos"}),
    )
    queue = Queue(made)

    queue.add(account="a")
    assert queue.refused == "invalid qos specification: normal"
    queue.add(account="a", qos="low")
    assert not queue.refused


def test_an_association_for_an_unknown_partition_is_a_warning():
    """Sacctmgr does not know partitions; no job ever uses the association."""
    _, warnings = read(
        f"AccountingStorageEnforce=associations\n{PARTITION}",
        "add account a\nadd user u account=a partition=batch,nope\n",
    )

    what = "slurm.conf has no partition nope, so no job uses this association of user u in account a"
    assert warnings == [f"people:2: Partition: {what}"]


@pytest.mark.parametrize(
    "line", ["PriorityWeightTRES=cpu=1,GRES/gpu=2", "PartitionName=p Nodes=n1 TRESBillingWeights=GRES/gpu=2"]
)
def test_weights_of_untracked_resources_are_a_warning(line: str) -> None:
    """slurmctld 22.05.8 ends at its start: failed to parse tres weights."""
    _, warnings = read(f"{line}\n{PARTITION}")
    (warning,) = [one for one in warnings if "AccountingStorageTRES lacks GRES/gpu" in one]
    assert warning.startswith("slurm.conf:2")
    assert not [one for one in read(f"AccountingStorageTRES=gres/gpu\n{line}\n{PARTITION}")[1] if "lacks" in one]
