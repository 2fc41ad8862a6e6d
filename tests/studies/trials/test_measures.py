"""What a study measures beside the summary's figures: classes of jobs, costs, distributions."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.protocol.base.log import logger
from pipistrelle.runs.description.setup import load_setup
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.inputs.steps import Filter
from pipistrelle.studies.errors import StudyError
from pipistrelle.studies.inference.gaps import gaps
from pipistrelle.studies.inference.trials import TrialTable
from pipistrelle.studies.inference.words import axis_words, words_of
from pipistrelle.studies.measures.costs import Costs
from pipistrelle.studies.measures.distributions import STEPS, quantiles_of
from pipistrelle.studies.measures.figures import figures_of
from pipistrelle.studies.measures.measures import Measures
from pipistrelle.studies.trials.study import Study
from pipistrelle.studies.trials.trial import table_of_run
from pipistrelle.studies.workers.campaign import run

SPEC = RunSpec(transform=(Filter(first=300),), platform="demo")
FAILING = RunSpec(transform=(Filter(first=300),), platform="demo", failures=("exponential,mtbf=60d",), repair="2h")


def measured(spec: RunSpec, measures: Measures, engine: str = "reference"):
    """Return the figures of a run."""
    table = table_of_run(spec, engine, with_ids=bool(measures.by), with_node_seconds=measures.costs is not None)
    return table, figures_of(table, measures, load_setup(spec).workloads)


def test_figures_of_users_are_means_over_their_jobs():
    """The three users with the most jobs get their own numbers of jobs and mean waits."""
    table, found = measured(SPEC, Measures(by={"user": 3}))
    workload = next(iter(load_setup(SPEC).workloads.values()))
    users = dict(zip((f"w0!{name}" for name in workload.ids), workload.columns["user"].tolist(), strict=True))
    of_row = np.array([users[name] for name in table.ids])
    numbers = {user: int((of_row == user).sum()) for user in set(of_row.tolist())}
    most = sorted(numbers, key=lambda user: (-numbers[user], str(user)))[:3]

    assert {name for name in found.figures if name.startswith("jobs_")} == {f"jobs_user_{user}" for user in most}
    for user in most:
        waits = table.wait[of_row == user]
        assert found.figures[f"jobs_user_{user}"] == numbers[user]
        assert found.figures[f"mean_wait_user_{user}"] == math.fsum(waits.tolist()) / len(waits)


@pytest.mark.parametrize("spec", [SPEC, FAILING], ids=["plain", "failing"])
def test_both_engines_have_the_same_measures(spec):
    """Classes, costs and distributions are equal to the last bit in the kernel and in the reference engine."""
    pytest.importorskip("numba")
    measures = Measures(
        by={"user": ("1", 2)},
        costs=Costs(node_hour=0.5, watts={"busy": 400.0, "down": 5.0, "idle": 100.0}, kwh=0.25),
        distributions=("wait", "slowdown", "bounded_slowdown", "turnaround", "execution"),
    )
    one, other = (measured(spec, measures, engine)[1] for engine in ("reference", "kernel"))

    assert one == other
    assert set(one.quantiles) == set(measures.distributions)


@pytest.mark.parametrize("spec", [SPEC, FAILING], ids=["plain", "failing"])
def test_costs_are_prices_times_node_hours(spec):
    """Every state's share adds up to the whole; without failures busy node-hours are those that jobs held."""
    costs = Costs(node_hour=3.6, watts={"busy": 1000.0, "idle": 100.0}, kwh=0.5)
    table, found = measured(spec, Measures(costs=costs))
    figures, seconds = found.figures, table.node_seconds

    assert figures["cost"] == 3.6 * table.ended * 256 / 3600
    states = ("busy", "idle", "down", "maintenance")
    assert sum(figures[f"cost_{state}"] for state in states) == pytest.approx(figures["cost"])
    assert (figures["cost_down"] > 0) == (spec is FAILING)
    if spec is SPEC:
        assert figures["cost_busy"] == pytest.approx(3.6 * figures["computing"] / 3600)
    assert figures["energy"] == pytest.approx((seconds["busy"] * 1000 + seconds["idle"] * 100) / 3.6e6)
    assert figures["energy_cost"] == 0.5 * figures["energy"]
    assert "energy_down" not in figures
    assert costs.names == {name for name in figures if name.startswith(("cost", "energy"))}


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=900))
def test_quantiles_tell_the_share_below_any_value(waits):
    """The share of jobs at or below a value is known to within a step, and the ends are the least and the greatest."""
    count = len(waits)
    table = np.array(waits), np.ones(count)

    class Waiting:
        wait, execution = table

    found = quantiles_of(Waiting, np.ones(count, dtype=bool), ["wait"])["wait"]

    assert (found[0], found[-1], len(found)) == (min(waits), max(waits), STEPS + 1)
    for value in waits[:20]:
        true = sum(wait <= value for wait in waits) / count
        known = (np.searchsorted(found, value, side="right") - 1) / STEPS
        assert abs(true - known) <= 1 / STEPS + 1e-12


