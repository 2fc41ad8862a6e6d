"""A trial of a study, `run` and `run_in_process` are the same run, whatever field of its description is varied."""

from contextlib import chdir
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import fields, replace

from pipistrelle.platforms.description import Platform
from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.runs.description import setup
from pipistrelle.runs.description.setup import SetupCache, load_inputs, load_setup
from pipistrelle.runs.description.spec import Decides, RunSpec, decided
from pipistrelle.runs.description.spec_file import convert_spec
from pipistrelle.runs.execution.job_table import JobTableBook
from pipistrelle.runs.execution.run import RunOptions, run, run_in_process
from pipistrelle.runs.inputs.named import load_workload
from pipistrelle.studies.trials.axes import REFUSED
from pipistrelle.studies.trials.grid import TrialMaker, prepared
from pipistrelle.studies.trials.study import Study
from pipistrelle.studies.trials.trial import table_of_run
from pipistrelle.traces.generator import generate

NAMES: Final = {one.name: one.encode_name for one in fields(RunSpec)}
FROM: Final = {"folder": "x", "snapshot": "y", "sha256": "0", "notices": 1, "now": 0.0, "scheduler": "easy"}
#: values of fields that are texts, lists or tables: their types are not specific enough
TEXTS: Final[dict[str, list[Any]]] = {
    "scheduler": ["fcfs", "sjf", "conservative", "maui", "recorded", "nobody"],
    "order": ["sjf", "fcfs", "pbs"],
    "backfill": ["none", "firstfit", "conservative"],
    "placement": ["contiguous", "best-fit", "pack"],
    "formula": ["queue_priority", "walltime", "1 +"],
    "queue_priority": [{"q1": 5.0}, {"q2": 5.0}],
    "fairshare_shares": [{"u1": 5.0}, {"u2": 1.0}],
    "fairshare_decay_time": ["1h", "1d"],
    "dual_ended": [["nodes<=2"], ["nodes<=4"]],
    "base_order": [["nodes<=2"], ["nodes<=4"]],
    "reliability": ["auto", "intrepid-classes"],
    "preempt_mode": [["cancel"], ["requeue"]],
    "preempt": [["q2=q1"], ["q1=q2"]],
    "priority_tier": [{"q1": 5.0}, {"q2": 5.0}],
    "preempt_grace": [["60s"], ["q1=5min"]],
    "preempt_exempt_time": ["10min", "1h"],
    "config": ["maui.cfg", "other.cfg"],
    "accounting": [[], ["accounts.txt"]],
    "reservations": [[], ["reservations.csv"]],
    "slurm_prefix": ["/usr", "/opt/slurm"],
    "slurm": [{}, {"PriorityType": "priority/multifactor", "PriorityWeightJobSize": 1000.0}],
    "poll": ["7min", "1h"],
    "platform": ["machine.toml", "larger.toml", "tiny"],
    "scale_platform": ["200%", "50%"],
    "node_table": ["nodes.csv", "other.csv"],
    "workload": [["jobs.swf"], ["others.swf"], ["seven-jobs"], ["jobs.swf", "others.swf"]],
    "timezone": ["Europe/Berlin", "Asia/Tokyo"],
    "columns": ["JobID,Submit", "JobID,Submit,Elapsed"],
    "transform": [[{"step": "filter", "size": "<=4"}], [{"step": "scale", "load": 2.0}]],
    "partition_pools": [["1=fast"], ["1=slow", "2=fast|slow"]],
    "from_": ["2h", "10h", "2020-01-01 06:00", "never"],
    "until": ["6h", "1d", "2020-01-01 12:00"],
    "failures": [["exponential,mtbf=5d"], ["weibull,mtbf=9d,shape=0.7"], ["none"]],
    "repair": ["1h", "4h"],
    "outages": ["outages.csv", "other-outages.csv"],
    "outages_class": ["a", "b"],
    "outages_start": ["1h", "5h"],
    "outages_shortest": ["30min", "2h"],
    "maintenance": [["@5h +2h all"], ["@9h +4h 0-3"]],
    "checkpoint": ["1h", "daly"],
    "dump": ["1min", "10min"],
    "read": ["1min", "10min"],
    "spares": ["1", "20%"],
    "batsim": [{}, {"energy": True}],
    "resumed": [FROM, FROM | {"now": 1.0}],
    "files": [{}, {"jobs.swf": "0"}],
}
#: properties set by the fields, some value of which must be visible in the jobs
SHOWN: Final = (Decides.INPUTS, Decides.EVENTS, Decides.SEED, Decides.ENGINE)
#: fields whose values have no effect on the jobs of these tests
WITHOUT_EFFECT: Final = frozenset(
    [
        "checkpoint_walltime",
        "expected_attempts",
        "ignore_constraints",
        "max_attempts",
        "requeue",
        "restart_walltime",
        "sort",
        "strict",
    ]
)
FAILING: Final = {"failures": ["exponential,mtbf=2d"], "repair": "1h"}
PREEMPTING: Final = {"preempt-type": "partition_prio", "priority-tier": {"q1": 5.0}}
#: other options of a run that give some fields an effect
BESIDE: Final[list[tuple[str, dict[str, Any]]]] = [
    ("repair seed reliability_factor expected_attempts resilience spares", FAILING),
    ("dump read checkpoint_walltime restart_walltime", FAILING | {"checkpoint": "1h"}),
    ("max_attempts requeue preempt_mode priority_tier preempt_grace preempt_exempt_time", PREEMPTING),
    ("preempt_youngest_first preempt_type", PREEMPTING),
    ("preempt", {"preempt-type": "qos"}),
    ("outages_class outages_start outages_shortest", {"outages": "outages.csv"}),
    ("formula queue_priority unknown_shares fairshare_entity fairshare_shares", {"order": "pbs"}),
    ("fairshare_decay_time fairshare_decay_factor", {"order": "pbs"}),
    ("backfill_depth strict_ordering", {"backfill": "depth"}),
    ("blocking admission", {"reliability": "auto"}),
    ("config strict_config", {"scheduler": "maui", "config": "maui.cfg"}),
    ("accounting reservations slurm", {"scheduler": "slurm", "config": "slurm.conf", "platform": "slurm.conf"}),
    ("warm", {"from": "10h"}),
    ("age_aware", {"node-table": "nodes.csv"}),
]


