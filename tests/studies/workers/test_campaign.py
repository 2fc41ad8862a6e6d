"""A study's results do not depend on its workers, nor on workers that crash."""

import gc
import json
import os
import signal
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.schedulers.plan.machine_code import compiled_by_numba, is_cached
from pipistrelle.studies.trials.journal import JOURNAL, Journal
from pipistrelle.studies.trials.results import TRIALS
from pipistrelle.studies.trials.study import Study
from pipistrelle.studies.workers import campaign
from pipistrelle.studies.workers.campaign import estimate, run

STUDY = {
    "run": {
        "platform": "demo",
        "failures": "exponential,mtbf=300d",
        "repair": "2h",
        "checkpoint": "daly",
        "dump": "1min",
        "transform": [{"step": "filter", "first": 60}],
    },
    "axes": {"scheduler": ["fcfs", "easy"], "reliability-factor": [1, 4]},
    "replicas": 4,
    "metrics": {"warm-up": "10 jobs", "sizes": [1, 8]},
    "engine": "reference",
}


def study(**other):
    """Return the study, or one that differs from it."""
    return Study(**{**STUDY, **other})


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Return the bytes of the results that one worker has had in peace."""
    folder = tmp_path_factory.mktemp("undisturbed")
    run(study(), folder, jobs=1)
    return (folder / TRIALS).read_bytes()


def children():
    """Return the processes that this one has started, and that live."""
    found = []
    for task in Path("/proc/self/task").iterdir():
        found += [int(pid) for pid in (task / "children").read_text().split()]
    return found


def test_two_workers_have_the_same_bytes(undisturbed, tmp_path):
    """And leave no process behind."""
    before = set(children())
    results = run(study(), tmp_path, jobs=2)

    assert (tmp_path / TRIALS).read_bytes() == undisturbed
    assert results.table.column("replica").to_pylist() == [0, 1, 2, 3] * 4
    assert set(children()) <= before


def test_a_worker_that_is_killed_is_replaced(undisturbed, tmp_path):
    """At several moments: its trial is repeated by another."""
    before, killed = set(children()), []

    def watch(progress):
        if progress.done in (1, 5, 9) and len(killed) <= progress.done // 4:
            victim = min(set(children()) - before)
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)

    run(study(), tmp_path, jobs=2, watch=watch)

    assert len(killed) == 3
    assert (tmp_path / TRIALS).read_bytes() == undisturbed


#: carries out a study, and kills on request: which worker, and after how many trials of the journal
KILLING = """
import json, os, signal, sys
from pipistrelle.studies.trials.study import Study
from pipistrelle.studies.workers.campaign import run

told = json.loads(sys.argv[1])
kills = told["kills"]

def watch(progress):
    while kills and kills[0][1] <= progress.before:
        kills.pop(0)
    if kills and progress.done >= kills[0][1]:
        who, after = kills.pop(0)
        print(who, after, flush=True)
        here = open(f"/proc/self/task/{os.getpid()}/children").read().split()
        os.kill(os.getpid() if who == "coordinator" else int(here[after % len(here)]), signal.SIGKILL)

