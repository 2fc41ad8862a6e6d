"""Settings of the scheduler slurm from its files: accounting, parameters, partitions, reservations, topology."""

import csv
import re
from math import inf

import pytest
from msgspec.structs import fields

from pipistrelle.platforms.slurm.conf import SlurmConfigError, read_slurm_conf
from pipistrelle.platforms.slurm.keys import KEYS, KeySupport
from pipistrelle.protocol.events import JobDescription
from pipistrelle.protocol.resources.request import Request
from pipistrelle.schedulers.slurm.config.accounts import AssociationSettings, QosSettings
from pipistrelle.schedulers.slurm.config.parameters import SchedulerParameters
from pipistrelle.schedulers.slurm.files.accounting import is_accounting, read_accounting
from pipistrelle.schedulers.slurm.files.config import FilesBeside, slurm_config
from pipistrelle.schedulers.slurm.files.limits import NAMES
from pipistrelle.schedulers.slurm.files.overrides import overridden
from pipistrelle.schedulers.slurm.files.reservations import read_reservations
from pipistrelle.schedulers.slurm.files.submission import submission_of
from pipistrelle.schedulers.slurm.files.topology import read_topology
from pipistrelle.traces.load import load
from pipistrelle.traces.slurm.options import options_of

MACHINE = "NodeName=n[1-4] CPUs=8 RealMemory=32000\n"
PARTITION = "PartitionName=batch Nodes=ALL Default=YES\n"
DUMP = """# a dump
Cluster - 'micro':Fairshare=1:QOS='normal,high'
Parent - 'root'
User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1
Account - 'bio':Description='some: text':Organization='x':Fairshare=20:GrpTRES=cpu=10,mem=2000:MaxWallDurationPerJob=60
Parent - 'bio'
User - 'u1':DefaultAccount='bio':Fairshare=parent:MaxSubmitJobs=9:DefaultQOS='normal':QOS=',normal'
"""


def config_of(text: str, beside: FilesBeside | None = None):
    """Return the settings of a slurm.conf."""
    return slurm_config(read_slurm_conf(MACHINE + text, "slurm.conf"), beside)[0]


def test_a_dump_is_a_tree_of_accounts_with_limits():
    """Quoted values may contain colons; `Fairshare=parent` is infinite, and root is in the tree."""
    found = read_accounting([("dump", DUMP)])
    root, _, bio, u1 = found.associations

    assert root.qos == ("normal", "high")
    assert bio == AssociationSettings(
        account="bio", parent="root", shares=20.0, grp_tres={"cpu": 10.0, "mem": 2000.0}, max_wall_pj=3600.0
    )
    assert u1 == AssociationSettings(
        account="bio",
        user="u1",
        shares=inf,
        is_default=True,
        max_submit_jobs=9,
        default_qos="normal",
        qos=("normal",),
    )
    assert [one.name for one in found.qos] == ["normal", "high"]
    doubtful = [one.why for one in found.findings if one.support is KeySupport.WARNED]
    assert doubtful[0].startswith("no file describes the QOS")


def test_tables_of_sacctmgr_are_read_by_their_headers():
    """Columns in any order; a row of another cluster does not count."""
    found = read_accounting(
        [
            (
                "assoc",
                "Account|User|Cluster|Share|MaxJobs|Def QOS|QOS|GrpTRES|Par Name\nroot||c|1|||||\n"
                "bio||c|20||||cpu=36|root\nbio|u1|c|2|4|high|high,normal||\nbio||other|99||||cpu=1|root\n",
            ),
            (
                "qos",
                "Name|Priority|GraceTime|Preempt|PreemptMode|UsageFactor|MaxTRESPU|MaxWall|Flags\n"
                "normal|10|00:00:00||cluster|1.000000||1-00:00:00|\nhigh|99|00:02:00|low|requeue|2|cpu=16||DenyOnLimit\nlow||||||||\n",
            ),
        ],
        "c",
    )
    by_name = {(one.account, one.user): one for one in found.associations}

    assert by_name["bio", ""].grp_tres == {"cpu": 36.0}
    assert by_name["bio", ""].parent == "root"
    assert by_name["bio", "u1"].max_jobs == 4
    assert by_name["bio", "u1"].default_qos == "high"
    assert found.qos[0] == QosSettings(name="normal", priority=10, max_wall_pj=86400.0)
    assert found.qos[1] == QosSettings(
        name="high",
        priority=99,
        grace_time=120.0,
        preempt=("low",),
        preempt_mode="REQUEUE",
        usage_factor=2.0,
        max_tres_pu={"cpu": 16.0},
        flags=frozenset({"DenyOnLimit"}),
    )


