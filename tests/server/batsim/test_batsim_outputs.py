"""Batsim's output files: the recorded ones come out again, and each convention for itself."""

import csv
from collections.abc import Iterable, Sequence
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest

from pipistrelle.protocol.units.nodesets import NodeSet
from pipistrelle.server.batsim.outputs import BatsimOutputs
from pipistrelle.server.engine.jobs import Job
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.errors import OutputFailed
from pipistrelle.server.outputs.metrics import Metrics

#: columns of the schedule file that differ from run to run or from program to program
OWN = ("batsim_version", "scheduling_time", "simulation_time")
FULL = Path("/dev/full")


def job(
    name: str,
    submit: float = 0.0,
    start: float = nan,
    end: float = nan,
    alloc: str = "",
    state: Any = "COMPLETED_SUCCESSFULLY",
    **other: Any,
) -> Job:
    """Return a job that has ended."""
    units = NodeSet.parse(alloc)
    return Job(
        name if "!" in name else f"w0!{name}",
        float(submit),
        other.pop("size", len(units)),
        other.pop("walltime", inf),
        end - start,
        "p",
        state=state,
        start=float(start),
        end=float(end),
        alloc=units,
        **other,
    )


def recorded_jobs(path: Path) -> list[Job]:
    """Return the jobs of one of Batsim's jobs files, in its order."""
    jobs = []
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            ran = row["starting_time"] != ""
            each = job(
                f"{row['workload_name']}!{row['job_id']}",
                float(row["submission_time"]),
                float(row["starting_time"]) if ran else nan,
                float(row["finish_time"]) if ran else nan,
                row["allocated_resources"],
                row["final_state"],
                size=int(row["requested_number_of_resources"]),
                walltime=float(row["requested_time"]),
            )
            each.profile = row["profile"]
            jobs.append(each)
    return jobs


def tell(observers: Sequence[Observer], jobs: Iterable[Job], units: int) -> None:
    """Tell observers of a run of jobs that are listed in the order of their ends."""
    steps: list[tuple[float, int, int, str, Job]] = []
    for number, each in enumerate(jobs):
        steps.append((each.submit, 1, number, "submitted", each))
        if each.state == "REJECTED":
            steps.append((each.submit, 2, number, "ended", each))
        else:
            steps.append((each.start, 3, number, "started", each))
            steps.append((each.end, 0 if each.end > each.start else 4, number, "ended", each))
    for observer in observers:
        observer.begins(0.0, units)
    for time, _, _, hook, each in sorted(steps, key=lambda step: step[:3]):
        for observer in observers:
            getattr(observer, hook)(time, each)
    for observer in observers:
        observer.ends(0.0, "completed", "")


def write(outputs: BatsimOutputs, jobs: Iterable[Job], units: int = 4, *others: Observer) -> None:
    """Write the outputs of a run."""
    metrics = Metrics()
    tell([*others, *outputs.observers(), metrics], jobs, units)
    outputs.after(metrics.summary())


def lines(path: Path) -> list[str]:
    """Return a file's lines without the header."""
    text = path.read_bytes().decode()
    assert text.endswith("\n")
    assert "\r" not in text
    return text.splitlines()[1:]


def schedule(path: Path) -> dict[str, str]:
    """Return the one row of a schedule file."""
    with path.open(newline="") as file:
        (row,) = csv.DictReader(file)
    return row