def alternatives(name: str) -> list[Any]:
    """Return values of a field, as plain values: by its type, or those of `TEXTS`."""
    if name in TEXTS:
        return TEXTS[name]
    hint, limits = get_type_hints(RunSpec, include_extras=True)[name], msgspec.Meta()
    while (origin := get_origin(hint)) in (Annotated, Union, UnionType):
        if origin is Annotated:
            hint, *told = get_args(hint)
            limits = next((one for one in told if isinstance(one, msgspec.Meta)), limits)
        else:
            (hint,) = (one for one in get_args(hint) if one is not type(None))
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    low = limits.gt if limits.gt is not None else limits.ge or 0
    made = {bool: [False, True], int: [int(low) + 1, int(low) + 2], float: [low + 0.25, low + 0.5]}.get(hint)
    assert made is not None, f"RunSpec.{name} is new: name some values of it in TEXTS"
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the files that values name."""
    home = tmp_path_factory.mktemp("road")
    (home / "jobs.swf").write_text(swf(seed=3))
    (home / "others.swf").write_text(swf(seed=4))
    for name, nodes in (("machine", 6), ("larger", 12)):
        pools = "".join(f'[[pools]]\nname = "{pool}"\nnodes = {nodes}\n' for pool in ("fast", "slow"))
        (home / f"{name}.toml").write_text(f'name = "{name}"\n{pools}')
    (home / "nodes.csv").write_text("node,class\n0-3,old\n4-11,stable\n")
    (home / "other.csv").write_text("node,class\n0-7,stable\n8-11,old\n")
    (home / "outages.csv").write_text("node,down,up,cause\n0,3600,7200,\n3,36000,90000,\n")
    (home / "other-outages.csv").write_text("node,down,up,cause\n0-11,7200,9000,\n")
    (home / "maui.cfg").write_text("BACKFILLPOLICY FIRSTFIT\n")
    (home / "slurm.conf").write_text(
        "ClusterName=one\nSlurmctldHost=head\nSelectType=select/linear\nPriorityType=priority/basic\n"
        "NodeName=n[01-12] CPUs=1\nPartitionName=main Nodes=ALL Default=YES MaxTime=UNLIMITED\n"
    )
    (home / "accounts.txt").write_text(
        "Cluster|Account|User|Share|GrpJobs|GrpTRES|MaxJobs|QOS|Def QOS|ParentName\none|root||1||||normal||\n"
    )
    (home / "reservations.csv").write_text(
        't,command\n20,"scontrol create reservation reservationname=m1 starttime=2020-01-01T05:00:00 '
        'duration=02:00:00 users=root flags=maint,ignore_jobs nodes=ALL"\n'
    )
    (home / "other.cfg").write_text("BACKFILLPOLICY NONE\nNO_SUCH_PARAMETER 1\n")
    return home


def swf(seed: int) -> str:
    """Return a log of 40 jobs; every seventh was cancelled while it waited."""
    made = generate(jobs=40, units=12, seed=seed, load=1.2)
    lines = ["; MaxNodes: 12", "; UnixStartTime: 1577836800", "; TimeZoneString: UTC"]
    columns = zip(made.submit.tolist(), made.size.tolist(), made.runtime.tolist(), made.walltime.tolist(), strict=True)
    for number, (submit, size, runtime, walltime) in enumerate(columns, 1):
        gone = number % 7 == 0
        kind = 1 + number % 2
        words = (number, int(submit / 3), 900 if gone else 60, 0 if gone else int(runtime), size, -1, -1, size)
        rest = (int(walltime), -1, 5 if gone else 1, number % 3, 1, 1, kind, kind, -1, -1)
        lines.append(" ".join(map(str, (*words, *rest))))
    return "\n".join(lines) + "\n"


def outcome(spec: RunSpec, how: Any) -> dict[str, Any] | str:
    """Return the results of a run's jobs, or why it ended early or could not start."""
    book = JobTableBook()
    try:
        table = how(spec, book) or book.table(until=load_setup(spec).until, dropped=0)
    except PipistrelleError as error:
        return str(error)
    return columns_of(table)


