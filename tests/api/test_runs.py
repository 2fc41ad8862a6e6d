"""`run`, `open`, `compare` and `explain` as a notebook calls them."""

import builtins
import gc
import io
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pipistrelle as pp
from pipistrelle.api import progress
from pipistrelle.reports.cases.case import bundled_folder
from pipistrelle.runs.execution import run as execution

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLES = ROOT / "docs" / "examples"


class Greedy(pp.Scheduler):
    """Starts all that fits, and counts its decisions."""

    def __init__(self) -> None:
        self.decided = 0

    def decide(self, view: pp.View) -> None:
        """Start what fits."""
        self.decided += 1
        for job in list(view.waiting):
            if view.fits(job):
                view.start(job, why=f"decision {self.decided}")


@pytest.fixture(scope="module")
def jobs() -> pp.Workload:
    """Return jobs for 16 units, some of which wait."""
    return pp.generate_workload(80, 16, seed=5, load=1.1)


@pytest.fixture(scope="module")
def machine() -> pp.Platform:
    """Return a machine of 16 nodes."""
    return pp.homogeneous(16, "m")


def test_a_run_by_names_equals_the_run_of_its_description(tmp_path: Path) -> None:
    """Keywords become a RunSpec: results and out_command.json are those of that description."""
    from pipistrelle.runs.description.spec import RunSpec

    mine = pp.run("seven-jobs", scheduler="fcfs", queue_lengths=False, out=tmp_path / "mine")
    spec = RunSpec(workload=("seven-jobs",), scheduler="fcfs")
    execution.run(spec, execution.RunOptions(out=tmp_path / "theirs"))
    theirs = pp.open(str(tmp_path / "theirs"))

    assert mine.metrics == theirs.metrics
    assert mine.description == theirs.description
    assert mine.summary.completed == 7


def test_objects_and_files_give_the_same_results(tmp_path: Path, jobs: pp.Workload, machine: pp.Platform) -> None:
    """A workload written to a file, and a scheduler in a file, decide as the objects do."""
    pp.save_workload(jobs, tmp_path / "jobs.swf")
    (tmp_path / "m.toml").write_text('name = "m"\n[[pools]]\nname = "all"\nnodes = 16\n')
    files = pp.run(tmp_path / "jobs.swf", tmp_path / "m.toml", EXAMPLES / "shortest_first.py:ShortestFirst")

    class Shortest(pp.Scheduler):
        order = pp.Sjf()

        def decide(self, view: pp.View) -> None:
            for job in list(view.waiting):
                if view.fits(job):
                    view.start(job, why="the shortest that fits")

    objects = pp.run(jobs, machine, Shortest)

    assert (files.scheduler, objects.scheduler) == ("shortest-first", "shortest")
    assert pp.compare(files, objects).same


def test_changes_also_apply_to_objects(jobs: pp.Workload, machine: pp.Platform) -> None:
    """Transformation, factor of the platform and time limit work as with files."""
    busy = pp.run(jobs, machine, transform={"step": "scale", "load": 3.0}, scale_platform=2, until=timedelta(hours=5))

    assert busy.units == 32
    assert busy.metrics["horizon"] == 18_000.0
    assert busy.summary.jobs < 80


def test_changes_may_be_texts_of_the_command_line(jobs: pp.Workload, machine: pp.Platform) -> None:
    """A text, a list of texts and tables, and a table give equal runs; a wrong text gets an example."""
    text = pp.run(jobs, machine, transform="filter --first 50 then scale --load 3.0")
    mixed = pp.run(jobs, machine, transform=["filter --first 50", {"step": "scale", "load": 3.0}])

    assert len(text.jobs) == 50
    assert pp.compare(text, mixed).same
    assert len(pp.transform_workload(jobs, "filter --first 5", "copy --times 2")) == 10
    for wrong in ("scaled --load 3", 3):
        with pytest.raises(pp.PipistrelleError, match=r"transform: .*'scale --load 0\.9'"):
            pp.run(jobs, machine, transform=wrong)  # type: ignore[arg-type]


def test_results_without_a_folder_are_deleted_with_the_run(jobs: pp.Workload, machine: pp.Platform) -> None:
    """The temporary folder is there as long as the run is."""
    found = pp.run(jobs, machine)
    folder = found.folder
    assert folder.is_dir()
    del found
    gc.collect()

    assert not folder.exists()


