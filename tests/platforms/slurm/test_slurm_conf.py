"""slurm.conf: lines, keys, defaults, included files, and what happens to each key."""

import pytest

from pipistrelle.platforms.errors import PlatformError
from pipistrelle.platforms.slurm.checks import doubtful_settings
from pipistrelle.platforms.slurm.conf import SlurmConfigError, is_slurm_conf, read_slurm_conf
from pipistrelle.platforms.slurm.gres import read_gres, read_gres_conf, with_types
from pipistrelle.platforms.slurm.keys import KEYS, KeySupport
from pipistrelle.platforms.slurm.machine import slurm_platform
from pipistrelle.platforms.slurm.nodes import nodes_of
from pipistrelle.platforms.slurm.values import SlurmValueError, read_time, read_tres

NODES = "NodeName=n[1-4] CPUs=8 RealMemory=32000\nPartitionName=batch Nodes=ALL Default=YES\n"


def test_comments_continuations_quotes_and_case():
    """Keys are case-insensitive, a backslash joins lines, and `#` begins a comment unless it is escaped."""
    conf = read_slurm_conf(
        "CLUSTERNAME=one # two\nschedulerparameters=bf_window=60,\\\nbf_continue\nMailProg=/bin/a\\#b\n"
        'NodeName=n1 Reason="not this" State=DOWN\n',
        "slurm.conf",
    )

    assert conf.text("ClusterName") == "one"
    assert conf.text("SchedulerParameters") == "bf_window=60,bf_continue"
    assert conf.entries["nodes"][0].where == "slurm.conf:5"


def test_default_lines_set_what_later_lines_leave_out():
    """A DEFAULT line adds to earlier ones, and a line's own value counts."""
    conf = read_slurm_conf(
        "NodeName=DEFAULT RealMemory=100 Weight=5\nNodeName=a\nNodeName=default Weight=7\nNodeName=b RealMemory=9\n",
        "slurm.conf",
    )

    assert [(node.name, node.real_memory, node.weight) for node in nodes_of(conf)] == [("a", 100, 5), ("b", 9, 7)]


@pytest.mark.parametrize(
    ("text", "cpus", "cores"),
    [
        ("CPUs=16", 16, 16),
        ("Sockets=2 CoresPerSocket=6", 12, 12),
        ("Sockets=2 CoresPerSocket=8 ThreadsPerCore=2", 32, 16),
        ("CPUs=16 Sockets=2 CoresPerSocket=8 ThreadsPerCore=2", 16, 16),
        ("CPUs=32 CoresPerSocket=8 ThreadsPerCore=2", 32, 16),
        ("CPUs=7 Sockets=2 CoresPerSocket=8", 16, 16),
        ("Boards=2 SocketsPerBoard=1 CoresPerSocket=4", 8, 8),
        ("", 1, 1),
    ],
)
def test_cpus_are_inferred_as_slurm_does(text, cpus, cores):
    """From sockets, cores and threads; a number that matches nothing is replaced."""
    (node,) = nodes_of(read_slurm_conf(f"NodeName=n {text}", "slurm.conf"))

    assert (node.cpus, node.cores) == (cpus, cores)


def test_unknown_keys_get_a_suggestion_and_others_their_reason():
    """Each key is in the findings, with its line."""
    conf = read_slurm_conf("PriorityWieghtAge=5\nEpilog=/x\nMailProg=/y\n" + NODES, "slurm.conf")
    found = {one.key: (one.where, one.support) for one in conf.findings}

    assert found["PriorityWieghtAge"] == ("slurm.conf:1", None)
    assert found["Epilog"] == ("slurm.conf:2", KeySupport.WARNED)
    assert found["MailProg"] == ("slurm.conf:3", KeySupport.IDLE)
    assert "PriorityWeightAge" in next(iter(conf.doubtful())).why


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ClusterName", "this is no KEY=VALUE"),
        ("A=b, c", "this is no KEY=VALUE"),
        ("DefMemPerCPU=2G", "slurm.conf:1: the value of DefMemPerCPU is wrong: expected megabytes"),
        ("PriorityMaxAge=soon", "the value of PriorityMaxAge is wrong"),
        ("SelectType=select/cray_aries", "expected one of select/linear"),
        ("Include /nowhere", "cannot include others"),
        ("# nothing", "has no settings"),
        ("A=\0", "binary"),
        ("NodeName+=n2", "is not supported"),
    ],
)
def test_a_wrong_line_is_one_message(text, message):
    """File, line, what is expected and what is there."""
    with pytest.raises(SlurmConfigError, match=message):
        read_slurm_conf(text, "slurm.conf")