def columns_of(table: Any) -> dict[str, Any]:
    """Return a table's columns as lists, with holds by job and time; NaN as None."""
    names = ("submit", "start", "end", "size", "walltime", "state", "attempts", "wait", "execution")
    plain = {name: np.where(np.isnan(column := getattr(table, name)), -1.0, column).tolist() for name in names}
    holds = zip(table.holder.tolist(), table.held_from.tolist(), table.held_units.tolist(), strict=True)
    return plain | {"holds": sorted(holds), "units": table.units, "ended": table.ended, "until": table.until}


def by_run(spec: RunSpec, book: JobTableBook) -> None:
    """Run."""
    run(spec, RunOptions(observers=[book]))


def by_spec(spec: RunSpec, book: JobTableBook) -> None:
    """Run in this process from the description alone."""
    run_in_process(spec=spec, options=RunOptions(observers=[book]))


def by_objects(spec: RunSpec, book: JobTableBook) -> None:
    """Run in this process with the workload, the machine and the policy as objects."""
    workload, machine = load_inputs(spec)
    policy = spec.make_policy(warn=False)
    assert isinstance(machine, Platform)
    run_in_process(workload, policy, platform=machine, spec=spec, options=RunOptions(observers=[book]))


def check_road(base: dict[str, Any], name: str, values: list[Any]) -> None:
    """Check that a study's trials of an axis, run and run_in_process give the same, or are refused alike."""
    option = NAMES[name]
    options = {key: value for key, value in base.items() if key != option}
    if option in REFUSED:
        with pytest.raises(PipistrelleError, match=f"a study does not support '{option}'"):
            Study(options, {option: values})
        return
    specs = [convert_spec({**options, option: value}, "the test") for value in values]
    runs = [outcome(spec, by_run) for spec in specs]
    for spec, found in zip(specs, runs, strict=True):
        assert outcome(spec, by_spec) == found
    study = Study(options, {option: values})
    errors = [found for found in runs if isinstance(found, str)]
    try:
        make = TrialMaker(study, prepared(study), ".")
    except PipistrelleError as error:
        said = str(error)
    else:
        said = ""
    if said:
        assert option in said
        assert any(found in said for found in errors)
        return
    for point, (spec, found) in enumerate(zip(specs, runs, strict=True)):
        trial = make(point, 0)
        assert replace(trial.spec, seed=spec.seed, files={}) == spec
        of_trial = outcome(trial.spec, lambda spec, book, engine=trial.engine: table_of_run(spec, engine))
        assert of_trial == (found if trial.spec.seed == spec.seed else outcome(trial.spec, by_run))
        assert of_trial == outcome(trial.spec, by_objects)