def test_a_failed_run_leaves_no_temporary_folder(
    jobs: pp.Workload, machine: pp.Platform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error is that of the scheduler, and nothing stays in the folder for temporary files."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    class Wrong(pp.Scheduler):
        def decide(self, view: pp.View) -> None:
            raise RuntimeError("it is late")

    with pytest.raises(pp.PipistrelleError, match="policy 'wrong' raised RuntimeError: it is late"):
        pp.run(jobs, machine, Wrong)
    assert list(tmp_path.iterdir()) == []


def test_an_object_of_a_scheduler_is_not_used_up(jobs: pp.Workload, machine: pp.Platform) -> None:
    """A run repeats from the state that the object had before, so its explanation is that of the run."""
    scheduler = Greedy()
    found = pp.run(jobs, machine, scheduler)
    waits = found.jobs["waiting_time"]
    job = str(found.jobs["job_id"][waits.argmax()])
    why = pp.explain(found, job)

    assert scheduler.decided > 0
    assert why.details.not_replayed is None
    assert why.details.waited == waits.max() > 0
    assert "fewer units were free" in why.text
    assert sum(why.timeline["end"] - why.timeline["begin"]) == pytest.approx(waits.max())
    assert why._repr_html_().startswith("<table>")


def test_code_in_a_file_is_explained_without_asking(jobs: pp.Workload, tmp_path: Path) -> None:
    """This process has run the code already; a folder from elsewhere needs ``trust``."""
    pp.save_workload(jobs, tmp_path / "jobs.swf")
    found = pp.run(tmp_path / "jobs.swf", scheduler=f"{EXAMPLES}/considerate.py:Considerate", out=tmp_path / "out")
    job = str(found.jobs["job_id"][found.jobs["waiting_time"].argmax()])

    stranger = pp.explain(str(tmp_path / "out"), job)
    assert "--trust" in str(stranger.details.not_replayed)
    assert pp.explain(found, job).details.not_replayed is None


def test_a_program_is_a_scheduler(tmp_path: Path) -> None:
    """A command with the endpoint among its words runs as a process of its own."""
    found = pp.run("seven-jobs", scheduler=[sys.executable, str(EXAMPLES / "minimal_scheduler.py"), "{endpoint}"])

    assert (found.scheduler, found.summary.completed) == ("minimal", 7)


def test_a_description_is_repeated_and_overridden(tmp_path: Path) -> None:
    """Keywords replace single values of a file, as options do on the command line."""
    first = pp.run("seven-jobs", scheduler="fcfs", out=tmp_path / "first")
    same = pp.run(description=tmp_path / "first" / "out_command.json")
    other = pp.run(description=tmp_path / "first" / "out_command.json", scheduler="easy")

    assert pp.compare(first, same).same
    assert (same.scheduler, other.scheduler) == ("fcfs", "easy")


def test_the_results_of_another_run_are_not_replaced(tmp_path: Path) -> None:
    """A folder is taken unless ``overwrite`` is given."""
    pp.run("seven-jobs", out=tmp_path / "out")
    with pytest.raises(pp.PipistrelleError, match="overwrite"):
        pp.run("seven-jobs", scheduler="fcfs", out=tmp_path / "out")

    assert pp.run("seven-jobs", scheduler="fcfs", out=tmp_path / "out", overwrite=True).scheduler == "fcfs"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: pp.run(schedulr="easy"), "run: there is no option 'schedulr'. Did you mean 'scheduler'?"),
        (lambda: pp.run(backfill_dept=3), "Did you mean 'backfill_depth'?"),
        (lambda: pp.run(seed="x"), "run: seed: a value of the wrong type: expected a whole number, found 'x'"),
        (lambda: pp.run(scheduler="eazy"), "there is no scheduler 'eazy'. Did you mean 'easy'?"),
        (lambda: pp.run(scheduler=Greedy, order="sjf"), "no parts or options to replace: found order"),
        (lambda: pp.run(scheduler=object()), "this is not a policy: it has no 'name'"),
        (lambda: pp.run(scheduler=Greedy, dialect="batsim"), "supports only the native dialect"),
        (lambda: pp.run(pp.generate_workload(5, 4), sort=True), "the workload is an object: found sort"),
        (lambda: pp.run("demmo"), "there is no workload 'demmo'"),
        (lambda: pp.run(platform=5), "run: platform: expected a name or a path, found int"),  # type: ignore[arg-type]
        (lambda: pp.run(5), "run: workload: expected a name or a path, found int"),  # type: ignore[arg-type]
        (lambda: pp.open(5), "open: path: expected a name or a path, found int"),  # type: ignore[arg-type]
        (lambda: pp.open("nowhere"), "nowhere: there is no such folder"),
        (lambda: pp.compare("nowhere"), "at least two runs"),
        (lambda: pp.bundled("machine"), "there is no kind 'machine'"),
        (lambda: pp.study(axes={"scheduler": [Greedy(), Greedy]}), "two Python objects have the same name"),
        (lambda: pp.study(run={"scheduler": Greedy, "order": "sjf"}), "no parts or options to replace: found order"),
        (lambda: pp.study(run={"scheduler": pp.homogeneous(4, "m")}), "this object is not a scheduler: found Platform"),
        (lambda: pp.study(run={"workload": Greedy}), "this object is not a workload: found ABCMeta"),
    ],
)
def test_mistakes_are_named(call: Callable[[], object], said: str) -> None:
    """Each mistake is one error with what is wrong and what to do."""
    with pytest.raises(pp.PipistrelleError) as caught:
        call()
    assert said in str(caught.value)


