"""Damaged files of a Slurm cluster: each is read, or refused with one message."""

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.platforms.slurm.conf import read_slurm_conf
from pipistrelle.platforms.slurm.gres import read_gres_conf
from pipistrelle.platforms.slurm.machine import slurm_platform
from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.protocol.events import JobDescription
from pipistrelle.schedulers.slurm.files.accounting import read_accounting
from pipistrelle.schedulers.slurm.files.config import slurm_config
from pipistrelle.schedulers.slurm.files.reservations import read_reservations
from pipistrelle.schedulers.slurm.files.submission import submission_of
from pipistrelle.schedulers.slurm.files.topology import read_topology
from pipistrelle.traces.slurm.events import EventsLog
from pipistrelle.traces.slurm.options import options_of

CONF = (
    "ClusterName=c\nSchedulerParameters=bf_window=60,bf_continue\nPriorityWeightTRES=CPU=1,Mem=2G\nLicenses=a:2,b\n"
    "PriorityMaxAge=1-0\nSelectTypeParameters=CR_Core_Memory\nNodeName=DEFAULT RealMemory=100\n"
    "NodeName=n[01-04,07] CPUs=8 Gres=gpu:a100:2,nvme:1 Feature=a,b Weight=3\nNodeSet=s Feature=a\n"
    "DownNodes=n01 State=DOWN\n"
    "PartitionName=p Nodes=s MaxTime=1-0 Priority=3 OverSubscribe=YES:2 TRESBillingWeights=CPU=1\n"
)
DUMP = (
    "Cluster - 'c':Fairshare=1:QOS='normal'\nParent - 'root'\nAccount - 'a':Fairshare=2:GrpTRES=cpu=3,mem=2G\n"
    "Parent - 'a'\n"
    "User - 'u':DefaultAccount='a':MaxWallDurationPerJob=60:QOS='+x,y'\n"
)
TABLE = "Name|Priority|GraceTime|MaxTRESPU|MaxWall|UsageFactor\nhigh|3|00:01:00|cpu=3|1-00:00:00|1.5\n"
COMMANDS = (
    "add account a Fairshare=3\nadd user u Account=a MaxJobs=3\nmodify qos normal set GrpTRES=cpu=4 Flags=DenyOnLimit\n"
)
RESERVATIONS = (
    "create reservation=r starttime=now+5minutes duration=1:00 nodes=n[1-2] flags=maint licenses=a:2 users=u\n"
)
TREE = "SwitchName=s[1-2] Nodes=n1\nSwitchName=t Switches=s[1-2]\n"
GRES = "NodeName=n[1-2] Name=gpu Type=a File=/dev/x[0-1]\nName=bw Count=2K\n"
EVENTS = (
    "# start: 2026-01-05T00:00:00\n-dt 1 -e submit_batch_job | -J jobid_1 -sim-walltime 5 -N 1-2 -n 4 -c 2 --mem=1G "
    "-t 5:00 --gres=gpu:a:1,x:2 --array=0-3%2 --begin=now+1hour -L a:2 --nice=3 -d afterok:1 pseudo.job\n"
    "-dt 9 -e scancel | 1_[0-1]\n"
)


def conf(text: str) -> None:
    """Read a slurm.conf as a run does."""
    found = read_slurm_conf(text, "f")
    slurm_platform(found)
    slurm_config(found)


def events(text: str) -> None:
    """Read events as a run does, to the options that a scheduler gets."""
    log = EventsLog()
    log.read(io.BufferedReader(io.BytesIO(text.encode())), "f")
    options_of(log.workload("f"))


READERS = {
    "slurm.conf": (conf, CONF),
    "dump": (lambda text: read_accounting([("f", text)]), DUMP),
    "table": (lambda text: read_accounting([("f", text)]), TABLE),
    "commands": (lambda text: read_accounting([("f", text)]), COMMANDS),
    "reservations": (lambda text: read_reservations(text, "f", lambda _: None), RESERVATIONS),
    "topology.conf": (lambda text: read_topology(text, "f"), TREE),
    "gres.conf": (lambda text: read_gres_conf(text, "f"), GRES),
    "events": (events, EVENTS),
}
CHANGES = st.lists(
    st.tuples(
        st.floats(0, 1, exclude_max=True),
        st.integers(0, 4),
        st.sampled_from(
            ["", "=", "[", "]", "-", "\\", '"', "'", ",", "|", ":", "\n", "9" * 12, "-1", "\0", "é", "%", "now+", "#"]
        ),
    ),
    min_size=1,
    max_size=4,
)


@pytest.mark.parametrize("name", READERS)
@settings(max_examples=150, deadline=None)
@given(changes=CHANGES)
def test_a_damaged_file_is_read_or_refused(name, changes):
    """Any exception other than a message for the user is a bug."""
    read, text = READERS[name]
    for place, removed, added in changes:
        at = int(place * len(text))
        text = text[:at] + added + text[at + removed :]
    message = None
    try:
        read(text)
    except PipistrelleError as error:
        message = str(error)
    assert message != ""


@given(
    st.dictionaries(
        st.sampled_from(
            [
                "nodes",
                "ntasks",
                "mem",
                "gres",
                "begin",
                "array",
                "array-task",
                "nice",
                "switches",
                "nodelist",
                "licenses",
                "gpus",
            ]
        ),
        st.text(alphabet="0123456789:-=,%@[]now+GMa", max_size=8),
    )
)
def test_any_options_make_a_submission_or_a_message(options):
    """A scheduler may get options from any workload."""
    message = "w0!1"
    try:
        submission_of(JobDescription("w0!1", 1, options=options), 0.0)
    except PipistrelleError as error:
        message = str(error)
    assert "w0!1" in message