run(Study(**told["study"]), told["folder"], jobs=2, watch=watch)
"""


@pytest.mark.slow
def test_ten_kills_at_any_moment_change_nothing(tmp_path):
    """Of workers and of the coordinator, wherever the journal is by then: the same bytes in the end."""
    random = np.random.default_rng(13)
    what = {**STUDY, "replicas": 11}
    run(study(replicas=11), tmp_path / "undisturbed", jobs=1)
    who = random.permutation(["worker"] * 5 + ["coordinator"] * 5).tolist()
    kills = [[one, 4 * at + int(random.integers(1, 3))] for at, one in enumerate(who)]
    told = json.dumps({"study": what, "folder": str(tmp_path / "killed"), "kills": kills})
    done, codes = [], []
    while not codes or codes[-1]:
        ended = subprocess.run([sys.executable, "-c", KILLING, told], capture_output=True, text=True, check=False)
        done += ended.stdout.splitlines()
        codes.append(ended.returncode)
        assert codes[-1] in (0, -signal.SIGKILL), ended.stderr

    assert done == [f"{one} {after}" for one, after in kills]
    assert codes == [-signal.SIGKILL] * 5 + [0]
    assert (tmp_path / "killed" / TRIALS).read_bytes() == (tmp_path / "undisturbed" / TRIALS).read_bytes()


def test_ctrl_c_before_the_journal_has_a_trial(undisturbed, tmp_path, monkeypatch):
    """A trial that ended, but is not in the journal, is not in the table either; the study resumes."""
    append = Journal.append

    def interrupted(journal, outcomes):
        if len(journal.outcomes) >= 3:
            raise KeyboardInterrupt
        append(journal, outcomes)

    with monkeypatch.context() as patched:
        patched.setattr(Journal, "append", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(study(), tmp_path, jobs=1)
    assert (tmp_path / JOURNAL).read_bytes().count(b"\n") == 3
    assert (tmp_path / TRIALS).exists()

    run(study(), tmp_path, jobs=1)
    assert (tmp_path / TRIALS).read_bytes() == undisturbed


def test_interrupted_study_resumes(undisturbed, tmp_path):
    """Completed trials are kept and not repeated; the table of an interrupted study has these."""
    asked = []

    def interrupt(progress):
        asked.append(progress)
        if progress.done >= 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(study(), tmp_path, jobs=1, watch=interrupt)
    lines = (tmp_path / JOURNAL).read_bytes()
    assert lines.count(b"\n") == 5
    assert (tmp_path / TRIALS).read_bytes() != undisturbed

    asked.clear()
    run(study(), tmp_path, jobs=1, watch=asked.append)
    assert asked[0].before == 5
    assert asked[-1].done == asked[-1].known == 16
    assert (tmp_path / JOURNAL).read_bytes().startswith(lines)
    assert (tmp_path / TRIALS).read_bytes() == undisturbed


@pytest.mark.parametrize("cut", [1, 40])
def test_a_torn_last_line_is_dropped(undisturbed, tmp_path, cut):
    """Its trial is repeated; having nothing left to do is no error either."""
    run(study(), tmp_path, jobs=1)
    journal = tmp_path / JOURNAL
    journal.write_bytes(journal.read_bytes()[:-cut])
    (tmp_path / TRIALS).unlink()
    run(study(), tmp_path, jobs=1)

    assert (tmp_path / TRIALS).read_bytes() == undisturbed
    assert run(study(), tmp_path, watch=pytest.fail).path == tmp_path / TRIALS


def test_more_replicas_are_added_and_fewer_are_left_out(undisturbed, tmp_path):
    """The number of replicas does not identify a study."""
    run(study(replicas=2), tmp_path, jobs=1)
    run(study(), tmp_path, jobs=1)
    assert (tmp_path / TRIALS).read_bytes() == undisturbed

    assert len(run(study(replicas=1), tmp_path)) == 4


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"axes": {"reliability-factor": [1, 4], "scheduler": ["fcfs", "easy"]}}, "other axes"),
        ({"replicas": {"count": 4, "seed": 2}}, "another seed"),
        ({"metrics": {"warm-up": "9 jobs"}}, "other metrics"),
        ({"run": {**STUDY["run"], "repair": "3h"}}, "another run"),
    ],
)
def test_a_folder_of_another_study_is_refused(tmp_path, other, named):
    """Before any trial; the message says what differs."""
    run(study(replicas=1), tmp_path, jobs=1)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(PipistrelleError, match=f"results of another study.*found {named}"):
        run(study(**{"replicas": 1, **other}), tmp_path)

    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("content", [b"{", b"[1]", b'{"a":' * 100_000])
def test_a_folder_whose_study_cannot_be_read_is_refused(tmp_path, content):
    """One message, however the file is damaged; nothing is overwritten."""
    run(study(replicas=1), tmp_path, jobs=1)
    (tmp_path / "study.json").write_bytes(content)
    with pytest.raises(PipistrelleError, match=r"results of another study.*found an unreadable description"):
        run(study(replicas=1), tmp_path)

    assert (tmp_path / "study.json").read_bytes() == content


@pytest.mark.parametrize("damage", [b"{", b'{"point": "\xb0"}\n'])
def test_a_broken_line_is_named(tmp_path, damage):
    """A broken line that is not the last is not the result of a crash."""
    run(study(replicas=1), tmp_path, jobs=1)
    journal = tmp_path / JOURNAL
    journal.write_bytes(damage + journal.read_bytes())
    with pytest.raises(PipistrelleError, match=r"journal\.jsonl, line 1: a line of the journal is damaged"):
        run(study(replicas=1), tmp_path)


POLICY = """
import os
from pipistrelle.schedulers.catalogue.registry import make_policy

def scheduler():
    policy = make_policy("easy")
    policy.decide = lambda *anything: os._exit(9)
    return policy
