"""The configuration of a private run: what is kept, replaced, left out and refused."""

from pathlib import Path

import pytest

from pipistrelle.protocol.base.errors import InputError
from pipistrelle.runs.recorder.configuration import private_configuration
from pipistrelle.runs.slurm.files import read_slurm_files

CONF = """ClusterName=centre   # a comment
SlurmctldHost=head1(10.1.2.3)
AuthType=auth/munge
AuthInfo=socket=/run/secret.sock
JobCompPass=hunter2
Prolog=/etc/slurm/prolog.sh
SchedulerParameters=bf_interval=60,\\
bf_continue
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
Include nodes.conf
PartitionName=batch Nodes=ALL Default=YES AllowGroups=staff MaxTime=60
"""
NODES = """NodeName=DEFAULT CPUs=8 RealMemory=16000
NodeName=n[01-03] NodeAddr=10.1.2.[1-3] State=DOWN Reason="bad disk"
NodeName=g1 Gres=gpu:2 Port=7000
"""
GRES = "AutoDetect=nvml\nNodeName=g1 Name=gpu File=/dev/nvidia[0-1]\n"


@pytest.fixture
def centre(tmp_path: Path) -> Path:
    """Return the folder of a centre's configuration."""
    for name, text in (("slurm.conf", CONF), ("nodes.conf", NODES), ("gres.conf", GRES)):
        (tmp_path / name).write_text(text)
    return tmp_path


def test_scheduling_keys_are_kept_and_all_others_are_listed(centre: Path) -> None:
    """No address, password, script or state of a node gets into the private run."""
    made = private_configuration(centre, 10)
    conf = made.files["slurm.conf"]
    for kept in ("bf_interval=60,bf_continue\n", "GresTypes=gpu", "Nodes=ALL Default=YES MaxTime=60\n"):
        assert kept in conf
    for secret in ("hunter2", "munge", "secret", "10.1.2", "prolog", "staff", "bad disk", "DOWN", "head1"):
        assert secret not in conf
    assert {"AuthInfo", "JobCompPass", "Prolog", "NodeName State", "NodeName Reason", "PartitionName AllowGroups"} <= {
        one.partition(" (")[0] for one in made.changes
    }
    assert "NodeName=n[01-03] NodeHostname=localhost NodeAddr=127.0.0.1 Port=[20000-20002] State=UNKNOWN" in conf
    assert "NodeName=g1 Gres=gpu:2 NodeHostname=localhost NodeAddr=127.0.0.1 Port=20003 State=UNKNOWN" in conf
    assert made.files["gres.conf"] == "NodeName=g1 Name=gpu File=@STATE@/dev/nvidia0,@STATE@/dev/nvidia1\n"
    assert made.devices == ["dev/nvidia0", "dev/nvidia1"]


def test_recorded_configuration_is_a_platform(centre: Path, tmp_path: Path) -> None:
    """The files of the private run describe the same machine."""
    made, folder = private_configuration(centre, 10), tmp_path / "made"
    folder.mkdir()
    for name, text in made.files.items():
        (folder / name).write_text(text)
    own, theirs = (read_slurm_files(str(one / "slurm.conf")) for one in (folder, centre))
    assert own.nodes == theirs.nodes
    assert [pool.resources for pool in own.platform.pools] == [pool.resources for pool in theirs.platform.pools]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("AccountingStorageType=accounting_storage/slurmdbd", r"needs .* associations and QOS.*--accounting FILE"),
        ("AccountingStorageEnforce=limits", r"needs .* associations and QOS.*--accounting FILE"),
        ("NodeName=x[001-300] CPUs=1", "too large to record: expected at most 200 nodes, found 304"),
    ],
)
def test_what_cannot_be_recorded_is_refused(centre: Path, line: str, words: str) -> None:
    """The error says what the configuration needs."""
    (centre / "slurm.conf").write_text(f"{CONF}{line}\n")
    with pytest.raises(InputError, match=words):
        private_configuration(centre, 10)


def test_associations_are_recorded_with_what_needs_them(centre: Path, tmp_path: Path) -> None:
    """slurmctld uses a copy of the associations, and partitions keep their accounts and QOS."""
    more = (
        "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=db1\nAccountingStoragePass=hunter3\n"
    )
    limits = "AccountingStorageEnforce=limits\nAccountingStorageTRES=gres/gpu\n"
    (centre / "slurm.conf").write_text(
        f"{CONF.replace('AllowGroups=staff', 'AllowAccounts=bio QOS=day')}{more}{limits}"
    )
    (tmp_path / "accounts.txt").write_text("add account bio\nadd qos day\nadd user ada Account=bio\n")
    made = private_configuration(centre, 10, [str(tmp_path / "accounts.txt")])
    conf = made.files["slurm.conf"]
    assert "AllowAccounts=bio QOS=day" in conf
    assert "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=localhost\n" in conf
    assert "AccountingStorageEnforce=limits\n" in conf
    assert "AccountingStorageTRES=gres/gpu\n" in conf
    assert "db1" not in conf
    assert "hunter3" not in conf
    assert made.accounting is not None
    assert made.files["accounting-1.txt"].startswith("add account bio")


def test_folder_without_slurm_conf_is_an_error(tmp_path: Path) -> None:
    """The error names the folder."""
    with pytest.raises(InputError, match=r"the folder has no slurm\.conf"):
        private_configuration(tmp_path, 10)