@st.composite
def axes(draw: st.DrawFn, name: str) -> tuple[dict[str, Any], str, list[Any]]:
    """Draw what else a run is, and two values of a field."""
    several = st.lists(st.sampled_from(alternatives(name)), min_size=2, max_size=2, unique_by=repr)
    base: dict[str, Any] = {"workload": ["jobs.swf"], "platform": "machine.toml"}
    beside = [more for names, more in BESIDE if name in names.split()] or [{}, FAILING, PREEMPTING]
    return base | draw(st.sampled_from(beside)), name, draw(several)


@pytest.mark.parametrize("name", sorted(NAMES))
@settings(max_examples=1, derandomize=True)
@given(data=st.data())
def test_trials_are_the_runs_that_they_say(name: str, data: st.DataObject, folder: Path) -> None:
    """Two values of each field: a study's trials, run and run_in_process have the same jobs or the same error."""
    with chdir(folder):
        check_road(*data.draw(axes(name)))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(NAMES))
@settings(max_examples=25)
@given(data=st.data())
def test_trials_are_the_runs_that_they_say_for_many_values(name: str, data: st.DataObject, folder: Path) -> None:
    """The same for more pairs of values beside more other fields."""
    with chdir(folder):
        check_road(*data.draw(axes(name)))


@pytest.mark.parametrize("name", sorted(name for name, kind in decided().items() if kind in SHOWN))
def test_every_field_makes_a_difference(name: str, folder: Path) -> None:
    """Some values of a field lead to other jobs, or to an error: what decides them is not lost on the road."""
    base: dict[str, Any] = {"workload": ["jobs.swf"], "platform": "machine.toml"}
    beside = [more for names, more in BESIDE if name in names.split()] or [{}]
    with chdir(folder):
        plain = [base | more for more in beside]
        specs = [convert_spec(one | {NAMES[name]: value}, "the test") for one in plain for value in alternatives(name)]
        found = [outcome(spec, by_run) for spec in [convert_spec(one, "the test") for one in plain] + specs]
    assert (name in WITHOUT_EFFECT) == all(one == found[0] for one in found)


def test_every_field_declares_what_it_decides() -> None:
    """A field without a classification is refused when it is asked for."""
    assert decided().keys() == NAMES.keys()
    assert {name for name, option in NAMES.items() if option in REFUSED} == {
        *("dialect", "batsim", "queue_lengths", "format", "files", "resumed"),
    }


def jobs_of(run: dict[str, Any], axis: dict[str, list[Any]]) -> list[int]:
    """Return the number of jobs of each trial of a study."""
    study = Study(run, axis)
    make = TrialMaker(study, prepared(study), ".")
    return [len(table_of_run(make(point, 0).spec, "reference").submit) for point in range(len(study.points))]


def test_a_later_begin_leaves_jobs_out(folder: Path) -> None:
    """A study has as many jobs as the run; it used to have those of the whole log."""
    assert jobs_of({"workload": "demo"}, {"from": ["2d", "10d"]}) == [4642, 3531]
    with chdir(folder):
        cold, warm = jobs_of(
            {"workload": "jobs.swf", "platform": "machine.toml", "from": "2h"}, {"warm": [False, True]}
        )
    assert cold < warm


def test_cancellations_are_an_axis(folder: Path) -> None:
    """Jobs that were cancelled while they waited are kept by one trial and dropped by the other."""
    with chdir(folder):
        run = {"workload": "jobs.swf", "platform": "machine.toml"}
        assert jobs_of(run, {"cancellations": ["drop", "keep"]}) == [35, 40]


def test_a_trial_is_checked_as_a_run_is() -> None:
    """The log's own starts are refused where the log has none, also where the scheduler is an axis."""
    with pytest.raises(PipistrelleError, match="does not give start times of its jobs"):
        prepared(Study({"workload": "seven-jobs"}, {"scheduler": ["easy", "recorded"]}))


def test_trials_that_share_inputs_read_them_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The workload is read once for all policies, seeds, failures and horizons."""
    read = []
    monkeypatch.setattr(setup, "load_workload", lambda name, **how: read.append(name) or load_workload(name, **how))
    cache, base = SetupCache(), RunSpec(workload=("jobs.swf",), failures=("exponential,mtbf=2d",), repair="1h")
    with chdir(folder):
        for seed in (1, 2):
            for scheduler in ("easy", "fcfs"):
                for until in ("1d", "2d"):
                    load_setup(replace(base, seed=seed, scheduler=scheduler, until=until), cache=cache)
        assert read == ["jobs.swf"]
        load_setup(replace(base, from_="1h"), cache=cache)
    assert read == ["jobs.swf", "jobs.swf"]
