"""`study`, and what its results tell: means, differences, ranks and a plot."""

from pathlib import Path

import pytest

import pipistrelle as pp

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "docs" / "examples"


@pytest.fixture
def results() -> pp.StudyResults:
    """Return three policies on two logs, with three replicas."""
    rows = [
        (log, policy, replica, 100.0 * (log == "b") + 10.0 * number + replica)
        for log in ("a", "b")
        for number, policy in enumerate(("sjf", "easy", "fcfs"), 1)
        for replica in range(3)
    ]
    log, policy, replica, wait = (list(column) for column in zip(*rows, strict=True))
    return pp.StudyResults.of({"log": log, "policy": policy, "replica": replica, "mean_wait": wait})


def test_means_have_intervals_per_cell(results: pp.StudyResults) -> None:
    """A row per cell; the ends of the interval are around the mean."""
    rows = list(results.summary("mean_wait").rows())

    assert [(row["log"], row["policy"]) for row in rows][:3] == [("a", "sjf"), ("a", "easy"), ("a", "fcfs")]
    assert rows[0]["value"] == pytest.approx(11.0)
    assert rows[0]["low"] < rows[0]["value"] < rows[0]["high"]
    assert {row["missing"] for row in rows} == {0}


def test_differences_are_paired_by_replica(results: pp.StudyResults) -> None:
    """The replicas differ by the same amount, so the interval has no width."""
    rows = list(results.compare("policy", "sjf", "fcfs", "mean_wait").rows())

    assert [(row["log"], row["difference"], row["difference_low"]) for row in rows] == [
        ("a", 20.0, 20.0),
        ("b", 20.0, 20.0),
    ]


def test_ranks_are_best_first(results: pp.StudyResults) -> None:
    """The shortest wait has rank 1 in each replica of each log."""
    rows = list(results.ranking("policy").rows())

    assert [(row["policy"], row["mean_rank"], row["best_in"]) for row in rows] == [
        ("sjf", 1.0, 6),
        ("easy", 2.0, 0),
        ("fcfs", 3.0, 0),
    ]


def test_trials_are_selected_by_values_of_axes(results: pp.StudyResults) -> None:
    """The selection keeps its trials alone; a wrong axis or value is named."""
    some = results.where(log="b")

    assert (len(results), len(some), len(some.trials)) == (18, 9, 9)
    assert some.axes == ["policy"]
    with pytest.raises(pp.PipistrelleError, match="lag"):
        results.where(lag="b")


def test_bars_are_grouped_by_the_second_axis(results: pp.StudyResults) -> None:
    """Each value of the first axis has a bar per value of the other; labels are words with units."""
    from matplotlib.figure import Figure

    axes = results.plot("mean_wait", Figure().add_subplot())

    assert len(axes.patches) == 6
    assert [text.get_text() for text in axes.get_xticklabels()] == ["a", "b"]
    assert axes.get_ylabel() == "mean wait, s"


def test_a_study_calls_a_scheduler_by_its_own_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A class in a file is called as in a run; options may have underscores, and the folder is read again."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text((EXAMPLES / "shortest_first.py").read_text())
    found = pp.study(
        run={"workload": "seven-jobs", "reliability_factor": 1.0},
        axes={"scheduler": ["easy", "mine.py:ShortestFirst"]},
        out=tmp_path / "study",
        jobs=1,
    )

    assert found.trials["policy"].tolist() == ["easy", "shortest-first"]
    assert len(pp.open_study(tmp_path / "study")) == 2
    assert "shortest-first" in found._repr_html_()


def test_a_study_has_one_description() -> None:
    """A file and arguments together are refused."""
    with pytest.raises(pp.PipistrelleError, match="not both"):
        pp.study(pp.Study(), replicas=3)
