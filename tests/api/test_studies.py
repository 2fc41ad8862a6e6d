"""`study`, and what its results tell: means, differences, ranks and a plot."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pipistrelle as pp
from pipistrelle.studies.workers.campaign import run as carry_out

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "docs" / "examples"


class ShortestFirst(pp.Scheduler):
    """The scheduler of docs/examples/shortest_first.py."""

    order = pp.Sjf()

    def decide(self, view: pp.View) -> None:
        """Start the shortest jobs that fit."""
        for job in list(view.waiting):
            if view.fits(job):
                view.start(job)


class Dies(pp.Scheduler):
    """Ends its process with a signal."""

    def decide(self, view: pp.View) -> None:
        """Kill this process."""
        os.kill(os.getpid(), signal.SIGKILL)


class Fails(pp.Scheduler):
    """Raises an exception."""

    def decide(self, view: pp.View) -> None:
        """Raise it."""
        raise RuntimeError("it is late")


def small(seed: int = 5) -> pp.Workload:
    """Return few jobs for 16 units, called by their seed."""
    return pp.generate_workload(60, 16, seed=seed, load=1.1, name=f"log{seed}")


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
    rows = list(results.compare("policy", "sjf", "fcfs", metrics="mean_wait").rows())

    assert [(row["log"], row["difference"], row["difference_low"]) for row in rows] == [
        ("a", 20.0, 20.0),
        ("b", 20.0, 20.0),
    ]


def test_all_pairs_are_compared_with_tests(results: pp.StudyResults) -> None:
    """Without values every pair has a row; p-values are adjusted for all rows of the metric."""
    rows = list(results.compare("scheduler", metrics=["mean_wait"], test="wilcoxon").rows())

    pairs = [("sjf", "easy"), ("sjf", "fcfs"), ("easy", "fcfs")]
    assert [(row["log"], row["a"], row["b"]) for row in rows] == [(log, *pair) for log in "ab" for pair in pairs]
    assert all(row["p"] == pytest.approx(0.25) for row in rows)  # three equal signs of three: 2 / 2^3
    assert {row["p_holm"] for row in rows} == {1.0}


def test_a_comparison_needs_two_values(results: pp.StudyResults) -> None:
    """One value, a value twice, an unknown value or test: one message."""
    for values in (["sjf"], ["sjf", "sjf"]):
        with pytest.raises(pp.PipistrelleError, match=r"two values or more.*sjf"):
            results.compare("policy", *values)
    with pytest.raises(pp.PipistrelleError, match="policy has no value 'mean_wait'"):
        results.compare("policy", "sjf", "fcfs", "mean_wait")
    with pytest.raises(pp.PipistrelleError, match="t, wilcoxon"):
        results.compare("policy", test="welch")  # type: ignore[arg-type]
    with pytest.raises(pp.PipistrelleError, match="Did you mean 'bootstrap'"):
        results.summary(interval="bootstraps")  # type: ignore[arg-type]
    with pytest.raises(pp.PipistrelleError, match="Did you mean 'replicas'"):
        results.ranking("policy", blocks="replica")  # type: ignore[arg-type]


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
    assert axes.get_ylabel() == "mean wait (seconds)"


def test_bars_show_a_category_without_values() -> None:
    """A policy whose trials all stalled keeps its place and its colour in the legend, and is counted."""
    from matplotlib.figure import Figure

    rows = [(log, policy, replica) for log in "ab" for policy in ("easy", "fcfs") for replica in range(2)]
    found = pp.StudyResults.of(
        {
            "log": [log for log, _, _ in rows],
            "policy": [policy for _, policy, _ in rows],
            "replica": [replica for _, _, replica in rows],
            "mean_wait": [None if policy == "easy" or log == "b" else 10 for log, policy, _ in rows],
        }
    )
    axes = found.plot("mean_wait", Figure().add_subplot())
    legend = axes.get_legend()

    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["easy", "fcfs"]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["a", "b"]
    assert axes.get_xlim() == (-0.5, 1.5)
    assert [text.get_text() for text in axes.texts] == ["none of 2"] * 3


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


def test_objects_give_the_numbers_of_files(tmp_path: Path) -> None:
    """Policies, workloads and machines as objects have the trials of a study of files, here and in two processes."""
    code = f"{EXAMPLES / 'shortest_first.py'}:ShortestFirst"
    logs = [small(5), small(6)]
    for log in logs:
        pp.save_workload(log, tmp_path / f"{log.name}.swf")
    (tmp_path / "m.toml").write_text('name = "m"\n[[pools]]\nname = "all"\nnodes = 16\n')
    files = pp.study(
        run={"platform": tmp_path / "m.toml", "failures": "exponential,mtbf=100d", "repair": "1h"},
        axes={"workload": [str(tmp_path / f"{log.name}.swf") for log in logs], "scheduler": ["fcfs", code]},
        replicas=2,
        engine="reference",
        jobs=1,
    )
    for jobs in (1, 2):
        objects = pp.study(
            run={"platform": pp.homogeneous(16, "m"), "failures": "exponential,mtbf=100d", "repair": "1h"},
            axes={"workload": logs, "scheduler": ["fcfs", ShortestFirst]},
            replicas=2,
            engine="reference",
            jobs=jobs,
        )
        for name in ("policy", "replica", "seed", "mean_wait", "makespan", "node_failures"):
            assert objects.trials[name].tolist() == files.trials[name].tolist()
        assert objects.trials["workload"].tolist() == ["log5"] * 4 + ["log6"] * 4
        assert set(objects.trials["platform"]) == {"m"}


def test_variants_name_objects_of_one_class() -> None:
    """A table with a name tells two objects apart that have the same name; each trial begins with a fresh copy."""
    scheduler = ShortestFirst()
    found = pp.study(
        run={"workload": small(), "transform": "shuffle"},
        axes={"policy": [{"name": "a", "scheduler": scheduler}, {"name": "b", "scheduler": ShortestFirst}]},
        replicas=2,
        engine="reference",
        jobs=1,
    )
    waits = found.trials["mean_wait"].tolist()

    assert found.trials["policy"].tolist() == ["a", "a", "b", "b"]
    assert waits[:2] == waits[2:]
    assert waits[0] != waits[1]


def test_a_composed_object_may_run_in_the_kernel() -> None:
    """The engine is chosen by the object's parts, as for a scheduler by name."""
    study = pp.Study({"workload": small(), "scheduler": pp.make_scheduler("easy", order="sjf")})
    from pipistrelle.kernel.kernel import why_not

    spec = study.points[0].spec
    assert why_not(study.objects.setup(spec), spec, study.objects.own_policy(spec)) is None


