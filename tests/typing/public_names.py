"""What a notebook does, with every public name: mypy checks this file strictly, and tests/api/test_names.py runs it."""

import os
import tempfile
import warnings
from pathlib import Path

import pipistrelle as pp

live = Path(__file__).resolve().parents[2] / "docs" / "examples" / "live"
folder = Path(tempfile.mkdtemp())
os.chdir(folder)


# Workloads and machines
def machine() -> pp.Platform:
    """Return a machine of two pools, written and read again."""
    text = 'name = "m"\n[[pools]]\nname = "a"\nnodes = 12\n[[pools]]\nname = "b"\nnodes = 4\n'
    same = pp.Platform(name="m", pools=(pp.Pool(name="a", nodes=12), pp.Pool(name="b", nodes=4)))
    assert pp.parse_platform(text, "m.toml") == same
    return same


assert "easy" in pp.bundled("scheduler")
tiny: pp.Platform = pp.load_platform("tiny")
alike: pp.Platform = pp.homogeneous(16, "alike")
jobs: pp.Workload = pp.generate_workload(60, 16, seed=3, load=0.9)
busier = pp.transform_workload(jobs, {"step": "scale", "load": 1.2})
pp.save_workload(busier, folder / "busier.swf.gz")
assert len(pp.load_workload(folder / "busier.swf.gz")) == len(jobs)
able, dropped = pp.clean_workload(jobs, 8)
facts = [*pp.describe_workload(jobs), *pp.describe_platform(tiny)]
load: float | None = pp.offered_load(jobs, 16)
(folder / "nodes.csv").write_text("name,installed\nn1,2014-05-01\n")
named = pp.parse_platform('name = "m"\npools = [{ name = "all", nodes = 4, names = "n[1-4]" }]\n', "m.toml")
aged = pp.with_node_rows(named, pp.load_node_rows(f"{folder}/nodes.csv,at=2017-05-01"))
described = pp.Machine(aged.units, aged.info)
nodes: pp.NodeTable = described.nodes
numbers = pp.node_order("id", described)
outages = pp.failure_plan(["exponential,mtbf=1y"], alike, pp.parse_durations("1h")).outages(seed=1, horizon=1e8)


# Schedulers
class Widest:
    """An order of the queue: the widest job first."""

    def rank(self, job: pp.Job) -> float:
        """Return the rank of a job."""
        return -job.size


class HighestIds(pp.Stateless):
    """A placement: the units with the highest numbers."""

    fits_by_count = True

    def pick(self, job: pp.Job, open_units: pp.NodeSet, machine: object) -> pp.NodeSet | None:
        """Return the highest units."""
        return pp.NodeSet.of(sorted(open_units)[-job.size :]) if job.size <= len(open_units) else None


class ShortestFirst(pp.Scheduler):
    """A scheduler of one's own."""

    order = pp.Sjf()

    def decide(self, view: pp.View) -> None:
        """Start all jobs that fit; keep the last node free for a minute."""
        view.windows.add(pp.Window("later", 0.0, 60.0, pp.NodeSet.parse("15"), lambda job: False))
        for job in list(view.waiting):
            if pp.earliest_start(view, job) == view.now and view.fits(job) and view.pick(job) is not None:
                view.start(job, why="the shortest that fits")


def composed() -> pp.ComposedPolicy:
    """Return a scheduler made of parts."""
    return pp.ComposedPolicy("widest", order=Widest(), backfill=pp.Easy(), placement=HighestIds())


by_parts = pp.ComposedPolicy("parts", order=pp.Fcfs(), backfill=pp.Easy(), placement=pp.LowestIds())
by_names = pp.compose(order="sjf", backfill="easy", placement="lowest")
bundled = pp.make_scheduler("easy", order="sjf")
(folder / "maui.cfg").write_text("CREDWEIGHT 1\n")
maui = pp.MauiPolicy(pp.read_maui_config(folder / "maui.cfg")[0])

# Runs
options: pp.RunKeywords = {"until": "30d", "transform": {"step": "scale", "load": 0.9}, "seed": 1}
first: pp.Run = pp.run(jobs, machine(), ShortestFirst, **options)
second = pp.run(jobs, alike, scheduler=composed, out=folder / "second", failures="exponential,mtbf=30d", repair="1h")
for scheduler in (by_parts, by_names, bundled, maui):
    pp.run(workload=jobs, platform=alike, scheduler=scheduler)
again: pp.Run = pp.open(folder / "second")
figures: pp.Summary = again.summary
wait: float | None = figures.mean_wait
table: pp.Table = first.jobs
assert len(table.to_pandas()) == len(table.to_polars()) == len(table)
assert all(map(len, (second.attempts, first.queue, first.machine, first.decisions)))
plots: pp.Plots = first.plot
page: Path = first.report(folder / "page.html")
html: str = first._repr_html_()


# A run's description, and the state of a run
def keep(pause: pp.Pause) -> None:
    """Save the state of a run after two notices."""
    if pause.notices == 2:
        (folder / "state").write_bytes(pp.state_to_json(pause.state()))


spec = pp.RunSpec(workload=("seven-jobs",))
pp.run_spec(spec, pp.RunOptions(between=keep))
pp.run_spec(spec, pp.RunOptions(resume=pp.state_from_json((folder / "state").read_bytes())))
print(pp.why_not_kernel(pp.load_setup(spec), spec))
kernel_jobs = pp.run_kernel(pp.load_setup(spec), spec)

# Comparisons and explanations
compared: pp.Comparison = pp.compare(first, folder / "second", by="size")
rows = compared.figures.to_pandas()
longest = str(first.jobs["job_id"][first.jobs["waiting_time"].argmax()])
why: pp.JobExplanation = pp.explain(first, longest)
print(why.text)

# Forecasts of a live cluster
expected: pp.Forecast = pp.forecast(
    [live / "squeue.txt", live / "nodes.txt"], str(live / "slurm.conf"), [str(live / "accounts.txt")], replicas=2
)
print(len(expected.jobs))

# Studies
description: pp.Study = pp.Study({"workload": "busier.swf.gz"}, {"scheduler": ["fcfs", "easy"]})
results: pp.StudyResults = pp.study(description, out=folder / "study", jobs=1)
same_results = pp.open_study(folder / "study")
drawn: pp.Picture = same_results.picture("boxes", ["mean_wait", "utilisation"], font="cm")
drawn.save(folder / "boxes.pdf")
means: pp.Table = same_results.summary("mean_wait")
objects = pp.study(run={"workload": jobs, "platform": alike}, axes={"scheduler": ["fcfs", ShortestFirst]}, jobs=1)
mine = pp.StudyResults.of({"policy": ["a", "b"], "replica": [0, 0], "mean_wait": [1.0, 2.0]})

warnings.simplefilter("error", pp.PipistrelleWarning)
try:
    pp.run(scheduler="eazy")
except pp.PipistrelleError as error:
    print(error)