def test_tables_have_types_labels_and_names(jobs: pp.Workload, machine: pp.Platform) -> None:
    """Columns are typed; pandas, polars and NumPy see the same values; a wrong name gives the closest."""
    table = pp.run(jobs, machine).jobs

    assert table.to_pandas()["waiting_time"].tolist() == table.to_polars()["waiting_time"].to_list()
    assert table["waiting_time"].dtype == np.float64
    users = dict(zip(jobs.ids, jobs.columns["user"].tolist(), strict=True))
    assert {row["job_id"]: row["user"] for row in table.rows()} == {job: str(users[job]) for job in users}
    assert "... 70 more rows" in repr(table)
    with pytest.raises(pp.PipistrelleError, match=r"no column 'waitng_time'. Did you mean 'waiting_time'"):
        table["waitng_time"]


def test_tables_of_failures_exist_only_if_nodes_fail(jobs: pp.Workload, machine: pp.Platform) -> None:
    """A missing table is an error that gives the reason."""
    failing = pp.run(jobs, machine, failures="exponential,mtbf=10d", repair="1h")

    assert len(failing.attempts) >= 80
    assert len(failing.nodes) == 16
    assert failing.summary.reliability is not None
    assert len(failing.outages) == failing.summary.reliability.node_failures
    with pytest.raises(pp.PipistrelleError, match=r"has no table 'nodes'.*its nodes cannot fail"):
        pp.run(jobs, machine).nodes  # noqa: B018


def test_attempts_and_queue_follow_from_the_jobs(jobs: pp.Workload, machine: pp.Platform) -> None:
    """Without tables of their own they have the numbers of a run that writes them."""
    written = pp.run(jobs, machine)
    bare = pp.run(jobs, machine, queue_lengths=False)
    never = pp.run(jobs, machine, failures="exponential,mtbf=900000y", repair="1h")

    assert not (bare.folder / "out_queue.csv").exists()
    for name in written.queue.columns:
        np.testing.assert_allclose(bare.queue[name], written.queue[name], atol=1e-6)
    assert len(bare.attempts) == 80
    for name in bare.attempts.columns:
        assert bare.attempts[name].tolist() == never.attempts[name].tolist()
    with pytest.raises(pp.PipistrelleError, match="run it with queue_lengths=True"):
        pp.run(jobs, machine, queue_lengths=False, until="5h").queue  # noqa: B018


DOUBTFUL = """
import warnings
import pipistrelle as pp

jobs = pp.generate_workload(20, 16, seed=1)
named = pp.Platform(name="n", pools=(pp.Pool(name="all", nodes=16, names="n[01-16]"),))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    pp.run(jobs, named, scale_platform=2)
print([(one.category.__name__, one.filename == __file__, one.lineno) for one in caught])
warnings.simplefilter("error")
try:
    pp.run(jobs, named, scale_platform=2)
except pp.PipistrelleWarning as error:
    print(error)
"""


def test_doubtful_input_is_a_warning_of_python(tmp_path: Path) -> None:
    """The warning points at the caller's line, and a filter may make it an error; a command would set up the log."""
    script = tmp_path / "doubtful.py"
    script.write_text(DOUBTFUL, encoding="ascii")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)

    told, error = done.stdout.splitlines()
    assert told == "[('PipistrelleWarning', True, 9)]"
    assert "the platform n, scaled by 2, has no names of nodes" in error
    assert done.stderr == ""


