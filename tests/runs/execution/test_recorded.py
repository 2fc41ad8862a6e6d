"""The scheduler ``recorded``: jobs start at the log's times and places whenever possible."""

from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pipistrelle.platforms.description import Platform, Pool, homogeneous
from pipistrelle.protocol.base.errors import PipistrelleError
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.connection import WithChild
from pipistrelle.runs.execution.pause import check_invariants
from pipistrelle.runs.execution.run import RunOptions, run, run_in_process
from pipistrelle.schedulers.catalogue.recorded import RecordedPolicy
from pipistrelle.schedulers.policy.errors import PolicyError
from pipistrelle.schedulers.wire.batsim.runtime import BatsimRuntime
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.setup.recorded import RecordedFigures, records_of, rooms, starts_of
from pipistrelle.server.simulation.simulate import Result
from pipistrelle.traces.clean import clean
from pipistrelle.traces.load import load
from pipistrelle.traces.workload import Workload


class Runs(Observer):
    """Keeps of each job its start, its end and its units, by its number in the log."""

    def __init__(self) -> None:
        self.of: dict[str, tuple[float, float, str]] = {}

    def ended(self, now: float, job: Job) -> None:
        """Keep it."""
        self.of[job.id.partition("!")[2]] = (job.start, job.end, str(job.alloc))


def log_of(rows: list[tuple[float, float, int, float, float]], **more: Any) -> Workload:
    """Return a log of jobs: submission, wait (-1: not known), size, run time, requested time."""
    submit, wait, size, runtime, walltime = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    return Workload(
        name="log",
        source="log",
        ids=[str(number) for number in range(len(rows))],
        submit=submit,
        size=size.astype(np.int64),
        walltime=walltime,
        runtime=runtime,
        measures={"wait": wait},
        **more,
    )


def kept_to(log: Workload, platform: Platform, policy: str = "recorded") -> tuple[Result, Runs]:
    """Return the results of a run that follows the log, and the jobs' starts."""
    watch = Runs()
    result = run_in_process(
        log,
        RecordedPolicy() if policy == "recorded" else policy,  # jobs without a record start when they are submitted
        platform=platform,
        options=RunOptions(observers=[watch], between=lambda pause: check_invariants(pause.simulation.engine, None)),
    )
    return result, watch


ROWS = st.lists(
    st.tuples(
        st.integers(0, 20).map(float),
        st.sampled_from([-1.0, 0.0, 0.0, 1.0, 3.0, 7.0, 20.0]),
        st.integers(1, 6),
        st.integers(1, 12).map(float),
        st.sampled_from([2.0, 6.0, 12.0, 50.0]),
    ),
    min_size=1,
    max_size=12,
).map(lambda rows: sorted(rows, key=lambda row: row[0]))


@given(ROWS)
@settings(deadline=None, max_examples=60)
def test_a_job_starts_as_recorded_unless_the_log_is_too_full(
    rows: list[tuple[float, float, int, float, float]],
) -> None:
    """Jobs with recorded starts keep them; the others fill in, in the order of theirs."""
    units = 6
    log = log_of(rows)
    result, watch = kept_to(log, homogeneous(units, "m"))

    lengths = [min(row[3], row[4]) for row in rows]
    held: list[tuple[float, float, int]] = []
    told = {row: rows[row][0] + rows[row][1] for row in range(len(rows)) if rows[row][1] >= 0}
    others = [row for row in range(len(rows)) if row not in told]
    for row in sorted(told, key=lambda row: (told[row], row)):
        start, size = told[row], rows[row][2]
        if size + sum(some for begin, end, some in held if begin <= start < end) > units:
            others.append(row)
        else:
            held.append((start, start + lengths[row], size))
            assert watch.of[str(row)][:2] == (start, start + lengths[row])
    for row in sorted(others, key=lambda row: (told.get(row, rows[row][0]), row)):
        size, since = rows[row][2], told.get(row, rows[row][0])
        for start in sorted({since, *(end for _, end, _ in held if end > since)}):
            times = {start, *(begin for begin, _, _ in held if start <= begin < start + lengths[row])}
            if all(size + sum(n for begin, end, n in held if begin <= at < end) <= units for at in times):
                break
        held.append((start, start + lengths[row], size))
        assert watch.of[str(row)][0] == start
    figures = result.summary.recorded
    assert isinstance(figures, RecordedFigures)
    late = [row for row in others if row in told]
    assert (figures.on_time, figures.late, figures.no_room) == (len(told) - len(late), len(late), len(late))
    assert (figures.unrecorded, figures.not_started) == (len(others) - len(late), 0)