LOGS = {
    "queues": "; MaxJobs: 4\n; Queue: 1 batch\n; Queue: 2 debug\n",
    "other": "; MaxJobs: 4\n; Queue: 1 batch\n; Queue: 2 long\n",
    "none": "; MaxJobs: 4\n",
}


def write_log(path, head, queues):
    """Write an SWF log of a job per queue number."""
    rows = [f"{n} {n * 50} 0 100 1 -1 -1 1 100 -1 1 1 1 -1 {queue} -1 -1 -1" for n, queue in enumerate(queues, 1)]
    path.write_text(head + "\n".join(rows) + "\n")


@pytest.fixture
def logs(tmp_path, monkeypatch):
    """Return a study of three logs with different queues; the last has none."""
    monkeypatch.chdir(tmp_path)
    for name, queues in (("queues", [1, 1, 2, 1]), ("other", [2, 2, 1, 2]), ("none", [-1] * 4)):
        write_log(tmp_path / f"{name}.swf", LOGS[name], queues)
    return {"run": {"platform": "demo"}, "axes": {"workload": [f"{name}.swf" for name in LOGS]}}


@pytest.mark.parametrize("told", [1, "all"])
def test_logs_of_a_study_may_have_different_queues(logs, told):
    """Every log has the figures of its own queues, also of those that only another log has most often."""
    table = run(logs | {"metrics": {"by": {"queue": told}}}, jobs=1).table
    columns = {name: table.column(name).to_pylist() for name in table.column_names if name.startswith("jobs_queue")}
    trials = TrialTable.of(table)

    assert columns["jobs_queue_batch"] == [3, 1, None]
    assert columns["jobs_queue_long"] == [None, 3, None]
    assert columns.get("jobs_queue_debug", [1, None, None]) == [1, None, None]
    assert ("jobs_queue_debug" in columns) == (told == "all")
    assert None not in table.column("mean_wait").to_pylist()
    for metric in ("mean_wait_queue_long", "jobs_queue_long"):
        missing = gaps(trials, metric)
        assert {gap.cell["workload"]: gap.cause for gap in missing} == dict.fromkeys(
            ("queues.swf", "none.swf"), "whose workload has no such jobs"
        )


def test_a_label_that_no_log_has_is_refused(logs):
    """If no log of the study has accounts, the error says so before the first trial."""
    with pytest.raises(StudyError, match=r"metrics\.by\.account: no job of the study has the label 'account'"):
        run(logs | {"metrics": {"by": {"account": 2}}}, jobs=1)


