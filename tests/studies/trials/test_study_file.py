"""The description of a study: its axes, its points, and everything that is wrong with it before the first run."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.runs.description.setup import load_setup
from pipistrelle.studies.trials.grid import TrialMaker, prepared
from pipistrelle.studies.trials.study import Study

RUN = {"failures": "exponential,mtbf=60d", "repair": "1h"}


def values(axis: object, name: str = "reliability-factor") -> list[object]:
    """Return the values of an axis's text."""
    (read,) = Study({"failures": "exponential,mtbf=60d"}, {name: axis}).axes
    return [setting[name] for setting in read.settings]


@pytest.mark.parametrize(
    ("axis", "expected"),
    [
        ([1, 4, 16], [1, 4, 16]),
        (4, [4]),
        ({"from": 1, "to": 7, "step": 2}, [1, 3, 5, 7]),
        ({"from": 1, "to": 8, "step": 2}, [1, 3, 5, 7]),
        ({"from": 0.1, "to": 0.4, "step": 0.1}, [0.1, 0.2, 0.3, 0.4]),
        ({"from": 2, "to": 1, "count": 3}, [2, 1.5, 1]),
        ({"from": 1, "to": 16, "count": 5, "scale": "log"}, [1, 2, 4, 8, 16]),
    ],
)
def test_values_of_an_axis(axis, expected):
    """Lists, single values, ranges by step and by count, linear and on a log scale."""
    assert values(axis) == expected


def test_ranges_of_lengths_of_time():
    """Both ends stay as written; values between them are in seconds, to six digits."""
    log = {"from": "1min", "to": "13d", "count": 3, "scale": "log"}

    assert values({"from": "1h", "to": "1d", "step": "6h"}, "repair") == ["1h", "25200s", "46800s", "68400s"]
    assert values(log, "repair") == ["1min", "8209.26s", "13d"]


def test_zipped_options_and_variants():
    """Options can vary together, as unnamed lists or named tables; columns show both."""
    study = Study(
        {"repair": "1h", "failures": "exponential,mtbf=9d"},
        {
            "checkpoint,dump": [["daly", "1min"], ["1h", "2min"]],
            "load": [
                {"name": "as it was"},
                {"name": "denser", "transform": [{"step": "scale", "load": 0.9}], "until": "20d"},
            ],
        },
    )
    labels = [point.labels for point in study.points]

    assert study.size == len(labels) == 4
    assert [(one["checkpoint"], one["dump"], one["load"]) for one in labels] == [
        ("daly", "1min", "as it was"),
        ("daly", "1min", "denser"),
        ("1h", "2min", "as it was"),
        ("1h", "2min", "denser"),
    ]
    assert [one["dump_seconds"] for one in labels] == [60.0, 60.0, 120.0, 120.0]
    assert study.points[1].spec.transform[0].load == 0.9
    assert study.points[3].spec.until == "20d"


def test_every_study_has_the_columns_that_tell_what_it_was():
    """Also of options that do not vary."""
    (point,) = Study({"scheduler": "fcfs", **RUN}).points

    assert point.labels == {
        "policy": "fcfs",
        "workload": "demo",
        "platform": None,
        "reliability_factor": 1.0,
        "repair": "1h",
        "repair_seconds": 3600.0,
    }


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**63), st.integers(0, 10**6), st.sampled_from([0, 1, 5]))
def test_seeds_depend_on_study_and_replica_alone(seed, replica, number):
    """Every point has the same in a replica, and any other replica or study another."""
    study = Study(RUN, {"scheduler": ["fcfs", "easy"], "reliability-factor": [1, 2, 4]}, {"count": 2, "seed": seed})
    found = study.seed_of(study.points[number], replica)

    assert found == study.seed_of(study.points[2], replica)
    assert found != study.seed_of(study.points[number], replica + 1)
    assert 0 <= found < 2**53


def test_failures_are_shared_by_policies_and_scaled_by_factors():
    """All points of a replica have the same draws: with a factor times to a node's first failure are shorter."""
    study = Study({"platform": "demo", **RUN}, {"scheduler": ["fcfs", "easy"], "reliability-factor": [1, 4]}, 2)
    make = TrialMaker(study, prepared(study), ".")

    def first_failures(point: int, replica: int) -> dict[int, float]:
        happens = load_setup(make(point, replica).spec).reliability
        outages = happens.failures.outages(happens.seed, 2e7)
        found: dict[int, float] = {}
        for outage in outages:
            found.setdefault(outage.node, outage.down)
        return found

    easy, fcfs, faster, other = (first_failures(*which) for which in ((2, 0), (0, 0), (1, 0), (0, 1)))
    assert easy == fcfs != other
    shared = easy.keys() & faster.keys()
    assert len(shared) > 200
    assert all(abs(easy[node] - 4 * faster[node]) < 0.01 for node in shared)


def test_steps_that_draw_have_the_seed_of_the_replica():
    """Unless the study sets one; steps that draw nothing are unchanged, so that workloads are shared."""
    shuffled = [{"step": "filter", "first": 50}, {"step": "shuffle"}, {"step": "shuffle", "seed": 7}]
    study = Study({"transform": shuffled}, {"scheduler": ["fcfs", "easy"]}, 2)
    make = TrialMaker(study, prepared(study), ".")
    seeds = [[step.seed for step in make(point, replica).spec.transform] for point in (0, 1) for replica in (0, 1)]

    assert seeds[:2] == seeds[2:]
    assert [row[0] for row in seeds] == [1] * 4
    assert seeds[0][1] != seeds[1][1]
    assert [row[2] for row in seeds] == [7] * 4