"""


def test_a_trial_that_kills_its_workers_ends_the_study(tmp_path):
    """Not forever: after the third crash the message says how they died."""
    path = tmp_path / "deadly.py"
    path.write_text(POLICY)
    with pytest.raises(
        PipistrelleError, match=r"trial 0\.0 failed: 3 workers died in it, the last ended with exit code 9"
    ):
        run(study(run={**STUDY["run"], "scheduler": f"{path}:scheduler"}, axes={}), tmp_path / "out", jobs=1)


def test_an_estimate_runs_a_trial_or_two_and_writes_nothing(tmp_path):
    """It shows the number of trials, the completed ones, and the duration of one."""
    found = estimate(study(), tmp_path)
    assert (found.points, found.trials, found.done, found.measured) == (4, 16, 0, 2)
    assert found.seconds > 0
    assert list(tmp_path.iterdir()) == []

    run(study(replicas=1), tmp_path, jobs=1)
    assert estimate(study(), tmp_path).done == 4


def test_an_estimate_does_not_compile_the_kernel(monkeypatch):
    """If the kernel is not compiled, the reference engine runs the measured trials, and the estimate says so."""
    pytest.importorskip("numba")
    engines = []
    monkeypatch.setattr(campaign, "carry_out", lambda trial, objects: engines.append(trial.engine))
    found = {}
    for compiled in (False, True):
        monkeypatch.setattr(campaign, "_is_compiled", lambda compiled=compiled: compiled)
        found[compiled] = estimate(study(engine="auto")).uncompiled, set(engines)
        engines.clear()

    assert found == {False: (True, {"reference"}), True: (False, {"kernel"})}


def test_machine_code_in_the_cache_is_found(monkeypatch, tmp_path):
    """A compiled function is in the cache after its first call; a plain function needs no machine code."""
    numba = pytest.importorskip("numba")
    if numba.config.DISABLE_JIT:
        pytest.skip("numba compiles nothing")
    source = tmp_path / "twice.py"
    source.write_text("def twice(number):\n    return 2 * number\n")
    spec = spec_from_file_location("twice", source)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    made = compiled_by_numba(module.twice, (source,))

    assert is_cached(module.twice)
    assert not is_cached(made)
    assert made(4) == 8
    assert is_cached(made)


def test_the_kernel_has_the_same_figures(tmp_path):
    """By default it runs what the kernel supports; all columns except the engine's equal the reference engine's."""
    pytest.importorskip("numba")
    axes = {"scheduler": ["easy", "conservative"], "reliability-factor": [1, 4]}
    found = [run(study(axes=axes, replicas=2, engine=engine), jobs=1).table for engine in ("auto", "reference")]
    rows = found[0].select(["policy", "engine"]).to_pylist()

    assert {row["policy"]: row["engine"] for row in rows} == {"easy": "kernel", "conservative": "reference"}
    assert "its backfilling rule is none of" in found[0].column("engine_why").to_pylist()[-1]
    drop = ["engine", "engine_why"]
    assert found[0].drop_columns(drop).equals(found[1].drop_columns(drop))
    with pytest.raises(PipistrelleError, match=r"scheduler conservative, .*the kernel cannot run it: its back"):
        run(study(axes=axes, engine="kernel"))


def test_results_without_a_folder(tmp_path):
    """A notebook needs none; frames of pandas and polars have the same rows."""
    results = run({**STUDY, "replicas": {"count": 2}}, jobs=1)

    assert results.path is None
    assert results.to_pandas()["mean_wait"].tolist() == results.to_polars()["mean_wait"].to_list()
    assert "reliability_factor" in results._repr_html_()
    assert "8 trials" in repr(results)


@pytest.fixture
def cluster():
    """Return a Dask cluster in this process."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address=None, silence_logs=50
    ) as found:
        yield found
    gc.collect()  # Dask leaves a socket of its event loop behind, which the check at the end of all tests would report


@pytest.mark.filterwarnings("ignore")
def test_workers_of_dask_have_the_same_bytes(undisturbed, tmp_path, cluster):
    """The same study file, the same results."""
    run(study(), tmp_path, dask=cluster.scheduler_address)

    assert (tmp_path / TRIALS).read_bytes() == undisturbed


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "tcp://nowhere", "127.0.0.1:8786"])
def test_unreachable_scheduler_is_reported(tmp_path, address):
    """Whatever is wrong with the address."""
    pytest.importorskip("distributed")
    with pytest.raises(PipistrelleError, match="no Dask scheduler answers at this address"):
        run(study(), tmp_path, dask=address)


def test_one_kind_of_workers(tmp_path):
    """Processes here, or workers elsewhere."""
    with pytest.raises(PipistrelleError, match="one of --jobs, --dask and --slurm"):
        run(study(), tmp_path, jobs=1, dask="tcp://127.0.0.1:8786")