@pytest.mark.parametrize(
    ("transform", "warned"),
    [
        ([{"step": "filter", "begin": "1d"}], True),
        ([{"step": "filter", "begin": "1d", "rebase": True}], False),
        ([], False),
    ],
)
def test_costs_before_the_first_job_give_a_warning(transform, warned):
    """Idle nodes before the first job cost money; a log that begins late is named once, with what to do."""
    study = {"run": {"platform": "demo", "transform": [*transform, {"step": "filter", "first": 50}]}}
    study |= {"axes": {"scheduler": ["fcfs", "easy"]}, "metrics": {"costs": {"node-hour": 1}}}
    told = []
    sink = logger().add(lambda message: told.append(str(message)), format="{message}")
    try:
        table = run(study, jobs=1).table
    finally:
        logger().remove(sink)
    said = [text for text in told if "before the first job of demo" in text]

    assert len(said) == warned
    assert all("1 d of idle nodes" in text and "rebase = true" in text for text in said)
    assert all(begin >= 86400 for begin in table.column("counted_from").to_pylist()) == warned


def test_a_study_has_the_columns_that_it_asks_for(tmp_path):
    """Figures by user, costs and distributions are columns; a precision can judge a user's mean wait."""
    study = {
        "run": {"platform": "demo", "transform": [{"step": "filter", "first": 100}, {"step": "shuffle"}]},
        "axes": {"scheduler": ["fcfs", "easy"]},
        "replicas": {"precision": 0.9, "at-most": 3, "metric": "mean_wait_user_1"},
        "metrics": {"by": {"user": "1"}, "costs": {"node-hour": 1}, "distributions": ["wait"]},
    }
    table = run(study, tmp_path, jobs=1).table

    assert {"jobs_user_1", "mean_wait_user_1", "cost", "cost_idle", "wait_quantiles"} <= set(table.column_names)
    assert str(table.schema.field("jobs_user_1").type) == "int64"
    assert len(table.column("wait_quantiles").to_pylist()[0]) == STEPS + 1
    assert run(study, tmp_path, jobs=1).table.equals(table)


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ({"by": {"quue": "all"}}, r"metrics\.by: jobs cannot be classed by 'quue'.*Did you mean 'queue'"),
        ({"by": {"user": []}}, r"metrics\.by\.user: there are no names"),
        ({"by": {"queue": "all"}}, r"metrics\.by\.queue: no job of the study has the label 'queue'"),
        ({"by": {"user": ["1", "nobody"]}}, r"no job of the study has the user 'nobody'"),
        ({"by": {"user": 0}}, r"by"),
        ({"costs": {}}, "there is no price"),
        ({"costs": {"kwh": 1}}, "there is no price"),
        ({"costs": {"node-hour": 1, "kwh": 1}}, "a price of energy needs the power of nodes"),
        ({"costs": {"watts": {"bussy": 1}}}, "a node has no state 'bussy'.*Did you mean 'busy'"),
        ({"costs": {"node-hour": -1}}, "node-hour"),
        ({"distributions": ["waits"]}, "waits"),
    ],
)
def test_measures_that_cannot_be_taken(metrics, message):
    """One error says what is wrong, before the first trial."""
    with pytest.raises(PipistrelleError, match=message):
        run({"run": {"platform": "demo"}, "metrics": metrics}, jobs=1)


def test_a_precision_of_an_unknown_class_is_refused():
    """The metric of a user who gets no figures of their own does not exist."""
    replicas = {"precision": "5%", "metric": "mean_wait_user_x"}
    with pytest.raises(StudyError, match="there is no metric 'mean_wait_user_x'"):
        run(Study({"platform": "demo"}, replicas=replicas, metrics={"by": {"user": 1}}), jobs=1)


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("mean_wait", ("mean wait", "s", "less")),
        ("mean_wait_2_15", ("mean wait, 2-15 units", "s", "less")),
        ("mean_bounded_slowdown_queue_big_mem", ("mean bounded slowdown, queue big_mem", "", "less")),
        ("utilisation", ("utilisation", "share", "more")),
        ("energy_idle", ("energy idle", "kWh", "less")),
        ("node_seconds_down", ("node time down", "node seconds", "less")),
        ("energy_cost", ("cost of energy", "", "less")),
    ],
)
def test_metrics_in_words(metric, words):
    """Names, units and directions follow from the column."""
    assert tuple(words_of(metric)) == words
    assert axis_words("reliability_factor") == "factor of failure rates"