def test_commands_of_sacctmgr_build_the_same_tree():
    """With and without a shell's prefix; lists of names, lists of QOS to add to, and limits that are removed."""
    found = read_accounting(
        [
            (
                "script",
                "$s add cluster c Fairshare=1\nsacctmgr -i add qos low,high Priority=5\n"
                "add account name=bio,chem Fairshare=20\n"
                "add user u1,u2 Account=bio QOS=normal,low DefaultQOS=low\nmodify user u1 set QOS+=high Fairshare=3\n"
                "modify account where name=bio set GrpTRES=cpu=5,node=2\nmodify account bio set GrpTRES=cpu=-1\n"
                "modify user set MaxJobs=7\nlist associations\n",
            )
        ]
    )
    by_name = {(one.account, one.user): one for one in found.associations}

    assert by_name["bio", "u1"].qos == ("normal", "low", "high")
    assert by_name["bio", "u1"].shares == 3.0
    assert by_name["bio", "u2"].max_jobs == 7
    assert by_name["bio", ""].grp_tres == {"node": 2.0}
    assert {one.name: one.priority for one in found.qos} == {"normal": 0, "low": 5, "high": 5}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Cluster - 'c':Fairshare=many\n", "f:1: the value of Fairshare is wrong"),
        ("Cluster - 'c'\nsomething\n", "f:2: this is no line of a dump"),
        ("Account|User|Share\nbio|u1\n", "f:2: a row does not match"),
        ("a|b\n", "the table has no header"),
        ("hello\n", "is not of sacctmgr"),
        ("# only a comment\n", "is empty"),
        ("add user u1\n", "has no account"),
        ("modify user u1 Fairshare=3\n", "lacks 'set'"),
        ("add federation f\nadd account a\n", "is not supported"),
        ("Name|Priority|MaxTRESPU\nhigh|1|lots\n", "expected TRES=NUMBER"),
        ("Cluster - 'c'\nParent - 'bi'\nUser - 'u'\n", "f:3: there is no account 'bi', of user 'u'"),
        ("Cluster - 'c'\nAccount - 'a:Fairshare=1\n", "f:2: this is no line of a dump"),
        ("add account bio parent=scince\nadd account science\n", "f:1: there is no account 'scince'.*mean 'science'"),
        ("add account a parent=b\nadd account b parent=c\nadd account c parent=a\n", "f:.: .* is below itself"),
        ("add user u account=a\n", "f:1: there is no account 'a', of user 'u'"),
        ("add qos high preempt=lo\nadd qos low\n", "f:1: QOS 'high' preempts 'lo'.*Did you mean 'low'"),
        ("add qos a preemptmode=sleep\n", "f:1: .*expected cluster, CANCEL, REQUEUE or OFF"),
        ("add qos a priority=4294967296\n", "f:1: the value of priority is wrong"),
        ("add account\n", "f:1: add account has no name"),
        ("add account a\nmodify account a set\n", "f:2: modify sets nothing"),
        ("add account a\nmodify account b set fairshare=3\n", "f:2: there is no account 'b'"),
        ("add account a\nmodify user u set fairshare=3\n", "f:2: there is no user 'u'"),
        ("add account a\nmodify qos q set priority=3\n", "f:2: there is no qos 'q'"),
        ("ad account a\nadd account b\n", "f:1: the command is unknown.*found 'ad'"),
        ("add account a\ndelete account b\n", "f:2: there is no account 'b'"),
        ("add account a\ndelete account where cluster=c\n", "f:2: this deletes no single account"),
    ],
)
def test_wrong_accounting_is_one_message(text, message):
    """File, line, what is expected."""
    with pytest.raises(SlurmConfigError, match=message):
        read_accounting([("f", text)])