def test_rooms_of_many_jobs() -> None:
    """Room is found beyond the first steps of the load that are searched."""
    count = 4000
    starts = np.append(np.arange(count, dtype=float), [5.5, np.nan])
    sizes = np.append(np.ones(count, dtype=np.int64), [1, 1])
    found = rooms(starts, np.zeros(count + 2), sizes, np.ones(count + 2), 1)

    assert found == {count + 1: float(count), count: float(count + 1)}


def test_nodes_of_the_log() -> None:
    """A job gets its nodes if the machine names and has them free, as many units of each; they are counted."""
    platform = Platform(name="m", pools=(Pool(name="p", nodes=4, units_per_node=2, unit="core", names="n[1-4]"),))
    lists = ["n[3-4]", "n3", "n1,n9", "", "n1"]
    rows = [(0.0, 1.0, 2, 10.0, 20.0), (0.0, 2.0, 1, 10.0, 20.0), *[(0.0, 3.0, 1, 10.0, 20.0)] * 2]
    log = log_of([*rows, (0.0, 4.0, 2, 1.0, 1.0)], labels={"node_list": lists})
    result, watch = kept_to(log, platform)

    assert [watch.of[str(row)][2] for row in range(5)] == ["4 6", "5", "0", "1", "2-3"]
    figures = result.summary.recorded
    assert isinstance(figures, RecordedFigures)
    assert (figures.own_nodes, figures.other_nodes, figures.unknown_nodes) == (2, 1, 1)
    assert (figures.on_time, figures.late) == (5, 0)
    assert records_of(log, platform)[2].nodes is None


def test_node_requests_are_honoured() -> None:
    """Nodes of the log that are not as the job asks are replaced by such as are."""
    platform = Platform(
        name="m", pools=(Pool(name="old", nodes=2, names="n[1-2]"), Pool(name="new", nodes=2, names="n[3-4]"))
    )
    labels = {"node_list": ["n1", "n2"], "constraint": ["new", "old"]}
    _, watch = kept_to(log_of([(0.0, 5.0, 1, 1.0, 1.0)] * 2, labels=labels), platform)

    assert [watch.of[str(row)][:3:2] for row in range(2)] == [(5.0, "2"), (5.0, "1")]


SACCT = """JobID|User|Submit|Start|End|State|Timelimit|NNodes|NodeList
1|a|2024-01-01T00:00:00|2024-01-01T00:10:00|2024-01-01T00:20:00|COMPLETED|01:00:00|2|cn[3-4]
2|b|2024-01-01T00:01:00|2024-01-01T00:05:00|2024-01-01T00:30:00|COMPLETED|01:00:00|1|cn4.local
3|b|2024-01-01T00:02:00|Unknown|2024-01-01T00:30:00|CANCELLED|01:00:00|1|None assigned
"""
PBS = (
    "01/01/2024 00:40:00;E;7.s;user=a queue=q ctime=1704067200 start=1704067800 end=1704068400 "
    "exec_host=cn1/0*2+cn3/0*2 Resource_List.nodect=2 Resource_List.walltime=01:00:00 Exit_status=0\n"
)


def test_centres_logs_tell_nodes(tmp_path: Path) -> None:
    """sacct's NodeList and PBS's exec_host are the list of nodes; a job that got none has none."""
    (tmp_path / "sacct.txt").write_text(SACCT, encoding="utf-8")
    (tmp_path / "pbs.txt").write_text(PBS, encoding="utf-8")
    sacct, pbs = load(tmp_path / "sacct.txt"), load(tmp_path / "pbs.txt")

    assert sacct.labels["node_list"] == ["cn[3-4]", "cn4.local", ""]
    assert pbs.labels["node_list"] == ["cn1,cn3"]
    assert starts_of(sacct).tolist()[:2] == [600.0, 300.0]
    assert np.isnan(starts_of(sacct)[2])
    platform = Platform(name="m", pools=(Pool(name="p", nodes=4, names="cn[1-4]"),))
    _, watch = kept_to(sacct, platform)
    assert watch.of == {"1": (600.0, 1200.0, "2-3"), "2": (300.0, 1800.0, "0")}
    _, watch = kept_to(pbs, platform)
    assert watch.of == {"7": (600.0, 1200.0, "0 2")}


