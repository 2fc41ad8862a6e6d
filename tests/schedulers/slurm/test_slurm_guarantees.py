"""Small random clusters under the policy ``slurm``: equal runs are equal to the byte, also when they are resumed."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.api.runs import run as simulate

CONF = """ClusterName=random
SelectType=select/{select}
{parameters}
GresTypes=gpu
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityWeightJobSize=500
PriorityWeightFairshare=2000
PriorityCalcPeriod=1
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageEnforce=limits,qos,safe
SchedulerParameters=bf_interval=30,{more}
PreemptType=preempt/qos
PreemptMode=REQUEUE
TopologyPlugin=topology/tree
NodeName=n[1-6] CPUs=4 CoresPerSocket=4 RealMemory=4000 Weight={weight}
NodeName=g[1-2] CPUs=4 CoresPerSocket=4 RealMemory=4000 Gres=gpu:2 Weight=3
PartitionName=batch Nodes=ALL Default=YES DefMemPerCPU=500 MaxTime=60
PartitionName=short Nodes=n[1-4] PriorityTier=2 MaxTime=5 DefMemPerCPU=500
"""
TREE = "SwitchName=a Nodes=n[1-3],g1\nSwitchName=b Nodes=n[4-6],g2\nSwitchName=top Switches=a,b\n"
ACCOUNTS = (
    "add qos low\nadd qos high preempt=low priority=5 MaxTRESPU=cpu=16\nadd account bio fairshare=2 GrpTRES=cpu=20\n"
    "add account chem GrpTRESMins=cpu=9000\nadd user ann account=bio qos=low,high defaultqos=low\n"
    "add user bob account=chem qos=low,high defaultqos=low\n"
)
RESERVATIONS = "200,create reservation=r starttime=now+5minutes duration=5 nodes=n[1-2] flags=maint,ignore_jobs\n"
JOBS = st.lists(
    st.tuples(
        st.integers(0, 400),
        st.integers(1, 400),
        st.sampled_from(["--uid=ann -A bio", "--uid=bob -A chem", "--uid=bob -A chem -q high"]),
        st.sampled_from(
            ["-N 1", "-N 2-3", "-N 2 --switches=1@1", "-n 3 --mem-per-cpu=900", "-n 5 --exclusive", "-n 2"]
        ),
        st.sampled_from(["", "--gres=gpu:1", "--array=0-3%2", "--begin=now+60", "-d afterany:1", "-d singleton"]),
        st.sampled_from(["batch", "short", "batch,short"]),
    ),
    min_size=3,
    max_size=25,
)


@pytest.mark.slow
@settings(max_examples=4, deadline=None)
@given(
    jobs=JOBS,
    select=st.sampled_from(["linear", "cons_tres"]),
    weight=st.integers(1, 5),
    more=st.sampled_from(["bf_window=20", "default_queue_depth=2", "bf_busy_nodes", "bf_max_job_test=5"]),
    failures=st.sampled_from([None, "exponential,mtbf=1h"]),
)
def test_runs_are_equal_twice_and_from_each_snapshot(jobs, select, weight, more, failures) -> None:
    """With shared and whole nodes, preemption, arrays, dependencies, reservations, limits, switches and failures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parameters = "SelectTypeParameters=CR_Core_Memory" if select == "cons_tres" else ""
        text = CONF.format(select=select, parameters=parameters, weight=weight, more=more)
        (folder / "slurm.conf").write_text(text)
        (folder / "topology.conf").write_text(TREE)
        (folder / "accounts").write_text(ACCOUNTS)
        (folder / "reservations").write_text(RESERVATIONS)
        lines = [
            f"-dt {at} -e submit_batch_job | -J jobid_{n} -sim-walltime {run} {who} -t 5 {size} {other} -p {part} j"
            for n, (at, run, who, size, other, part) in enumerate(sorted(jobs), start=1)
        ]
        (folder / "jobs.events").write_text("\n".join(lines) + "\n")

        conf, events = str(folder / "slurm.conf"), str(folder / "jobs.events")
        options = {"repair": "5min", "failures": failures} if failures else {}
        for out in ("first", "second"):
            simulate(
                events,
                conf,
                "slurm",
                config=conf,
                accounting=(str(folder / "accounts"),),
                reservations=(str(folder / "reservations"),),
                out=folder / out,
                progress=False,
                **options,
            )
        first = tables(folder / "first")
        assert tables(folder / "second") == first
        people = ["--accounting", str(folder / "accounts"), "--reservations", str(folder / "reservations")]
        words = ["run", "--scheduler", "slurm", "-p", conf, "-w", events, "--config", conf, *people, "-q"]
        words += [word for key, value in options.items() for word in (f"--{key}", value)]
        kept = ["--snapshot-every", "sim:150s", "--keep-snapshots", "99", "--leave-snapshots"]
        command(*words, "-o", str(folder / "third"), *kept)
        assert tables(folder / "third") == first
        for number, snapshot in enumerate(sorted((folder / "third").glob("out_snapshot-*.gz"))[::4]):
            again = folder / f"again-{number}"
            command("resume", str(snapshot), "--out", str(again), "--quiet")
            assert tables(again) == first


def command(*words: str) -> None:
    """Run a command in a process of its own; fail with its error output."""
    done = subprocess.run(
        [sys.executable, "-m", "pipistrelle.cli", *words], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def tables(out: Path) -> list[bytes]:
    """Return the content of a run's tables."""
    return [(out / name).read_bytes() for name in ("out_jobs.csv", "out_attempts.csv", "out_decisions.csv")]