def test_a_study_of_objects_begins_anew(tmp_path: Path) -> None:
    """Code in memory cannot be compared, so the folder is refused unless its results may be replaced."""
    told = {"run": {"workload": small(), "scheduler": ShortestFirst}, "engine": "reference", "jobs": 1}
    pp.study(**told, out=tmp_path / "out")
    with pytest.raises(pp.PipistrelleError, match="schedulers are Python objects cannot continue"):
        pp.study(**told, out=tmp_path / "out")

    assert len(pp.study(**told, out=tmp_path / "out", overwrite=True)) == 1
    told["run"] = {"workload": small(), "scheduler": "fcfs"}
    first = pp.study(**told, out=tmp_path / "jobs")
    assert len(pp.study(**told, out=tmp_path / "jobs")) == len(first) == 1
    told["run"] = {"workload": small(6), "scheduler": "fcfs"}
    with pytest.raises(pp.PipistrelleError, match="another study: found another run and other workloads or machines"):
        pp.study(**told, out=tmp_path / "jobs")


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_error_of_an_object_ends_the_study(jobs: int) -> None:
    """Its message has the trial and the exception, whether it is raised here or in another process."""
    with pytest.raises(pp.PipistrelleError, match=r"trial 0\.0 failed: .*'fails' raised RuntimeError: it is late"):
        pp.study(run={"workload": small(), "scheduler": Fails}, jobs=jobs)