def test_limits_are_in_the_order_in_which_slurm_tests_them():
    """The first exceeded limit is the reason: cpu, mem and node before generic resources."""
    text = "add qos a MaxTRESPerJob=gres/gpu=1,node=2,cpu=3\nmodify qos a set MaxCPUs=-1 MaxTRES=mem=5\n"
    (_, qos) = read_accounting([("f", text)]).qos

    assert list(qos.max_tres_pj.items()) == [("mem", 5.0), ("node", 2.0), ("gres/gpu", 1.0)]


def test_deleted_accounts_users_and_qos_are_gone():
    """An account is deleted with its users and the accounts below it; a QOS leaves the lists that name it."""
    found = read_accounting(
        [
            (
                "script",
                "add account a\nadd account b parent=a\nadd account c\n"
                "add qos low,lower\nadd qos high preempt=low,lower\n"
                "add user u1 account=b\nadd user u1,u2 account=c qos=low,high\n"
                "delete account a\nremove user where name=u2 account=c\nsacctmgr -i delete qos low\n",
            )
        ]
    )

    assert [(one.account, one.user) for one in found.associations][2:] == [("c", ""), ("c", "u1")]
    assert found.associations[-1].qos == ("high",)
    assert [(one.name, one.preempt) for one in found.qos] == [("normal", ()), ("lower", ()), ("high", ("lower",))]


def test_unknown_options_of_accounts_get_a_suggestion():
    """They are findings, not errors, until a run refuses them."""
    found = read_accounting([("f", "Cluster - 'c'\nAccount - 'a':Fairshar=1:Description='d'\n")])

    assert [(one.key, one.support) for one in found.findings] == [("Fairshar", None), ("Description", KeySupport.IDLE)]
    assert "fairshare" in found.findings[0].why


def test_the_names_of_limits_are_fields_of_the_settings():
    """Each name in the table sets a field that exists."""
    known = {
        "association": {one.name for one in fields(AssociationSettings)},
        "qos": {one.name for one in fields(QosSettings)},
    }

    for kind, names in NAMES.items():
        assert {name.field for name in names.values()} <= known[kind]


def test_accounting_is_told_from_other_files():
    """sacct's output has a column JobID, and a slurm.conf has KEY=VALUE."""
    assert is_accounting(DUMP)
    assert is_accounting("Name|Priority|Flags\n")
    assert is_accounting("#!/bin/sh\nsacctmgr -i add account x\n")
    assert not is_accounting("JobID|User|Account\n")
    assert not is_accounting("ClusterName=x\n")


def test_parameters_have_slurms_defaults_and_values():
    """Priorities, selection, preemption, enforcement and the parameters of the scheduler."""
    plain = config_of(PARTITION)
    told = config_of(
        "SchedulerParameters=BF_Interval=45,bf_busy_nodes,default_queue_depth=9,sched_interval=-1,bf_max_time=3,max_rpc_cnt=9\n"
        "PriorityType=priority/multifactor\nPriorityDecayHalfLife=01:00:00\nPriorityCalcPeriod=1\nPriorityMaxAge=0-2\n"
        "PriorityWeightTRES=CPU=0,Mem=.03,GRES/gpu=30000\nPriorityFlags=NO_NORMAL_TRES\nPreemptType=preempt/qos\n"
        "PreemptMode=REQUEUE\nSelectType=select/cons_tres\nSelectTypeParameters=cr_core_memory\nDefMemPerCPU=100\nEnforcePartLimits=YES\nJobRequeue=0\n"
        "Licenses=a:2\n" + PARTITION
    )

    assert (plain.priority.type, plain.scheduler_parameters, plain.select.type) == (
        "priority/basic",
        SchedulerParameters(),
        "select/linear",
    )
    assert (told.scheduler_parameters.bf_interval, told.scheduler_parameters.bf_busy_nodes) == (45.0, True)
    assert (told.scheduler_parameters.sched_interval, told.scheduler_parameters.default_queue_depth) == (None, 9)
    assert (told.priority.decay_half_life, told.priority.calc_period, told.priority.max_age) == (3600.0, 60.0, 7200.0)
    assert told.priority.weight_tres == {"cpu": 0.0, "mem": 0.03, "gres/gpu": 30000.0}
    assert told.select.parameters == {"CR_Core_Memory"}
    assert (told.preempt.type, told.preempt.mode, told.enforce_part_limits) == ("preempt/qos", ("REQUEUE",), "ALL")
    assert (told.select.def_mem_per_cpu, told.job_requeue, told.licenses) == (100, False, {"a": 2})