@pytest.mark.parametrize(
    "client",
    [
        "batsched_conservative_bf", "batsched_easy_bf", "batsched_easy_bf_fast", "batsched_filler", "batsched_killer",
        "batsched_submitter", "pybatsim_easyBackfill", "pybatsim_fillerSched",
    ],
)  # fmt: skip
def test_recorded_runs_are_reproduced(client: str, batsim4_dir: Path, tmp_path: Path) -> None:
    """With the jobs of a real run, the jobs file has its bytes, the schedule file its values."""
    jobs = batsim4_dir / f"tiny.{client}.jobs.csv"
    write(BatsimOutputs(f"{tmp_path}/out"), recorded_jobs(jobs))
    assert sorted((tmp_path / "out_jobs.csv").read_text().splitlines()) == sorted(jobs.read_text().splitlines())
    own, real = schedule(tmp_path / "out_schedule.csv"), schedule(batsim4_dir / f"tiny.{client}.schedule.csv")
    assert list(own) == list(real)
    assert {key: own[key] for key in own if key not in OWN} == {key: real[key] for key in real if key not in OWN}


@pytest.mark.parametrize(
    "name",
    [
        "w_1000_l0.85.batsched_easy_bf_fast",
        "w_1000_l0.85.pybatsim_easyBackfill",
        "w_1000_l0.85_ms.batsched_easy_bf_fast",
    ],
)
def test_thousand_recorded_jobs_are_reproduced(name: str, batsim4_dir: Path, tmp_path: Path) -> None:
    """Every line of the jobs file of a real run has the same bytes, with millisecond times, too."""
    jobs = batsim4_dir / f"{name}.jobs.csv"
    write(BatsimOutputs(f"{tmp_path}/out"), recorded_jobs(jobs), 1490)
    assert sorted(lines(tmp_path / "out_jobs.csv")) == sorted(lines(jobs))


def test_a_job_of_no_time_took_ten_microseconds(tmp_path: Path) -> None:
    """As in Batsim, where it would have an infinite stretch otherwise; long waits and late times stay exact."""
    write(BatsimOutputs(f"{tmp_path}/out"), [job("1", 2e6, 2e6 + 10, 2e6 + 10, "0", "COMPLETED_SUCCESSFULLY")])
    (line,) = lines(tmp_path / "out_jobs.csv")
    assert ",2000010.000000,0.000010,2000010.000010,10.000000,10.000010,1000001.000000,0," in line
    row = schedule(tmp_path / "out_schedule.csv")
    assert (row["makespan"], row["max_slowdown"]) == ("2000010.000010", "1000001.000000")


def test_all_that_did_not_succeed_counts_as_killed(tmp_path: Path) -> None:
    """Failed jobs and those at their walltime, too; rejected jobs count in the means, as 0."""
    jobs = [
        job("1", 0, 0, 5, "0", "COMPLETED_FAILED"),
        job("2", 0, 0, 10, "1", "COMPLETED_WALLTIME_REACHED"),
        job("3", 0, 0, 15, "2", "COMPLETED_KILLED"),
        job("4", 0, 10, 20, "0-1"),
        job("5", 3, state="REJECTED", size=9),
    ]
    write(BatsimOutputs(f"{tmp_path}/out"), jobs)
    row = schedule(tmp_path / "out_schedule.csv")
    counts = [row[f"nb_jobs{kind}"] for kind in ("", "_finished", "_killed", "_rejected", "_success")]
    assert counts == ["5", "4", "3", "1", "1"]
    assert (row["success_rate"], row["mean_waiting_time"]) == ("0.200000", "2.000000")
    assert row["mean_turnaround_time"] == "10.000000"
    assert (row["scheduling_time"], row["simulation_time"]) == ("", "")


def test_a_line_for_each_change_of_machine_states(tmp_path: Path) -> None:
    """Each start and end writes one, at the same instant, too; times have only the decimals that they need."""
    jobs = [
        job("1", 0, 0.0, 12.5, "0-1"),
        job("2", 0, 12.5, 1234567.0, "1-3"),
        job("3", 0, 12.5, 1234567.125, "0"),
        job("4", 3, state="REJECTED", size=9),
    ]
    write(BatsimOutputs(f"{tmp_path}/out"), jobs)
    assert (tmp_path / "out_machine_states.csv").read_text().splitlines() == [
        "time,nb_sleeping,nb_switching_on,nb_switching_off,nb_idle,nb_computing",
        "0,0,0,0,2,2",
        "12.5,0,0,0,4,0",
        "12.5,0,0,0,1,3",
        "12.5,0,0,0,0,4",
        "1234567,0,0,0,3,1",
        "1234567.125,0,0,0,4,0",
    ]


