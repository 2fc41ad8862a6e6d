"""Studies whose trials fill a cluster of GPU nodes with pods."""

from pathlib import Path

import pytest

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.runs.filling.experiment import fill
from pipistrelle.runs.filling.openb import read_nodes, read_pods
from pipistrelle.studies.trials.study import Study
from pipistrelle.studies.workers.campaign import estimate, run

NODES = "sn,cpu_milli,memory_mib,gpu,model\n" + "".join(f"n{number},16000,64000,4,T4\n" for number in range(6))
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n" + "".join(
    f"p{number},{1000 + 700 * (number % 5)},2000,{1 + number % 3 // 2},{[300, 500, 1000][number % 3]}\n"
    for number in range(40)
)


@pytest.fixture
def lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write lists of nodes and pods, and go to their folder."""
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "pods.csv").write_text(PODS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def study(**more: object) -> Study:
    """Return a study of fills, with other parts than usual if given."""
    told: dict[str, object] = {
        "run": {"workload": "pods.csv", "platform": "nodes.csv", "until": "110%"},
        "axes": {"placement": ["fgd", "random"]},
        "replicas": 3,
        "engine": "fill",
    }
    return Study(**{**told, **more})  # type: ignore[arg-type]


def test_trials_are_fills_with_the_seeds_of_their_replicas(lists: Path) -> None:
    """Each row is what the fill with its seed gives; on two workers, too, and after an interruption."""
    found = run(study(), lists / "out", jobs=1)
    rows = found.table.to_pylist()
    nodes = read_nodes("nodes.csv")
    pods = read_pods("pods.csv", nodes)
    assert len(rows) == 6
    for row in rows:
        one = fill(nodes, pods, row["placement"], until=1.1, seed=row["seed"])
        assert [row[f"allocated_{point}"] for point, _ in one.allocated] == [value for _, value in one.allocated]
        assert row["fragmented_110"] == one.fragmented[-1][1]
        assert (row["placed"], row["dropped"], row["engine"]) == (one.placed, one.dropped, "fill")
    assert len({row["seed"] for row in rows}) == 3

    again = run(study(), lists / "two", jobs=2)
    assert (lists / "two" / "trials.parquet").read_bytes() == (lists / "out" / "trials.parquet").read_bytes()
    assert again.table.equals(found.table)


def test_a_precision_adds_replicas_and_an_estimate_counts_them(lists: Path) -> None:
    """The default metric of a precision is that at 100 %."""
    told = study(axes={}, replicas={"precision": "20%", "at-most": 12})
    assert estimate(told).points == 1
    assert 2 <= len(run(told, lists / "out", jobs=1)) <= 12


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"axes": {"scheduler": ["easy"]}}, "scheduler: a study that fills a cluster does not have this option"),
        ({"axes": {"placement": ["nope"]}}, "there is no placement 'nope' for shared nodes"),
        ({"run": {"workload": "pods.csv"}}, "needs a list of nodes and a list of pods"),
        ({"run": {"workload": "pods.csv", "platform": "nodes.csv", "until": "5d"}}, "the end of a fill is wrong"),
        ({"run": {"workload": "nodes.csv", "platform": "nodes.csv"}}, "the column 'name' is missing"),
        ({"metrics": {"sizes": [1, 4]}}, "has its own metrics"),
        ({"replicas": {"precision": "2%", "metric": "mean_wait"}}, "there is no metric 'mean_wait'"),
    ],
)
def test_a_wrong_study_of_fills_is_one_message(lists: Path, more: dict[str, object], message: str) -> None:
    """Before the first trial, and without a folder of results."""
    with pytest.raises(PipistrelleError, match=message):
        run(study(**more), lists / "out", jobs=1)
    assert not (lists / "out").exists()