def test_limits_are_enforced_only_with_accounting():
    """Without files of accounting no job could run; `limits` implies `associations`."""
    text = "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageEnforce=limits,qos\n" + PARTITION
    people = read_accounting([("dump", DUMP)])

    assert config_of(text).accounting_storage_enforce == frozenset()
    assert config_of(text, FilesBeside(accounting=people)).accounting_storage_enforce == {
        "associations",
        "limits",
        "qos",
    }


def test_partitions_have_their_limits_lists_and_defaults():
    """`Priority` sets tier and factor; ALL is no list; times are in seconds."""
    config = config_of(
        "PartitionName=DEFAULT MaxTime=60 DefaultTime=30\n"
        "PartitionName=a Nodes=n[1-2] Default=YES Priority=7 AllowAccounts=x,y AllowQos=ALL DenyAccounts=z "
        "OverSubscribe=YES:3\n"
        "PartitionName=b Nodes=ALL MaxTime=INFINITE PriorityTier=2 OverSubscribe=EXCLUSIVE State=DOWN MaxNodes=3 "
        "TRESBillingWeights=CPU=1,Mem=1G GraceTime=120 QOS=Big\n"
    )
    a, b = config.partitions

    assert (a.nodes, a.priority_tier, a.priority_job_factor) == (("n1", "n2"), 7, 7)
    assert (a.allow_accounts, a.allow_qos, a.deny_accounts) == (("x", "y"), None, ())  # as Slurm
    assert (a.over_subscribe, a.max_share, a.max_time, a.default_time) == ("YES", 3, 3600.0, 1800.0)
    assert (b.max_time, b.priority_tier, b.state, b.max_nodes, b.qos) == (inf, 2, "DOWN", 3, "big")
    assert b.tres_billing_weights == {"cpu": 1.0, "mem": 1 / 1024}
    assert b.grace_time == 120.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("PreemptMode=SUSPEND,GANG\n", "PreemptMode SUSPEND is not supported. Suspended jobs are not simulated"),
        ("SelectTypeParameters=CR_Socket\n", "CR_Socket is not supported"),
        ("SelectTypeParameters=CR_Cor\n", "Did you mean 'CR_Core'"),
        ("PriorityFlags=FAST\n", "PriorityFlags has an unknown value"),
        ("SchedulerParameters=bf_window=long\n", "SchedulerParameters bf_window is wrong"),
        ("PartitionName=x Nodes=n1 OverSubscribe=SOME\n", "OverSubscribe is wrong"),
        ("PriorityWeightTRES=cpu\n", "PriorityWeightTRES is wrong"),
        ("AccountingStorageEnforce=limit\n", "Did you mean 'limits'"),
        ("PreemptMode=REQUEUE\n", "expected preempt/none with OFF, .*found preempt/none with REQUEUE"),
        ("PreemptType=preempt/qos\n", "found preempt/qos with OFF"),
        ("PriorityCalcPeriod=0\n", "PriorityCalcPeriod is wrong: expected at least 1 minute"),
        ("PriorityWeightAge=4294967296\n", "expected a whole number from 0 to 4,294,967,295, found '4294967296'"),
        ("PriorityWeightTRES=gpu=3\n", "PriorityWeightTRES is wrong: expected .*gres/NAME"),
        ("PartitionName=x Nodes=n1 PriorityTier=65536\n", "PriorityTier is wrong: expected .*65,535"),
        ("PartitionName=x Nodes=n1 TRESBillingWeights=foo=1\n", "TRESBillingWeights is wrong"),
        ("PartitionName=batch Nodes=n1\n", "partition 'batch' is described twice: found slurm.conf:2"),
        ("NodeName=x State=SLEEPY\n", "State is wrong: expected UNKNOWN, .* found 'SLEEPY'"),
        ("DownNodes=n1 State=SLEEPY\n", "State is wrong"),
        ("SchedulerParameters=bf_resolution=7200\n", "bf_resolution is wrong: expected .*from 1 to 3,600"),
    ],
)
def test_a_value_that_is_not_supported_is_refused_with_a_reason(text, message):
    """The line is in the message, and what to use instead."""
    with pytest.raises(SlurmConfigError, match=message) as caught:
        config_of(text + PARTITION)
    assert "slurm.conf:2" in str(caught.value)