def test_machine_states_can_be_left_out(tmp_path: Path) -> None:
    """There is no such file then, and the schedule still has its sums."""
    write(BatsimOutputs(f"{tmp_path}/out", machine_states=False), [job("1", 0, 0, 7, "0-3")])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out_jobs.csv", "out_schedule.csv"]
    assert schedule(tmp_path / "out_schedule.csv")["time_computing"] == "28.000000"


def test_a_run_without_jobs(tmp_path: Path) -> None:
    """All figures are 0."""
    write(BatsimOutputs(f"{tmp_path}/out"), [])
    assert lines(tmp_path / "out_jobs.csv") == lines(tmp_path / "out_machine_states.csv") == []
    row = schedule(tmp_path / "out_schedule.csv")
    del row["batsim_version"], row["nb_computing_machines"]
    assert {float(value) for value in row.values() if value} == {0.0}


def test_names_and_metadata_with_commas_and_quotes(tmp_path: Path) -> None:
    """A reader of CSV gets them back."""
    write(BatsimOutputs(f"{tmp_path}/out"), [job('w"0!a,b', 0, 0, 1, "0", metadata='{"a": "b, c"}')])
    with (tmp_path / "out_jobs.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["workload_name"], row["job_id"], row["metadata"]) == ('w"0', "a,b", '{"a": "b, c"}')


class Wattmeter:
    """Four hosts that draw 10 W each whatever they do, at the least 5 W where they sleep."""

    def __init__(self) -> None:
        self.state = [0, 0, 1, 0]

    def energy(self, now: float) -> float:
        """Return the joules so far."""
        return 40.0 * now

    def lowest_power(self) -> float:
        """Return the watts of the present pstates."""
        return float(sum(5 if pstate == 13 else 10 for pstate in self.state))

    def pstates(self) -> Sequence[int]:
        """Return the present pstates."""
        return self.state


def test_energy_and_pstates(tmp_path: Path) -> None:
    """Starts, ends and switches each have a line of energy; switches are logged when requested and when done."""
    outputs, meter = BatsimOutputs(f"{tmp_path}/out"), Wattmeter()
    observers = [outputs.metered(meter), *outputs.observers()]
    one = job("1", 2, 2, 12, "2-3", energy=200.0)
    two, pair = NodeSet.parse("2"), NodeSet.parse("0-1")

    def say(hook: str, *arguments: Any) -> None:
        for observer in observers:
            getattr(observer, hook)(*arguments)

    say("begins", 0.0, 4)
    say("submitted", 2.0, one)
    say("started", 2.0, one)
    say("departed", 2.0, pair, False)
    say("switched", 2.0, pair, -2)
    say("switched", 8.25, two, -1)
    meter.state[2] = 0
    say("switched", 8.25, two, 0)
    meter.state[0] = meter.state[1] = 13
    say("arrived", 8.25, pair, True)
    say("switched", 8.25, pair, 13)
    say("ended", 12.0, one)
    say("ended", 12.0, job("2", 3, state="REJECTED", size=9))
    say("departed", 20.0, pair, True)
    say("switched", 20.0, pair, -1)
    meter.state[0] = meter.state[1] = 0
    say("arrived", 171.5, pair, True)
    say("switched", 171.5, pair, 0)
    say("ends", 171.5, "completed", "")
    outputs.after(Metrics().summary())

    assert (tmp_path / "out_pstate_changes.csv").read_text().splitlines() == [
        "time,machine_id,new_pstate",
        "0,0-1 3,0",
        "0,2,1",
        "2,0-1,-2",
        "8.25,2,-1",
        "8.25,2,0",
        "8.25,0-1,13",
        "20,0-1,-1",
        "171.5,0-1,0",
    ]
    assert (tmp_path / "out_consumed_energy.csv").read_text().splitlines() == [
        "time,energy,event_type,wattmin,epower",
        "2.000000,80.000000,s,40.000000,40.000000",
        "2.000000,80.000000,p,40.000000,NA",
        "8.250000,330.000000,p,40.000000,40.000000",
        "8.250000,330.000000,p,40.000000,NA",
        "8.250000,330.000000,p,30.000000,NA",
        "12.000000,480.000000,e,30.000000,40.000000",
        "20.000000,800.000000,p,30.000000,40.000000",
        "171.500000,6860.000000,p,40.000000,40.000000",
    ]
    assert lines(tmp_path / "out_machine_states.csv") == [
        "2,0,0,0,2,2",
        "2,0,0,2,0,2",
        "8.25,0,0,2,0,2",
        "8.25,2,0,0,0,2",
        "12,2,0,0,2,0",
        "20,0,2,0,2,0",
        "171.5,0,0,0,4,0",
    ]
    row = schedule(tmp_path / "out_schedule.csv")
    assert (row["consumed_joules"], row["nb_grouped_switches"], row["nb_machine_switches"]) == ("400.000000", "3", "5")
    times = [row[f"time_{state}"] for state in ("sleeping", "switching_on", "switching_off", "computing", "idle")]
    assert times == ["23.500000", "303.000000", "12.500000", "20.000000", "8.000000"]
    assert ',2-3,200.000000,""' in lines(tmp_path / "out_jobs.csv")[0]


def test_unavailable_machines_are_in_no_column_of_the_states(tmp_path: Path) -> None:
    """As in Batsim, which has no column for them and writes no line when they leave; their time has a column."""
    outputs = BatsimOutputs(f"{tmp_path}/out")
    (trace,) = (observer for observer in outputs.observers())
    told: Any = trace
    told.begins(0.0, 4)
    told.availability(1.0, NodeSet.parse("3"), False)
    told.started(2.0, job("1", 0, 2.0, 5.0, "0-1"))
    told.availability(4.0, NodeSet.parse("3"), True)
    told.ended(5.0, job("1", 0, 2.0, 5.0, "0-1"))
    told.ends(5.0, "completed", "")
    outputs.after(Metrics().summary())
    assert lines(tmp_path / "out_machine_states.csv") == ["2,0,0,0,1,2", "5,0,0,0,4,0"]
    assert schedule(tmp_path / "out_schedule.csv")["time_unavailable"] == "3.000000"


def test_a_job_that_ran_elsewhere_has_no_units(tmp_path: Path) -> None:
    """Its line has an empty allocation, and no machine's state changed."""
    outputs = BatsimOutputs(f"{tmp_path}/out")
    told: Any = outputs.observers()[0]
    told.begins(0.0, 4)
    told.ended(5.0, job("1", 0, 2.0, 5.0, "", size=2))
    told.ends(5.0, "completed", "")
    assert lines(tmp_path / "out_machine_states.csv") == []
    assert lines(tmp_path / "out_jobs.csv")[0].endswith(',1.666667,,-1.000000,""')


@pytest.mark.parametrize("name", ["jobs.csv", "machine_states.csv", "schedule.csv"])
@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full")
def test_a_full_disk_is_named_with_its_option(name: str, tmp_path: Path) -> None:
    """One message with the file and the option that chooses where files go."""
    (tmp_path / f"out_{name}").symlink_to(FULL)
    with pytest.raises(OutputFailed, match=name) as caught:
        write(BatsimOutputs(f"{tmp_path}/out"), [job("1", 0, 0, 1, "0")])
    assert "--export" in str(caught.value)


def test_missing_folder(tmp_path: Path) -> None:
    """Files are opened when the run begins."""
    with pytest.raises(OutputFailed, match="absent"):
        write(BatsimOutputs(f"{tmp_path}/absent/out"), [])
