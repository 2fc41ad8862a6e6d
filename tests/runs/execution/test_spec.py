"""The description of a run: writing, reading, errors, and comparison of inputs."""

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipistrelle.models.workloads.options import parse_factor
from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.protocol.base.log import logger
from pipistrelle.runs.description.setup import load_setup
from pipistrelle.runs.description.spec import BatsimSpec, RunSpec
from pipistrelle.runs.description.spec_file import (
    InputChanged,
    SpecError,
    checked,
    convert_spec,
    find_spec,
    read_raw,
    read_spec,
    to_toml,
    with_digests,
)
from pipistrelle.runs.execution.connection import InProcess, WithChild, check_scheduler
from pipistrelle.runs.execution.run import RunOptions, run
from pipistrelle.runs.inputs.steps import Copy, Filter, Merge, Redraw, Scale, Shuffle

WORDS = st.text(st.characters(codec="utf-8"), max_size=8)
NAMES = st.lists(WORDS, max_size=3).map(tuple)
NUMBERS = st.floats(0, 1e9)
STEPS = st.one_of(
    st.builds(Scale, load=st.none() | st.floats(0.1, 2), walltime=st.none() | WORDS, seed=st.integers(0, 9)),
    st.builds(Filter, user=NAMES, first=st.none() | st.integers(1, 9), invert=st.booleans()),
    st.builds(Merge, others=NAMES, align=st.sampled_from(["auto", "date"])),
    st.builds(Shuffle, within=st.none() | WORDS),
    st.builds(Redraw, model=st.none() | WORDS, jobs=st.none() | st.integers(1, 9)),
    st.builds(Copy, times=st.integers(1, 5)),
)
SPECS = st.builds(
    RunSpec,
    scheduler=WORDS | NAMES,
    order=st.none() | WORDS,
    queue_priority=st.dictionaries(WORDS, st.floats(-1e9, 1e9), max_size=2),
    unknown_shares=st.none() | NUMBERS,
    strict_ordering=st.none() | st.booleans(),
    poll=st.none() | WORDS,
    platform=st.none() | WORDS,
    workload=NAMES,
    units=st.sampled_from(["nodes", "processors"]),
    transform=st.lists(STEPS, max_size=3).map(tuple),
    strict=st.booleans(),
    until=st.none() | WORDS,
    queue_lengths=st.booleans(),
    dispersion=st.none() | st.floats(1e-9, 1e9),
    failures=NAMES,
    seed=st.integers(0, 2**53),
    reliability_factor=st.floats(1e-9, 1e9),
    max_attempts=st.none() | st.integers(1, 9),
    expected_attempts=st.integers(0, 10**9),
    batsim=st.none() | st.builds(BatsimSpec, events=NAMES, mmax=st.integers(-3, 9), sched_cfg=st.none() | WORDS),
    files=st.dictionaries(WORDS, WORDS, max_size=2),
)


@given(SPECS)
def test_a_run_is_read_as_it_was_written(spec: RunSpec) -> None:
    """TOML and JSON give the same, and Python's objects equal those of a file."""
    assert convert_spec(read_raw(to_toml(spec), "x"), "x") == spec
    assert convert_spec(read_raw(msgspec.json.encode(spec).decode(), "x"), "x") == spec
    assert checked(spec) == spec


