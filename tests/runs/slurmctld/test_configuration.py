"""A centre's slurm.conf is changed only where daemons would touch the machine."""

from pathlib import Path

import pytest

from pipistrelle.protocol.base.errors import InputError
from pipistrelle.runs.slurmctld.configuration import FIRST_PORT, derive

CONF = """ClusterName=centre
SlurmctldHost=head1
SlurmctldHost=head2
AuthType=auth/munge
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageTRES=gres/gpu
GresTypes=gpu
Prolog=/etc/slurm/prolog
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=45,default_queue_depth=50 MaxJobCount=5000
PriorityType=priority/multifactor
JobSubmitPlugins=lua,of_the_centre
Include nodes.conf
PartitionName=batch Nodes=ALL Default=YES MaxTime=1-0 Prolog=x
"""
NODES = """NodeName=DEFAULT CPUs=8 RealMemory=1000
NodeName=n[01-03] NodeAddr=10.0.0.[1-3] Port=17000 Weight=2
NodeName=g01 Gres=gpu:a100:4 Feature=new,big
"""


def derived(tmp_path: Path, conf: str = CONF) -> str:
    """Return the derived file; the folder of plugins has job_submit/lua only."""
    (tmp_path / "slurm.conf").write_text(conf)
    (tmp_path / "nodes.conf").write_text(NODES)
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "job_submit_lua.so").touch()
    out = tmp_path / "out"
    out.mkdir()
    nodes, remarks = derive(str(tmp_path / "slurm.conf"), out, "slurm", tmp_path / "plugins")
    assert [(one.node.name, one.port - FIRST_PORT) for one in nodes] == [("n01", 0), ("n02", 1), ("n03", 2), ("g01", 3)]
    assert [text.partition(": ")[2][:45] for text in remarks] == ["the plugin job_submit_of_the_centre is not in"]
    return (out / "slurm.conf").read_text()


def test_what_decides_is_kept(tmp_path: Path) -> None:
    """Scheduler, priority, nodes and partitions are used as they are."""
    text = derived(tmp_path)
    for line in (
        "SchedulerParameters=bf_interval=45,default_queue_depth=50 MaxJobCount=5000",
        "PriorityType=priority/multifactor",
        "AccountingStorageTRES=gres/gpu",
        "JobSubmitPlugins=lua",
        f"NodeName=n[01-03] Weight=2 NodeAddr=127.0.0.1 Port=[{FIRST_PORT}-{FIRST_PORT + 2}]",
        f"NodeName=g01 Gres=gpu:a100:4 Feature=new,big NodeAddr=127.0.0.1 Port={FIRST_PORT + 3}",
    ):
        assert line in text.splitlines()


def test_what_touches_the_machine_is_replaced(tmp_path: Path) -> None:
    """No host, no program and no database of the centre is left."""
    text = derived(tmp_path)
    for word in ("head1", "munge", "slurmdbd", "prolog", "Include", "10.0.0"):
        assert word not in text
    assert "AuthType=auth/none" in text


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("AccountingStorageEnforce=limits,qos", "AccountingStorageEnforce needs .*--accounting FILE"),
        ("PreemptType=preempt/qos", "PreemptType needs .*--accounting FILE"),
        ("PreemptType=preempt/partition_prio PreemptMode=SUSPEND,GANG", "cannot be suspended"),
    ],
)
def test_what_needs_more_daemons_is_refused(tmp_path: Path, line: str, found: str) -> None:
    """The error names the line."""
    with pytest.raises(InputError, match=rf"slurm.conf:15: .*{found}"):
        derived(tmp_path, CONF + line + "\n")


QOS = "Name|Priority|Preempt|PreemptMode|MaxTRESPU\nnormal|10||cluster|\n"


def test_accounting_that_slurmctld_cannot_have_is_refused(tmp_path: Path) -> None:
    """The error names the QOS."""
    (tmp_path / "qos.txt").write_text(f"{QOS}fast|100||cluster|gres/fpga=2\n")
    (tmp_path / "slurm.conf").write_text(CONF.replace("Include nodes.conf", NODES))
    with pytest.raises(InputError, match="QOS fast limits gres/fpga, which the cluster does not track"):
        derive(str(tmp_path / "slurm.conf"), tmp_path, "slurm", None, accounting=[str(tmp_path / "qos.txt")])