def test_a_partition_needs_its_qos_and_a_machine_a_partition():
    """A QOS that accounting does not describe would be no limit at all."""
    people = read_accounting([("dump", DUMP)])
    with pytest.raises(SlurmConfigError, match="QOS 'big' of partition batch"):
        config_of("PartitionName=batch Nodes=ALL QOS=big\n", FilesBeside(accounting=people))
    with pytest.raises(SlurmConfigError, match="no partition"):
        config_of("")


def test_keys_can_be_changed_one_by_one():
    """Parameters, parameters of the scheduler, partitions, and objects of accounting as commands."""
    conf = read_slurm_conf(MACHINE + "SchedulerParameters=bf_window=60,bf_busy_nodes\n" + PARTITION, "slurm.conf")
    changed = overridden(
        conf,
        {
            "PriorityWeightAge": "7",
            "bf_window": "120",
            "SchedulerParameters.kill_invalid_depend": "",
            "partition.batch.MaxTime": "30",
            "qos.high.MaxTRESPU": "cpu=4",
            "simulation.answer_delay": "1.5",
        },
    )
    config = changed.timed(slurm_config(changed.conf)[0])

    assert config.priority.weight_age == 7
    assert (config.scheduler_parameters.bf_window, config.scheduler_parameters.bf_busy_nodes) == (120, True)
    assert config.scheduler_parameters.kill_invalid_depend
    assert config.partitions[0].max_time == 1800.0
    assert config.answers.delay(6) == 1.5 + 2 * 0.08
    people = read_accounting([("qos", "Name|Priority\nhigh|3\n"), *changed.commands])
    assert people.qos[1].max_tres_pu == {"cpu": 4.0}
    assert conf.value("PriorityWeightAge") is None


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("PriorityWeightAgee", "1", "Did you mean 'PriorityWeightAge'"),
        ("partition.batsh.MaxTime", "1", "Did you mean 'batch'"),
        ("partition.batch.MaxTim", "1", "Did you mean 'MaxTime'"),
        ("partition.batch.MaxTime", "x", "--slurm partition.batch.MaxTime: the value of MaxTime is wrong"),
        ("MailProg", "x", "has no effect"),
        ("bf_window", "x", "the value of bf_window is wrong"),
        ("simulation.start", "-1", "a time of the simulation is wrong"),
    ],
)
def test_a_wrong_change_is_one_message(key, value, message):
    """The option and the key are in the message."""
    with pytest.raises(SlurmConfigError, match=message):
        overridden(read_slurm_conf(MACHINE + PARTITION, "slurm.conf"), {key: value})


