"""The files of the queue's length and of the jobs' labels."""

import csv
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipistrelle.platforms.description import homogeneous
from pipistrelle.platforms.failures.durations import Exponential, Fixed
from pipistrelle.platforms.failures.models import FailureModel
from pipistrelle.platforms.failures.plan import FailurePlan, Source
from pipistrelle.protocol.base.state import from_json, to_json
from pipistrelle.runs.description.spec import RunSpec
from pipistrelle.runs.execution.run import RunOptions, run, run_in_process
from pipistrelle.server.errors import OutputFailed
from pipistrelle.server.outages.reliability import Reliability
from pipistrelle.server.outputs.once import LABEL_COLUMNS, labels_csv
from pipistrelle.server.outputs.queue_recorder import QUEUE_COLUMNS, QueueRecorder
from pipistrelle.traces.generator import generate
from pipistrelle.traces.workload import Workload


def rows(path: Path) -> list[dict[str, str]]:
    """Return a CSV file's rows."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_change_of_the_queue_is_a_line(play: Any, tmp_path: Path) -> None:
    """Submissions, starts, ends, kills and rejections; an instant that leaves all as it was has no line."""
    jobs = [("1", 0, 2, 10, 20), ("2", 0, 3, 10, 20), ("3", 5, 1, 10, 20), ("4", 5, 4, 10, 20), ("5", 30, 1, 0, 5)]
    game = play(4, jobs, observers=[QueueRecorder(f"{tmp_path}/")])
    game.begin()
    decisions = {
        0.0: [game.execute("1", "0-1")],
        5.0: [game.reject("4", at=5)],
        10.0: [game.execute("2", "0-2", at=10), game.execute("3", "3", at=10)],
        30.0: [game.execute("5", "0", at=30)],
    }
    while game.notice is not None:
        game.say(*decisions.pop(game.now, []))
    game.end()

    assert (tmp_path / "queue.csv").read_text().splitlines() == [
        QUEUE_COLUMNS,
        "0.0,1,3,1",
        "5.0,2,4,1",
        "10.0,0,0,2",
        "20.0,0,0,0",
    ]


@pytest.mark.parametrize("seed", [1, 2])
def test_the_queue_is_what_the_jobs_files_say(tmp_path: Path, seed: int) -> None:
    """With failures, so that jobs requeue; recomputed, instant by instant, from the times of all attempts."""
    workload = generate(jobs=150, units=16, load=1.2, seed=seed)
    plan = FailurePlan((Source(FailureModel(Exponential(86400.0), Fixed(3600.0)), range(16)),))
    reliability = Reliability(failures=plan, seed=seed)
    run_in_process(
        workload,
        "easy",
        platform=homogeneous(16, "m"),
        reliability=reliability,
        options=RunOptions(out=tmp_path, observers=[QueueRecorder(f"{tmp_path}/out_")]),
    )
    changes: dict[float, Counter[str]] = {}
    for row in rows(tmp_path / "out_jobs.csv"):
        units = int(row["requested_number_of_resources"])
        submitted, started, ended = (float(row[name]) for name in ("submission_time", "starting_time", "finish_time"))
        changes.setdefault(submitted, Counter()).update({"waiting_jobs": 1, "waiting_units": units})
        changes.setdefault(started, Counter()).update({"running_jobs": 1})
        changes[started].subtract({"waiting_jobs": 1, "waiting_units": units})
        changes.setdefault(ended, Counter()).subtract({"running_jobs": 1})
    present: Counter[str] = Counter()
    expected = []
    for time in sorted(changes):
        before = dict(present)
        present.update(changes[time])
        if {name: before.get(name, 0) for name in present} != dict(present):
            expected.append((time, present["waiting_jobs"], present["waiting_units"], present["running_jobs"]))
    found = [
        (round(float(row["time"]), 6), *(int(row[name]) for name in QUEUE_COLUMNS.split(",")[1:]))
        for row in rows(tmp_path / "out_queue.csv")
    ]

    assert found == expected
    assert found[-1][1:] == (0, 0, 0)


def test_the_queue_is_written_on_after_a_break(tmp_path: Path) -> None:
    """The file of a run resumed from its state is that of the whole run, for any time of the state."""
    spec = RunSpec(workload=("seven-jobs",), queue_lengths=True)
    run(spec, RunOptions(out=tmp_path / "whole"))
    whole = (tmp_path / "whole" / "out_queue.csv").read_bytes()
    for notices in range(1, 7, 2):
        taken: list[Any] = []
        folder = tmp_path / str(notices)

        def take(pause: Any, at: int = notices, into: list[Any] = taken) -> None:
            if pause.notices == at:
                into.append(from_json(to_json(pause.state())))

        run(spec, RunOptions(out=folder, between=take))
        assert taken
        run(spec, RunOptions(out=folder, resume=taken[0]))
        assert (folder / "out_queue.csv").read_bytes() == whole


def test_a_queue_that_cannot_be_written_ends_the_run(tmp_path: Path) -> None:
    """Its file is named; without the option it does not exist."""
    (tmp_path / "out_queue.csv").mkdir()
    with pytest.raises(OutputFailed, match=r"out_queue\.csv"):
        run(RunSpec(workload=("seven-jobs",), queue_lengths=True), RunOptions(out=tmp_path))
    (tmp_path / "out_queue.csv").rmdir()
    run(RunSpec(workload=("seven-jobs",)), RunOptions(out=tmp_path))

    assert not (tmp_path / "out_queue.csv").exists()


def named(jobs: int, **more: Any) -> Workload:
    """Return a workload of this many jobs."""
    size = np.ones(jobs, dtype=np.int64)
    times = np.ones(jobs)
    ids = [str(number) for number in range(1, jobs + 1)]
    return Workload("log", "test", ids, np.zeros(jobs), size, times, times, **more)


def test_labels_are_names_where_the_log_has_them() -> None:
    """Numbers as the header explains, texts, quoted values, and unknown values; one line per job."""
    one = named(
        3,
        columns={"queue": np.array([1, 2, -1])},
        header={"Queue": "1 batch\n2 express, fast"},
        labels={"user": ["ann", 'b"ob', ""], "qos": ["", "high", ""]},
    )

    assert labels_csv({"w0": one, "w1": named(2)}).splitlines() == [
        LABEL_COLUMNS,
        "1,w0,ann,,,batch,",
        '2,w0,"b""ob",,,"express, fast",high',
        "3,w0,,,,,",
    ]


def test_the_jobs_of_a_run_have_their_labels(tmp_path: Path) -> None:
    """Jobs that cannot run have no line; the workload's others have, in its order, and Batsim's columns stay."""
    columns = {"user": np.array([7, 8, 9])}
    workload = named(3, columns=columns)
    workload.size[1] = 99
    run_in_process(workload, "easy", platform=homogeneous(4, "m"), options=RunOptions(out=tmp_path))

    assert [(row["job_id"], row["user"]) for row in rows(tmp_path / "out_labels.csv")] == [("1", "7"), ("3", "9")]
    assert "user" not in rows(tmp_path / "out_jobs.csv")[0]
