"""Small random clusters under the policy ``slurm``: equal runs are equal to the byte, also when they are resumed."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.schedulers.slurm.random_cluster import OTHERS, PARTITIONS, SIZES, WHO, write_cluster

from pipistrelle.api.runs import run as simulate

JOBS = st.lists(
    st.tuples(
        st.integers(0, 400),
        st.integers(1, 400),
        st.sampled_from(WHO),
        st.sampled_from(SIZES),
        st.sampled_from(OTHERS),
        st.sampled_from(PARTITIONS),
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
        words = write_cluster(folder, jobs, select, weight, more)
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
        words = ["run", *words, "-q"]
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