def test_reservations_are_commands_of_scontrol():
    """With times of their own, as events, relative and with dates; other events are ignored."""
    found = read_reservations(
        't,command\n20,"scontrol create reservation reservationname=m1 starttime=2026-01-05T00:35:00 duration=00:20:00 '
        'users=root flags=maint,ignore_jobs nodes=n[1-2]"\n'
        "-dt 50 -e scontrol | create reservation=m2 starttime=now+1hour endtime=now+2hours accounts=bio nodecnt=2 "
        "partition=batch\n"
        "-dt 60 -e submit_batch_job | -n 1 x\ncreate res starttime=now duration=UNLIMITED nodes=ALL licenses=a:2\n",
        "f",
        lambda text: 2100.0 if text == "2026-01-05T00:35:00" else None,
        {"n1": 0, "n2": 1, "n3": 2},
    )
    m1, m2, m3 = found

    assert (m1.name, m1.start, m1.end, m1.announced, m1.nodes) == ("m1", 2100.0, 3300.0, 20.0, ("n1", "n2"))
    assert (m1.flags, m1.users) == (("MAINT", "IGNORE_JOBS"), ("root",))
    assert (m2.start, m2.end, m2.node_count, m2.accounts) == (3650.0, 7250.0, 2, ("bio",))
    assert (m3.start, m3.end, m3.announced, m3.nodes, m3.licenses) == (0.0, inf, -inf, ("n1", "n2", "n3"), {"a": 2})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("delete reservation m1", "this command is not supported"),
        ("create reservation nodes=n9 duration=1 starttime=now", "there is no node 'n9'"),
        ("create reservation nodes=n1 starttime=now", "has no end"),
        ("create reservation duration=5 starttime=now", "has no nodes"),
        ("create reservation nodes=n1 duration=5 starttime=2026-01-01", "cannot be read"),
        ("create reservation nodes=n1 duration=5 flags=purge_comp", "PURGE_COMP is not supported"),
        ("create reservation nodes=n1 duration=5 nods=3", "no option 'nods'"),
        ("create reservation=a nodes=n1 duration=5\ncreate reservation=a nodes=n1 duration=5", "f:2: .* twice"),
    ],
)
def test_a_wrong_reservation_is_one_message(text, message):
    """File, line, what is expected."""
    with pytest.raises(SlurmConfigError, match=message):
        read_reservations(text, "f", lambda _: None, {"n1": 0})


def test_a_long_chain_of_switches_is_read_in_time_for_its_length():
    """Each switch is checked once: by squares, these would take minutes."""
    chain = "".join(f"SwitchName=s{one} Switches=s{one + 1}\n" for one in range(2000))

    assert len(read_topology(chain + "SwitchName=s2000 Nodes=n\n", "t")[0]) == 2001
    with pytest.raises(SlurmConfigError, match="is below itself"):
        read_topology(chain + "SwitchName=s2000 Switches=s0\n", "t")


def test_topology_is_a_tree_of_known_nodes():
    """Lists of switches and nodes; circles, doubles and unknown names are refused."""
    switches, _ = read_topology(
        "SwitchName=s[1-2] Nodes=n1\nSwitchName=top Switches=s[1-2] LinkSpeed=1\n", "t", {"n1": 0}
    )

    assert [(one.name, one.nodes, one.switches) for one in switches][-1] == ("top", (), ("s1", "s2"))
    for text, message in (
        ("SwitchName=a Switches=b\nSwitchName=b Switches=a\n", "below itself"),
        ("SwitchName=a Nodes=n1\nSwitchName=a Nodes=n1\n", "described twice"),
        ("SwitchName=a Switches=z\n", "there is no switch 'z'"),
    ):
        with pytest.raises(SlurmConfigError, match=message):
            read_topology(text, "t", {"n1": 0})


def test_flags_of_a_qos_are_known_in_any_case_and_others_are_told():
    """A flag that nothing honours is a warning, and one that Slurm does not have is unknown."""
    flags = "denyonlimit,UsageFactorSafe,Nonsense,PartitionTimeLimit"
    found = read_accounting([("dump", f"add qos high Flags={flags}\nmodify qos high set Flags-=PartitionTimeLimit\n")])

    assert {"DenyOnLimit", "UsageFactorSafe", "Nonsense"} == found.qos[-1].flags
    assert [(one.key, one.support) for one in found.findings if " " in one.key] == [
        ("Flags UsageFactorSafe", KeySupport.WARNED),
        ("Flags Nonsense", None),
    ]


def test_limits_of_an_unknown_tres_and_nameless_objects_are_refused():
    """Slurm refuses them, too; here they would never hold anything."""
    with pytest.raises(SlurmConfigError, match=r"dump:1: the value of GrpTRES is wrong: expected TRES=NUMBER"):
        read_accounting([("dump", "add account a GrpTRES=nosuch=3\n")])
    with pytest.raises(SlurmConfigError, match=r"t:1: a switch has no name"):
        read_topology("Nodes=n1\n", "t", {"n1": 0})
    with pytest.raises(SlurmConfigError, match=r"slurm.conf:2: a partition has no name"):
        config_of("PartitionName= Nodes=ALL\n")