def test_an_object_that_ends_its_process_is_named() -> None:
    """A fork that dies is replaced twice, then the study ends."""
    with pytest.raises(pp.PipistrelleError, match=r"3 workers died in it, the last was killed by SIGKILL"):
        pp.study(run={"workload": small(), "scheduler": Dies}, jobs=2)


def test_workers_elsewhere_cannot_have_objects() -> None:
    """Dask's workers get names and files alone."""
    with pytest.raises(pp.PipistrelleError, match="cannot have the Python objects"):
        carry_out(pp.Study({"workload": small(), "scheduler": "fcfs"}, engine="reference"), dask="tcp://localhost:1")


def test_pictures_are_those_of_the_command(results: pp.StudyResults, tmp_path: Path) -> None:
    """Each kind has the options of ``study plot``; options that do not go together are refused."""
    for picture in (
        results.picture(metrics="mean_wait", by="policy", title="waits"),
        results.picture("boxes", x="policy", panels="log", log_scale=True),
        results.picture("ecdf", "mean_wait", by="policy", font="stix", size=(4.0, 3.0)),
    ):
        assert picture._repr_svg_().startswith("<?xml")
    assert picture.save(tmp_path / "ecdf.svg").read_text() == picture._repr_svg_()
    assert picture.save(tmp_path / "ecdf.pdf").read_bytes().startswith(b"%PDF")
    with pytest.raises(pp.PipistrelleError, match="suffix"):
        picture.save(tmp_path / "ecdf.gif")
    with pytest.raises(pp.PipistrelleError, match="does not go with"):
        results.picture("ecdf", x="policy")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda results: results.summary(level=95), "level: an invalid value: expected a number between 0 and 1"),
        (lambda results: results.summary(quantile=7), "quantile: an invalid value"),
        (lambda results: results.plot(level=0), "level: an invalid value"),
        (lambda results: results.picture("ecdf", x="policy"), "picture: x does not go with kind ecdf"),
        (lambda results: results.picture("ecdf", log_scale=True), "picture: log_scale does not go with kind ecdf"),
        (lambda results: results.picture(size="7x2"), r"picture: size: .* inches, from 0.5 to 50"),
        (lambda results: results.picture(size=(0, 3)), r"picture: size: .*found \(0, 3\)"),
        (lambda results: results.picture(font="Times"), "no font 'Times'. Known: sans, stix, cm"),
        (lambda _: pp.study(run=5), "run: an invalid value: expected a dictionary, found 5"),
        (lambda _: pp.study(axes={5: ["easy"]}), "axes: a key is not text: found 5"),
        (lambda _: pp.study(replicas="x"), "replicas: .*a whole number or a dictionary, found 'x'"),
        (lambda _: pp.Study(metrics=3), "metrics: an invalid value"),
        (lambda _: pp.study(jobs=0), "jobs: an invalid value: expected a whole number >= 1, found 0"),
        (lambda _: pp.study(out=5), "out: expected a name or a path, found int"),
        (lambda _: pp.StudyResults.of({"a": [1], "replica": [1, 2]}), "columns differ in length: .*a 1, replica 2"),
        (lambda _: pp.compare(1, 2), "compare: run: expected a name or a path, found int"),
        (lambda _: pp.explain(5, 1), "explain: run: expected a name or a path, found int"),
    ],
)
def test_wrong_arguments_are_named(results: pp.StudyResults, call: Callable[[Any], object], message: str) -> None:
    """One message says which argument is wrong, and what it may be."""
    with pytest.raises(pp.PipistrelleError, match=message):
        call(results)