@pytest.mark.parametrize(
    ("text", "fragments"),
    [
        ("shceduler = 'fcfs'", ["x.toml: unknown key 'shceduler'", "Did you mean 'scheduler'"]),
        ("[[transform]]\nstep = 'scale'\nlaod = 1", ["x.toml: transform[0]: unknown key 'laod'", "'load'"]),
        (
            "[[transform]]\nstep = 'scael'",
            ["transform[0].step: not one of the choices", "Did you mean 'scale'"],
        ),
        ("[[transform]]\nstep = 'copy'", ["x.toml: transform[0]", "the key 'times' is missing"]),
        ("[batsim]\nenregy = true", ["x.toml: batsim: unknown key 'enregy'", "'energy'"]),
        ("seed = 'one'", ["x.toml: seed: a value of the wrong type", "expected a whole number, found 'one'"]),
        ("seed = -1", ["x.toml: seed: an invalid value: expected a whole number >= 0, found -1"]),
        ("scheduler = 5", ["x.toml: scheduler", "expected text in quotes or a list, found 5"]),
        ("workload = [1]", ["x.toml: workload[0]", "expected text in quotes, found 1"]),
        ("units = 'cores'", ["x.toml: units", "expected 'nodes', 'processors' or 'gpus'"]),
        ("reliability-factor = inf", ["x.toml: reliability-factor: a number is not finite"]),
        ("seed = ", ["x.toml, end of the text: this is not TOML"]),
        ('{"seed": 1', ["x.toml: the file is not JSON"]),
        ('{"seed": 1, "scheduler": "fcfs", "seed": 2}', ["x.toml: the key 'seed' is repeated"]),
        ('{"transform": [{"step": "scale", "load": "1", "load": "2"}]}', ["the key 'load' is repeated"]),
        ("seed = 1\nseed = 2", ["x.toml", "this is not TOML: cannot overwrite a value"]),
        ("{}", ["x.toml: the description is empty", "'pipistrelle run' without a description"]),
        ("# nothing", ["x.toml: the description is empty"]),
        ("[]", ["x.toml, line 1, column 2: this is not TOML"]),
        ("batsim = 5", ["x.toml: batsim: a value of the wrong type", "expected a table, found 5"]),
    ],
)
def test_error_is_reported_once_with_its_place(tmp_path: Path, text: str, fragments: list[str]) -> None:
    """An unknown key with the closest one, a wrong value with its path and what was expected."""
    file = tmp_path / "x.toml"
    file.write_text(text)
    with pytest.raises(SpecError) as caught:
        read_spec(file)

    for fragment in fragments:
        assert fragment in str(caught.value)


def test_a_key_twice_is_what_is_wrong_with_a_run(tmp_path: Path) -> None:
    """Also where a file may be something else: a workload is one by its own keys."""
    file = tmp_path / "x.json"
    file.write_text('{"seed": 1, "seed": 2}')
    with pytest.raises(SpecError, match="the key 'seed' is repeated"):
        find_spec(file)

    file.write_text('{"jobs": [], "jobs": []}')
    assert find_spec(file) is None


def test_one_text_stands_for_a_list_of_one(tmp_path: Path) -> None:
    """Where an option may be repeated."""
    file = tmp_path / "run.toml"
    file.write_text('workload = "seven-jobs"\nfailures = "none"\n')

    assert read_spec(file) == RunSpec(workload=("seven-jobs",), failures=("none",))


def test_a_value_of_python_is_checked_like_that_of_a_file() -> None:
    """Before anything is read."""
    with pytest.raises(SpecError, match="the run: workload: a value of the wrong type"):
        run(RunSpec(workload=5))  # type: ignore[arg-type]