def test_replicas_may_have_jobs_of_their_own():
    """Drawn by a model; all points of a replica share them."""
    redrawn = [{"step": "redraw", "jobs": 40}]
    study = Study({"transform": redrawn, "platform": "demo"}, {"scheduler": ["fcfs", "easy"]}, 2)
    make = TrialMaker(study, prepared(study), ".")

    def submits(point, replica):
        return load_setup(make(point, replica).spec).workloads["w0"].submit.tolist()

    assert submits(0, 0) == submits(1, 0) != submits(0, 1)
    assert len(submits(0, 1)) == 40


WRONG = {
    "an unknown option": ({"axes": {"repare": ["1h"]}}, "no option 'repare'.*Did you mean 'repair'"),
    "an unknown option of all runs": ({"run": {"repare": "1h"}}, "no option 'repare'"),
    "an option that no trial has": ({"run": {"dialect": "batsim"}}, "speak no dialect"),
    "an empty axis": ({"axes": {"repair": []}}, "axes.repair: the axis has no values"),
    "a value twice": ({"axes": {"repair": ["1h", "1h"]}}, "a value occurs twice"),
    "a value of another type": ({"axes": {"repair": [3]}}, "repair 3.*expected text in quotes"),
    "an option twice": ({"run": {"repair": "1h"}, "axes": {"repair": ["2h"]}}, "set for all runs"),
    "two axes of one option": (
        {"axes": {"repair": ["1h"], "repair,dump": [["1h", "2min"]]}},
        "two axes set the option 'repair'",
    ),
    "a zip of another length": ({"axes": {"repair,dump": [["1h"]]}}, "need one value each"),
    "a variant without a name": ({"axes": {"load": [{"until": "1d"}]}}, "a variant has no name"),
    "a range without an end": ({"axes": {"repair": {"from": "1h"}}}, "a range cannot be read"),
    "a range for ever": ({"axes": {"seed": {"from": 1, "to": 5, "step": -1}}}, "a range never ends"),
    "a range of both kinds": ({"axes": {"repair": {"from": 1, "to": "1d", "count": 3}}}, "mixes numbers and lengths"),
    "a log of zero": (
        {"axes": {"reliability-factor": {"from": 0, "to": 1, "count": 3, "scale": "log"}}},
        "a log scale has no zero",
    ),
    "too many values": ({"axes": {"seed": {"from": 1, "to": 10**9, "step": 1}}}, "more than 100,000 values"),
    "a seed of all runs": ({"run": {"seed": 3}}, "Move seed to \\[replicas\\]"),
    "seeds and replicas": ({"axes": {"seed": [1, 2]}, "replicas": {"count": 2}}, "replicas would be equal"),
    "no replica": ({"replicas": {"count": 0}}, "replicas.count"),
    "a misspelt key": ({"replicas": {"cuont": 3}}, "unknown key 'cuont'.*Did you mean 'count'"),
    "a window that is none": ({"metrics": {"warm-up": "soon"}}, "is not a length of time"),
    "sizes that do not ascend": ({"metrics": {"sizes": [4, 2]}}, "size bounds must ascend"),
    "a program": ({"run": {"scheduler": "./mine {endpoint}"}}, "cannot be a program"),
    # errors that only show with the inputs
    "no such scheduler": ({"axes": {"scheduler": ["fcfs", "esay"]}}, "scheduler esay: .*Did you mean 'easy'"),
    "no such workload": ({"run": {"workload": "dmeo"}}, "the study|dmeo"),
    "a variant is called by its name": (
        {"axes": {"log": [{"name": "KTH", "workload": "dmeo", "platform": "demo"}]}},
        "the study: log KTH: .*'dmeo'",
    ),
    "a combination that cannot run": (
        {"run": {"failures": "none"}, "axes": {"repair": ["1h", "2h"]}},
        "repair 1h: --repair has no effect",
    ),
    "replicas without chance": ({"replicas": {"count": 5}}, "all replicas would be the same"),
    "a placement that the machine cannot have": (
        {"run": {"platform": "demo"}, "axes": {"node-order": ["id", "alps"]}},
        "node-order alps",
    ),
    "a window longer than the run": ({"metrics": {"warm-up": "900y"}}, "leave nothing of a run"),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_are_raised_before_the_first_run(name, tmp_path):
    """One message that names the place, whatever it is."""
    told, message = WRONG[name]
    with pytest.raises(PipistrelleError, match=f"(?s){message}"):
        prepared(Study(**told))


def test_a_file_says_the_same(tmp_path):
    """Tables of TOML are the arguments; a file that is none is refused with its line."""
    path = Path(tmp_path / "study.toml")
    path.write_text('[run]\nrepair = "1h"\n[axes]\nscheduler = ["fcfs", "easy"]\n[replicas]\ncount = 3\n')
    study = Study.read(path)
    assert (study.size, study.replicas.count, study.run) == (2, 3, {"repair": "1h"})

    path.write_text("[axes]\nscheduler = [fcfs]\n")
    with pytest.raises(PipistrelleError, match=r"study\.toml, line 2, column 14: this is not TOML"):
        Study.read(path)
    path.write_text("[axis]\nscheduler = ['fcfs']\n")
    with pytest.raises(PipistrelleError, match=r"unknown key 'axis'\. Did you mean"):
        Study.read(path)