def test_nodes_of_topology_conf_that_slurm_conf_lacks_are_a_warning():
    """slurmctld, too, only logs "Invalid hostnames in switch configuration"."""
    switches, findings = read_topology("SwitchName=a Nodes=n[1-4]\n", "t", {"n1": 0, "n2": 1})

    assert switches[0].nodes == ("n1", "n2")
    (found,) = [one for one in findings if one.support is KeySupport.WARNED]
    assert str(found).startswith("t:1: Nodes: ignored")
    assert "n[3-4]" in found.why


def test_nodes_without_a_switch_are_a_warning():
    """With topology/tree no job can start there."""
    _, findings = read_topology("SwitchName=a Nodes=n1\n", "t", {"n1": 0, "m1": 1, "m2": 2})

    assert [(one.where, one.why) for one in findings if one.support is KeySupport.WARNED] == [
        ("t", "no switch has these nodes, so no job starts there: m[1-2]"),
    ]


def test_every_parameter_of_the_scheduler_that_is_honoured_is_a_setting():
    """The table of keys and the settings of the scheduler have the same names."""
    honoured = {key.name for key in KEYS["scheduler"].values() if key.support is KeySupport.HONOURED}

    assert honoured <= {one.name for one in fields(SchedulerParameters)}


def test_every_honoured_parameter_of_the_scheduler_is_used_by_its_decisions(project_root):
    """A key that no decision reads would be accepted silently."""
    folder, readers = project_root / "schedulers" / "slurm", ("config", "files")
    rooms = [path for path in folder.rglob("*.py") if path.parent.name not in readers]
    code = "\n".join(path.read_text(encoding="utf-8") for path in rooms)
    honoured = [key.name for key in KEYS["scheduler"].values() if key.support is KeySupport.HONOURED]

    assert [name for name in honoured if not re.search(rf"\b{name}\b", code)] == []


@pytest.mark.parametrize("recording", "abcdf")
def test_the_recordings_configuration_is_read_without_a_doubt(slurm22_dir, recording):
    """No key is unknown, and accounts, commands and tables agree."""
    folder = slurm22_dir / recording
    conf = read_slurm_conf((folder / "slurm.conf").read_text(), "slurm.conf")
    assert list(conf.doubtful()) == []
    assert len(slurm_config(conf)[0].nodes) == (12 if recording == "c" else 16)
    if (folder / "sacctmgr.dump").exists():
        table = read_accounting([(name, (folder / name).read_text()) for name in ("sacctmgr.dump", "qos.txt")])
        script = read_accounting([("accounts.sh", (folder / "accounts.sh").read_text())])
        limits = ("account", "user", "shares", "default_qos", "grp_tres", "max_jobs")
        told = [
            {tuple(str(getattr(one, name)) for name in limits) for one in some.associations} for some in (table, script)
        ]
        assert told[0] == told[1]
        assert sorted(table.qos, key=str) == sorted(script.qos, key=str)


def test_what_the_scheduler_does_not_support_is_a_finding():
    """Keys and flags that Slurm would honour; a value that means nothing has no effect."""
    conf = read_slurm_conf(
        MACHINE + "CompleteWait=0\nSelectTypeParameters=CR_Core,CR_Pack_Nodes,CR_ONE_TASK_PER_CORE\n"
        "SchedulerParameters=pack_serial_at_end\nPriorityFlags=no_fair_tree,DEPTH_OBLIVIOUS,INCR_ONLY\n"
        "ResvOverRun=5\n" + PARTITION,
        "slurm.conf",
    )
    findings = [*conf.findings, *slurm_config(conf)[1]]
    people = read_accounting([("qos", "Name|Priority|LimitFactor|UsageThres\nhigh|3|2.0|\n")])

    assert [one.key for one in findings if one.support is KeySupport.WARNED] == [
        "ResvOverRun",
        "SchedulerParameters pack_serial_at_end",
        "SelectTypeParameters CR_ONE_TASK_PER_CORE",
    ]
    assert [one.key for one in people.findings if one.support is KeySupport.WARNED] == ["LimitFactor"]


def job_of(job_id: str = "w0!7", options: dict[str, str] | None = None, **members):
    """Return the description of a job."""
    return JobDescription(job_id, members.pop("res", 2), options=options or {}, **members)