@pytest.mark.parametrize(
    ("text", "where", "warning"),
    [
        ("PartitionName=p Nodes=n1 MinNodes=3 MaxNodes=2", 4, "MinNodes: it is above MaxNodes (2)"),
        ("PartitionName=p Nodes=n1 MaxTime=10 DefaultTime=20", 4, "DefaultTime: it is above MaxTime"),
        ("PartitionName=p Nodes=n1 AllowQos=a DenyQos=b", 4, "DenyQos: Slurm ignores it, because AllowQos is set"),
        ("PartitionName=p Nodes=n1 DefMemPerCPU=1 DefMemPerNode=2", 4, "because DefMemPerNode is set"),
        ("PartitionName=p", 4, "Nodes: partition p has no nodes"),
        ("PartitionName=p Nodes=n1 Default=YES", 3, "Default: partition p is the default, because it comes later"),
        ("NodeName=x CPUs=0", 4, "CPUs: 0 is not valid: Slurm reads it as 1"),
        ("NodeName=x CPUs=6 Sockets=2 CoresPerSocket=4", 4, "Slurm reads it as 8"),
        ("NodeName=x RealMemory=10 MemSpecLimit=10", 4, "MemSpecLimit: it is not below RealMemory"),
        ("NodeName=x CPUs=4 CoreSpecCount=4", 4, "CoreSpecCount: the node does not have more cores"),
        ("NodeName=x Gres=gpu:1", 4, "Gres: GresTypes does not name gpu"),
        ("NodeSet=s Nodes=z[1-2]", 4, "NodeSet: slurm.conf does not have these nodes: z[1-2]"),
        ("NodeSet=s Feature=no", 4, "NodeSet: the set has no nodes"),
        ("SelectType=select/cons_tres", 4, "SelectTypeParameters: they are not set"),
    ],
)
def test_what_slurm_only_warns_about_is_a_warning_with_its_line(text, where, warning):
    """Slurm 22.05.8 accepts these lines, and changes or ignores the value."""
    head = "SelectType=select/linear\n" + NODES
    conf = read_slurm_conf(head + text, "slurm.conf")
    (found,) = doubtful_settings(conf, nodes_of(conf))

    assert f"slurm.conf:{where}: " in str(found)
    assert warning in str(found)


def test_a_plain_file_gives_no_warning_except_about_an_unset_select_type():
    """Slurm 22.05 gives whole nodes if SelectType is not set; gres.conf may name nodes of other clusters."""
    conf = read_slurm_conf(NODES, "slurm.conf")
    lines, _ = read_gres_conf("NodeName=z1 Name=gpu Count=1", "gres.conf")

    assert [one.key for one in doubtful_settings(conf, nodes_of(conf))] == ["SelectType"]
    assert "z1" in doubtful_settings(conf, nodes_of(conf), lines)[-1].why


def test_included_files_are_read_in_place_and_circles_refused():
    """Errors name the included file and its line; a file cannot include itself, or 20 levels."""
    files = {"a": "KillWait=many", "b": "Include b", **{f"f{n}": f"Include f{n + 1}" for n in range(20)}}

    def fetch(path: str, by: str) -> tuple[str, str]:
        return path, files[path]

    for name, message in (("a", "a:1: the value"), ("b", "includes itself"), ("f0", "too deep")):
        with pytest.raises(SlurmConfigError, match=message):
            read_slurm_conf(f"Include {name}", "slurm.conf", fetch)


def test_nodes_are_split_so_that_partitions_are_unions_of_pools():
    """Overlapping partitions divide a line of nodes; a partition of all nodes names no pools."""
    conf = read_slurm_conf(
        "SelectType=select/linear\nNodeName=n[1-4] CPUs=8 RealMemory=100 Feature=ib,new\nNodeSet=odd Nodes=n1,n3\n"
        "PartitionName=all Nodes=ALL MaxTime=60\nPartitionName=some Nodes=odd MaxNodes=2 PriorityTier=9\n",
        "slurm.conf",
    )
    platform = slurm_platform(conf)

    assert [(pool.name, pool.nodes, pool.names) for pool in platform.pools] == [
        ("n1-3", 2, "n1,n3"),
        ("n2-4", 2, "n2,n4"),
    ]
    assert {one.name: one.pools for one in platform.classes}["all"] == ()
    assert platform.classes[0].max_walltime == 3600.0
    assert len(platform.classes[1].pools) == 1
    assert platform.classes[1].max_nodes_per_job == 2
    assert platform.pools[0].properties["features"] == "ib new"
    assert not platform.info.pools[0].resources