def test_without_a_package_the_extra_is_named(
    jobs: pp.Workload, machine: pp.Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without pyarrow, polars or matplotlib an error says what to install."""
    found = pp.run(jobs, machine)
    table = found.jobs
    load = builtins.__import__

    def missing(name: str, *more: Any) -> Any:
        if name.partition(".")[0] in ("pyarrow", "polars", "pandas", "matplotlib"):
            raise ImportError(name)
        return load(name, *more)

    monkeypatch.setattr("pipistrelle.api.tables.import_module", missing)
    for ask, package in (
        (lambda: found.machine, "pyarrow"),
        (table.to_pandas, "pandas"),
        (table.to_polars, "polars"),
        (found.plot.waits, "matplotlib"),
    ):
        with pytest.raises(pp.PipistrelleError, match=rf"needs {package}.*pipistrelle\[notebook\]"):
            ask()


def test_a_comparison_has_differences_and_classes(jobs: pp.Workload, machine: pp.Platform) -> None:
    """Each metric has a row per run, with the difference to the first; classes are compared, too."""
    fcfs, easy = (pp.run(jobs, machine, name) for name in ("fcfs", "easy"))
    found = pp.compare(fcfs, easy, by=["size"])
    rows = list(found.figures.rows())

    assert found.jobs == 80
    assert [row["scheduler"] for row in rows] == ["fcfs", "easy"] * 3
    assert rows[1]["difference"] == pytest.approx(rows[1]["mean"] - rows[0]["mean"])
    assert rows[0]["mean"] == pytest.approx(fcfs.summary.mean_wait)
    assert sum(row["jobs"] for row in found.classes.rows() if row["run"] == 1) == 80
    assert not found.same
    assert "<td>easy</td>" in found._repr_html_()


def test_plots_draw_on_given_axes(jobs: pp.Workload, machine: pp.Platform) -> None:
    """Several runs fit in one figure; busy units are a share of the machine."""
    from matplotlib.figure import Figure

    first, second = (pp.run(jobs, machine, name) for name in ("fcfs", "easy"))
    left, middle, right = Figure().subplots(1, 3)
    assert first.plot.waits(left) is second.plot.waits(left) is left
    assert len(left.lines) == 2
    shares = first.plot.utilisation(middle).patches[0].get_data().values
    assert 20 < np.nanmax(shares) <= 100
    first.plot.queue(right, units=True)
    second.plot.slowdowns(right)
    first.plot.utilisation(right, days=0)


def test_the_use_of_a_resource_of_shared_nodes_is_drawn(jobs: pp.Workload, machine: pp.Platform) -> None:
    """Its mean is the utilisation in the summary; a resource that the nodes do not have is named."""
    case = bundled_folder() / "shared-nodes-gpus"
    found = pp.run(str(case / "jobs.json"), str(case / "machine.toml"), "conservative")
    for resource, told in found.metrics["resources"].items():
        data = found.plot.utilisation(resource=resource, days=1e-4).patches[0].get_data()
        mean = float(np.nansum(data.values * np.diff(data.edges)) / (data.edges[-1] - data.edges[0]))
        assert mean == pytest.approx(100 * told["utilisation"])
    assert found.takes["node_gpu"].tolist() == [0.5, 0.5, 1.0, 0.0, 0.5, 0.0, 2.0]
    with pytest.raises(pp.PipistrelleError, match="do not have the resource 'nvme': expected one of"):
        found.plot.utilisation(resource="nvme")
    with pytest.raises(pp.PipistrelleError, match="no resource: the nodes have units only"):
        pp.run(jobs, machine, "fcfs").plot.utilisation(resource="cores")


def test_progress_is_shown_on_terminals_only(
    jobs: pp.Workload, machine: pp.Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A terminal gets a bar, which is removed at the end; a file or pipe gets nothing."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(progress, "_SOON_S", 0.0)
    monkeypatch.setattr(progress, "_REFRESH_S", 0.0)
    monkeypatch.setattr(progress, "_INSTANTS", 1)
    for stream, wanted, shown in ((Terminal(), None, True), (io.StringIO(), None, False), (Terminal(), False, False)):
        monkeypatch.setattr(sys, "stderr", stream)
        pp.run(jobs, machine, progress=wanted)
        assert ("/80 jobs" in stream.getvalue()) == shown
        assert not shown or stream.getvalue().endswith(" \r")


def test_a_run_shows_itself(jobs: pp.Workload, machine: pp.Platform, tmp_path: Path) -> None:
    """Text, HTML and page have the figures; names are escaped."""
    found = pp.run(jobs, pp.homogeneous(16, "<b>"), out=tmp_path / "out")

    assert "mean wait" in repr(found)
    assert "&lt;b&gt;" in found._repr_html_()
    assert found.report(tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")