def test_a_submission_is_made_of_options_labels_and_times():
    """Ids of arrays, begin times, lists of nodes, limits of arrays and the job's own time limit."""
    found = submission_of(
        job_of(
            "w0!7_3",
            {
                "array": "0-7%2",
                "array-job": "7",
                "array-task": "3",
                "begin": "now+90",
                "nodes": "2-4",
                "ntasks": "8",
                "gres": "gpu:a100:2",
                "mem": "0",
                "nodelist": "n[1-2]",
                "nice": "",
                "hold": "",
                "no-requeue": "",
                "switches": "1@10",
                "exclusive": "user",
                "partition": "a,b",
            },
            walltime=60.0,
            user="u",
            queue="a",
            qos="High",
        ),
        10.0,
    )

    assert (found.number, found.array_task, found.array_limit, found.begin) == (7, 3, 2, 100.0)
    assert (found.nodes, found.max_nodes, found.tasks, found.gres) == (2, 4, 8, {"gpu:a100": 2})
    assert (found.mem_per_node, found.required, found.nice, found.hold) == (0, ("n1", "n2"), 100, True)
    assert (found.requeue, found.switches, found.kill_on_invalid) == (False, 1, None)
    assert (found.partitions, found.qos, found.exclusive) == (("a", "b"), "high", False)
    assert found.time_limit == 60.0


@pytest.mark.parametrize(
    ("options", "gpus", "per_task", "model"),
    [
        ({"gpus": "a100:4"}, 4, 0, "a100"),
        ({"gpus": "4"}, 4, 0, ""),
        ({"gpus-per-task": "v100:2", "ntasks": "2"}, 0, 2, "v100"),
        ({"gpus": "a100:1,v100:1"}, 2, 0, ""),
    ],
)
def test_the_model_of_a_jobs_gpus_is_kept(options, gpus, per_task, model):
    """Without a model, or with several, GPUs of any model do."""
    found = submission_of(job_of("w0!1", options), 0.0)

    assert (found.gpus, found.gpus_per_task, found.gpu_model) == (gpus, per_task, model)


def test_a_submission_without_options_is_made_of_its_request_or_size():
    """A log has no options of sbatch."""
    asked = Request(tasks=8, cores_per_task=2000, memory_per_core=500, gpus_per_node=1, gpu_models=("v100",))
    found = submission_of(job_of(request=asked), 0.0)

    assert (found.tasks, found.cpus_per_task, found.mem_per_cpu, found.gres) == (8, 2, 500, {"gpu:v100": 1})
    assert (submission_of(job_of(), 0.0).nodes, submission_of(job_of("w0!x"), 0.0).number) == (2, 0)


def test_a_malformed_option_names_the_job():
    """Any other scheduler of the protocol may get such options, too."""
    with pytest.raises(SlurmConfigError, match="job w0!7: an option of the job is malformed"):
        submission_of(job_of(options={"ntasks": "many"}), 0.0)


@pytest.mark.parametrize("recording", "abcdf")
def test_the_recordings_submissions_are_those_of_their_table(slurm22_dir, recording):
    """From jobs.events through the label `options` to the scheduler: equal to jobs.csv."""
    jobs = load(slurm22_dir / recording / "jobs.events")
    options = options_of(jobs) or [None] * len(jobs)
    with open(slurm22_dir / recording / "jobs.csv", newline="") as file:
        table = {row["id"]: row for row in csv.DictReader(file)}

    for at, name in enumerate(jobs.ids):
        told = table[name.partition("_")[0]]
        labels = {label: (jobs.labels.get(label) or [""] * len(jobs))[at] or None for label in ("user", "queue", "qos")}
        found = submission_of(job_of(f"w0!{name}", options[at], **labels), float(jobs.submit[at]))
        assert found.number == int(told["id"])
        assert (str(found.nodes or ""), str(found.tasks or "")) == (told["nodes"], told["tasks"])
        memory = found.mem_per_cpu if told["mem_per"] == "cpu" else found.mem_per_node
        assert str(memory or "") == told["mem"]
        assert (found.dependency, found.exclusive) == (told["after"], bool(told["exclusive"]))
        assert (found.begin or 0.0) == (found.submit + float(told["begin_s"]) if told["begin_s"] else 0.0)