def test_as_a_process_it_does_the_same(tmp_path: Path) -> None:
    """Over the wire the starts reach the scheduler as jobs' fields; the outputs have the same bytes."""
    (tmp_path / "sacct.txt").write_text(SACCT, encoding="utf-8")
    (tmp_path / "m.toml").write_text(
        'name = "m"\n[[pools]]\nname = "p"\nnodes = 4\nnames = "cn[1-4]"\n', encoding="utf-8"
    )
    spec = RunSpec(scheduler="recorded", workload=(str(tmp_path / "sacct.txt"),), platform=str(tmp_path / "m.toml"))
    for name, way in (("in", None), ("out", WithChild())):
        (tmp_path / name).mkdir()
        run(spec, RunOptions(connection=way, out=tmp_path / name))
    first, second = ({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("in", "out"))

    assert first == second
    assert b'"own_nodes": 1' in first["out_summary.json"]
    assert b'"recorded"' in first["out_config.json"]


def test_run_resumes_from_its_state() -> None:
    """A run interrupted at any notice resumes to the same figures."""
    rows = [(0.0, 4.0, 3, 5.0, 9.0), (1.0, 3.0, 2, 5.0, 9.0), (2.0, 2.0, 2, 5.0, 9.0), (3.0, -1.0, 1, 2.0, 9.0)]
    log, states = log_of(rows), list[dict[str, Any]]()
    whole = run_in_process(
        log,
        "recorded",
        platform=homogeneous(5, "m"),
        options=RunOptions(between=lambda pause: states.append(pause.state())),
    )

    assert len(states) > 3
    for state in states:
        again = run_in_process(log, "recorded", platform=homogeneous(5, "m"), options=RunOptions(resume=state))
        assert again.summary == whole.summary


def test_what_cannot_be_recorded(tmp_path: Path) -> None:
    """A log without starts is rejected, and so is the dialect that does not carry them."""
    (tmp_path / "no.swf").write_text("1 0 -1 5 1 -1 -1 1 9 -1 1 -1 -1 -1 -1 -1 -1 -1\n", encoding="utf-8")
    spec = RunSpec(scheduler="recorded", workload=(str(tmp_path / "no.swf"),), platform="tiny")
    with pytest.raises(PipistrelleError, match=r"no\.swf: the log does not give start times of its jobs"):
        run(spec)
    with pytest.raises(PipistrelleError, match="the batsim dialect cannot send the recorded starts"):
        run(replace(spec, dialect="batsim"), RunOptions(connection=WithChild()))
    with pytest.raises(PolicyError, match="the batsim dialect does not send them"):
        BatsimRuntime(RecordedPolicy())


@pytest.mark.parametrize(
    ("name", "late", "unrecorded"),
    [
        ("KTH-SP2-1996-2.1-cln.swf.gz", 12, 0),
        pytest.param("ALCF-Theta-2022.swf.gz", 1, 0, marks=pytest.mark.slow),
        pytest.param("HPC2N-2002-2.2-cln.swf.gz", 1, 1, marks=pytest.mark.slow),
    ],
)
def test_real_logs(traces_dir: Path, name: str, late: int, unrecorded: int) -> None:
    """Every job starts at the log's time, unless more units would be held than exist."""
    log = load(traces_dir / name)
    assert log.machine_size is not None
    watch = Runs()
    result = run_in_process(log, "recorded", options=RunOptions(observers=[watch]))

    jobs, _ = clean(log, log.machine_size)
    starts = starts_of(jobs)
    ends = starts + np.minimum(jobs.runtime, jobs.walltime)
    missed = [row for row, start in enumerate(starts) if not np.isnan(start) and watch.of[jobs.ids[row]][0] != start]
    for row in missed:
        held = int(jobs.size[(starts <= starts[row]) & (ends > starts[row])].sum())
        assert held > log.machine_size
    assert len(missed) == late
    figures = result.summary.recorded
    assert isinstance(figures, RecordedFigures)
    assert (figures.late, figures.no_room, figures.unrecorded) == (late, late, unrecorded)
    assert figures.on_time == len(jobs) - late - unrecorded
    assert result.summary.max_wait is not None
    assert result.summary.max_wait < inf