def test_shared_nodes_have_cpus_memory_gpus_and_weights():
    """With cons_tres and memory; reserved cores and memory are taken off."""
    conf = read_slurm_conf(
        "SelectType=select/cons_tres\nLicenses=matlab:20,x\n"
        "NodeName=g1 CPUs=8 RealMemory=1000 MemSpecLimit=100 CoreSpecCount=2 Gres=gpu:a100:4,nvme:2 Weight=9\n"
        "PartitionName=gpu Nodes=g1\n",
        "slurm.conf",
    )
    platform = slurm_platform(conf)
    has = platform.info.pools[0].resources

    assert has is not None
    assert has.amounts == {"cores": 6000, "memory": 900, "nvme": 2}
    assert (has.gpus, has.gpu_model, platform.pools[0].weight) == (4, "a100", 9)
    assert platform.licenses == {"matlab": 20, "x": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("NodeName=a\nNodeName=a\n", "named twice"),
        ("NodeName=ALL\n", "reserved word"),
        ("NodeName=a\nPartitionName=p Nodes=b\n", "there is no node 'b'"),
        ("NodeName=a Gres=gpu:1:2:3\n", "generic resources are malformed"),
        ("ClusterName=x\n", "describes no node"),
        ("NodeName=a State=FUTURE\n", "describes no node"),
        ("NodeName=a RealMemory=99999999999999\n", "out of range"),
    ],
)
def test_a_machine_that_cannot_be_is_one_message(text, message):
    """The line of the node or partition is in the message."""
    with pytest.raises(PlatformError, match=message):
        slurm_platform(read_slurm_conf(text, "slurm.conf"))


def test_gres_conf_gives_types_and_counts_by_files():
    """A number without type in slurm.conf gets the types that gres.conf adds up to."""
    lines, findings = read_gres_conf(
        "AutoDetect=off\nNodeName=g[1-2] Name=gpu Type=a100 File=/dev/nvidia[0-1]\n"
        "NodeName=g[1-2] Name=gpu Type=v100 Count=2 Cores=0-3\nName=gpu Typo=x\n",
        "gres.conf",
    )

    assert [(line.type, line.count, sorted(line.nodes or ())) for line in lines][:2] == [
        ("a100", 2, ["g1", "g2"]),
        ("v100", 2, ["g1", "g2"]),
    ]
    assert with_types({"gpu": 4}, "g1", lines) == {"gpu:a100": 2, "gpu:v100": 2}
    assert with_types({"gpu": 4}, "h1", lines) == {"gpu": 4}
    assert [one.key for one in findings if one.support is None] == ["Typo"]
    assert read_gres("gpu:a100:4(S:0-1),bw:1K", "x") == {"gpu:a100": 4, "bw": 1024}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 5400.0), ("1:30", 90.0), ("01:00:00", 3600.0), ("2-12", 216000.0), ("1-0:30", 88200.0), ("7-0", 604800.0)],
)
def test_times_are_read_as_slurm_does(text, seconds):
    """A number alone counts minutes, with days the next number is hours."""
    assert read_time(text) == seconds
    assert read_time("UNLIMITED") == float("inf")


def test_tres_are_read_with_units():
    """Memory is in MiB; weights of memory are per MiB."""
    assert read_tres("cpu=4,Mem=2G,gres/gpu:a100=1,node=-1") == {"cpu": 4.0, "mem": 2048.0, "gres/gpu:a100": 1.0}
    assert read_tres("CPU=1.0,Mem=0.5G", memory=False) == {"cpu": 1.0, "mem": 0.5 / 1024}
    with pytest.raises(SlurmValueError):
        read_tres("cpu")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("# x\nClusterName=a\n", True),
        ("nodename=n1 CPUs=2", True),
        ("include nodes.conf", True),
        ("name = 'platform'\n[[pools]]", False),
        ("SwitchName=s1 Nodes=n1", False),
        ("1 0 -1 100", False),
        ("JobID|State", False),
    ],
)
def test_a_slurm_conf_is_recognised_by_its_first_key(text, found):
    """Other formats are not taken for one."""
    assert is_slurm_conf(text) is found


def test_every_key_has_one_fate_and_a_reason():
    """The table has no key twice, and honoured keys have a kind."""
    for section in KEYS.values():
        for key in section.values():
            assert key.meaning
            assert (key.support is KeySupport.HONOURED) == bool(key.kind)