def test_files_are_those_of_the_description(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed or missing file is named; a digest of an unused file is ignored."""
    monkeypatch.chdir(tmp_path)
    rules = Path("rules.txt")
    rules.write_text("@1h +1h all\n")
    spec = with_digests(RunSpec(workload=("seven-jobs",), maintenance=("rules.txt",), files={"other": "0"}))
    assert list(spec.files) == ["rules.txt"]
    assert with_digests(spec) == spec

    rules.write_text("@2h +1h all\n")
    with pytest.raises(InputChanged, match=r"rules\.txt: an input has changed .*another content"):
        run(spec)
    rules.unlink()
    with pytest.raises(InputChanged, match="found no such file"):
        run(spec)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (RunSpec(scheduler=()), "names no scheduler"),
        (RunSpec(scheduler=("./prog",)), "does not name the endpoint"),
        (RunSpec(scheduler=("./prog", "{endpoint}"), order="sjf"), "--order applies to built-in schedulers"),
        (RunSpec(scheduler="./prog {endpoint}", poll="5s"), "--poll applies to built-in schedulers"),
    ],
)
def test_scheduler_that_cannot_be_started_is_rejected(spec: RunSpec, said: str) -> None:
    """With what to add, or leave out."""
    with pytest.raises(PipistrelleError, match=said):
        check_scheduler(spec)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (RunSpec(workload=("demo", "demo")), "a run has one workload"),
        (RunSpec(scheduler="./prog {endpoint}"), "a program cannot run inside the server"),
        (RunSpec(dialect="batsim"), "a run in one process supports only the native dialect"),
        (RunSpec(batsim=BatsimSpec(), dialect="batsim"), "names no platform"),
        (RunSpec(batsim=BatsimSpec(), platform="x.xml"), "needs Batsim's dialect"),
        (RunSpec(batsim=BatsimSpec(), platform="x.xml", dialect="batsim", repair="1h"), "found repair"),
        (RunSpec(scheduler="no-such"), "there is no scheduler 'no-such'"),
        (RunSpec(poll="0s"), "'0s' is not above zero"),
        (RunSpec(transform=(Scale(),)), "name what to scale"),
        (RunSpec(checkpoint="soon"), "unknown checkpoint interval"),
    ],
)
def test_unrunnable_input_is_rejected(spec: RunSpec, said: str) -> None:
    """By one message."""
    with pytest.raises(PipistrelleError, match=said):
        run(spec)


def test_a_run_has_the_same_outputs_however_it_is_connected(tmp_path: Path) -> None:
    """In process and with a child, from the description that was written."""
    spec = RunSpec(workload=("seven-jobs",), transform=(Copy(times=3), Scale(arrivals="50%")), poll="7s")
    run(spec, RunOptions(out=tmp_path / "a", connection=InProcess()))
    again = read_spec(tmp_path / "a" / "out_command.json")
    run(again, RunOptions(out=tmp_path / "b", connection=WithChild()))

    for name in sorted(path.name for path in (tmp_path / "a").iterdir()):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name
    assert json.loads((tmp_path / "a" / "out_summary.json").read_bytes())["jobs"] == 21


@pytest.mark.parametrize("text", ["null", "[]", "17"])
def test_json_that_is_no_object_is_called_so(tmp_path: Path, text: str) -> None:
    """A .json file is read as JSON, and distinguished from a description of a run."""
    path = tmp_path / "run.json"
    path.write_text(text)

    with pytest.raises(PipistrelleError, match=r"not a run description.*JSON object"):
        read_spec(path)


@pytest.mark.parametrize(("factor", "nodes"), [("120%", 307), ("0.5", 128), ("x2", 512), ("0.001", 1)])
def test_a_machine_of_another_size(factor: str, nodes: int) -> None:
    """The nodes of each pool are multiplied and rounded, at least one; this includes the workload's own machine."""
    for platform in (None, "demo"):
        setup = load_setup(RunSpec(platform=platform, scale_platform=factor))
        assert setup.platform.nodes == nodes
        assert setup.platform.name == f"demo x {parse_factor(factor):g}"


def test_a_machine_of_another_size_has_no_places() -> None:
    """Node positions and data of single nodes are not kept, and a warning says so."""
    said: list[str] = []
    sink = logger().add(lambda message: said.append(str(message)), format="{message}")
    try:
        setup = load_setup(RunSpec(platform="titan", scale_platform="0.5"))
    finally:
        logger().remove(sink)

    assert setup.platform.info.topology is None
    assert "the nodes of titan x 0.5 have no locations, and all nodes of a pool are equal" in "".join(said)


def test_a_machine_of_no_other_size() -> None:
    """An invalid factor names the option; Batsim's hosts are not scaled."""
    with pytest.raises(PipistrelleError, match=r"--scale-platform: a factor cannot be read.*found 'much'"):
        load_setup(RunSpec(scale_platform="much"))
    with pytest.raises(
        PipistrelleError, match=r"--scale-platform: .*found '1.03%'. For 1.03 times .* 1.03 or 103%; .* 0.0103"
    ):
        load_setup(RunSpec(platform="theta", scale_platform="1.03%"))
    assert load_setup(RunSpec(platform="theta", scale_platform="10%")).platform.nodes == 436
    with pytest.raises(PipistrelleError, match="does not support this key"):
        load_setup(RunSpec(platform="p.xml", dialect="batsim", batsim=BatsimSpec(), scale_platform="2"))


def partitioned(tmp_path: Path) -> str:
    """Return the path of an SWF log with jobs of the partitions 1 and 2."""
    lines = [f"{job} {job} -1 10 2 -1 -1 2 20 -1 1 1 1 -1 -1 {1 + job % 2} -1 -1" for job in range(1, 5)]
    (tmp_path / "log.swf").write_text("; MaxProcs: 8\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return str(tmp_path / "log.swf")


def pools(tmp_path: Path) -> str:
    """Return the path of a platform with the pools cpu and gpu."""
    text = 'name = "m"\n[[pools]]\nname = "cpu"\nnodes = 4\n[[pools]]\nname = "gpu"\nnodes = 4\n'
    (tmp_path / "m.toml").write_text(text, encoding="utf-8")
    return str(tmp_path / "m.toml")


def starts(spec: RunSpec, out: Path) -> dict[str, str]:
    """Return {job: its units}."""
    out.mkdir()
    run(spec, RunOptions(out=out))
    rows = [line.split(",") for line in (out / "out_jobs.csv").read_text(encoding="utf-8").splitlines()[1:]]
    return {row[0]: row[14] for row in rows}


def test_partitions_are_bound_to_pools(tmp_path: Path) -> None:
    """Jobs of partition 2 start on the units of their pool alone, as out_command.json repeats it."""
    log, bound = (partitioned(tmp_path),), ("2=gpu", "1=cpu|gpu")
    spec = RunSpec(platform=pools(tmp_path), workload=log, partition_pools=bound, strict=True)

    assert starts(spec, tmp_path / "out") == {"1": "4-5", "2": "0-1", "3": "6-7", "4": "2-3"}
    assert read_spec(tmp_path / "out" / "out_command.json").partition_pools == bound


def test_constraints_can_be_ignored(tmp_path: Path) -> None:
    """Jobs then get any units, also when no pool matches their constraint."""
    jobs = [
        {"id": name, "subtime": 0, "res": 2, "walltime": 9, "profile": "d", "constraint": constraint}
        for name, constraint in (("1", "pool=gpu"), ("2", "h100"))
    ]
    text = json.dumps({"jobs": jobs, "profiles": {"d": {"type": "delay", "delay": 5}}})
    (tmp_path / "w.json").write_text(text, encoding="utf-8")
    found = {
        ignore: starts(
            RunSpec(platform=pools(tmp_path), workload=(str(tmp_path / "w.json"),), ignore_constraints=ignore),
            tmp_path / str(ignore),
        )
        for ignore in (False, True)
    }

    assert found == {False: {"1": "4-5"}, True: {"1": "0-1", "2": "2-3"}}


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        (("2=gpus",), "--partition-pools: platform 'm' has no pool .gpus.. Did you mean 'gpu'"),
        (("2",), "--partition-pools: a binding of partitions to pools is malformed.*found '2'"),
        (("2=gpu|",), "a binding of partitions to pools is malformed"),
        (("2=gpu", "2=cpu"), "each partition once.*found '2=cpu'"),
        (("7=gpu",), "no job is in partition '7'"),
    ],
)
def test_partitions_that_cannot_be_bound(tmp_path: Path, texts: tuple[str, ...], says: str) -> None:
    """The error names unknown pools and partitions, and unreadable values."""
    with pytest.raises(PipistrelleError, match=says):
        load_setup(RunSpec(platform=pools(tmp_path), workload=(partitioned(tmp_path),), partition_pools=texts))
