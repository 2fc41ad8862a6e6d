"""An unmodified pybatsim 3.2.1 controls Pipistrelle's server as it controls Batsim 4."""

import csv
import gzip
import json
import random
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

#: columns of the jobs file that say what a scheduler decided
DECIDED = ("job_id", "workload_name", "final_state", "starting_time", "allocated_resources")
#: columns of the schedule file that differ from run to run or from program to program
OWN = ("batsim_version", "scheduling_time", "simulation_time")
#: watts of each power state of the hosts that can sleep; 3 is the state to sleep in, 4 and 5 lead there and back
WATTS = "95:95:190, 95:95:170, 95:95:160, 10:10:10, 101:101:101, 125:125:125"


def rows(path: Path) -> list[dict[str, str]]:
    """Return a CSV file's rows."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def decided(path: Path) -> set[tuple[str, ...]]:
    """Return what a scheduler decided for each job of a jobs file."""
    return {tuple(row[column] for column in DECIDED) for row in rows(path)}


def hosts(count: int, attributes: str = 'speed="1Gf"', inner: str = "") -> str:
    """Return a platform of alike hosts in SimGrid's XML."""
    lines = [f'<host id="h{n}" {attributes}>{inner}</host>' for n in range(count)]
    return (
        "<?xml version='1.0'?>\n"
        '<!DOCTYPE platform SYSTEM "simgrid.dtd">\n'
        '<platform version="4.1"><zone id="all" routing="Full"><host id="master_host" speed="1Gf"/>\n'
        + "\n".join(lines)
        + "\n</zone></platform>\n"
    )


@pytest.fixture
def address() -> str:
    """Return an address that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{probe.getsockname()[1]}"


@pytest.fixture
def batsim(shell: Any, clients: Any, address: str) -> Callable[..., str]:
    """Return a function that lets one of pybatsim's schedulers decide under `pipistrelle-batsim`."""

    def play(scheduler: str, platform: Path, workload: Path, *options: str) -> str:
        """Write outputs `SCHEDULER_...`; return what the client printed."""
        client = shell.spawn(*clients.pybatsim(scheduler, address))
        prefix = scheduler.removesuffix(".py")
        outcome = shell.batsim("-p", platform, "-w", workload, "-e", prefix, "-s", address, "-q", *options)
        assert outcome.code == 0, (outcome, client.out, client.err)
        ended = client.finish()
        assert ended.code == 0, ended
        return str(ended.out)

    return play


@pytest.fixture
def own(shell: Any) -> Callable[..., set[tuple[str, ...]]]:
    """Return a function that lets one of our schedulers decide, and returns what it decided."""

    def play(scheduler: str, platform: Path, workload: Path) -> set[tuple[str, ...]]:
        out = f"own-{scheduler}"
        outcome = shell.run(
            "run", "-p", platform, "-w", workload, "--in-process", "--out", out, "--scheduler", scheduler
        )  # fmt: skip
        assert outcome.code == 0, outcome
        return decided(shell.folder / out / "out_jobs.csv")

    return play


@pytest.mark.parametrize("scheduler", ["easyBackfill", "fillerSched"])
def test_the_recorded_run_again(scheduler: str, batsim: Callable[..., str], shell: Any, batsim4_dir: Path) -> None:
    """Jobs and schedule equal those of Batsim: walltimes, a rejection, thinking time."""
    batsim(scheduler, batsim4_dir / "nonet4.xml", batsim4_dir / "tiny.json")
    for kind in ("jobs", "schedule"):
        ours = rows(shell.folder / f"{scheduler}_{kind}.csv")
        real = rows(batsim4_dir / f"tiny.pybatsim_{scheduler}.{kind}.csv")
        assert list(ours[0]) == list(real[0])
        for row in ours + real:
            for column in OWN:
                row.pop(column, None)
        assert sorted(ours, key=str) == sorted(real, key=str)


def test_a_thousand_jobs_start_as_under_batsim(batsim: Callable[..., str], shell: Any, batsim4_dir: Path) -> None:
    """Every column of easyBackfill's jobs file equals that of a real Batsim."""
    batsim("easyBackfill", batsim4_dir / "nonet1490.xml", batsim4_dir / "w_1000_l0.85.json")
    ours = (shell.folder / "easyBackfill_jobs.csv").read_text().splitlines()
    real = (batsim4_dir / "w_1000_l0.85.pybatsim_easyBackfill.jobs.csv").read_text().splitlines()
    assert sorted(ours) == sorted(real)


def test_serve_drives_it_too(shell: Any, clients: Any, address: str, batsim4_dir: Path) -> None:
    """`serve --dialect batsim` gives the same starts and allocations in native outputs."""
    client = shell.spawn(*clients.pybatsim("easyBackfill", address))
    outcome = shell.run(
        "serve", "--dialect", "batsim", "--connect", address, "-p", batsim4_dir / "nonet1490.xml",
        "-w", batsim4_dir / "w_1000_l0.85.json", "--out", "out",
    )  # fmt: skip
    assert outcome.code == 0, (outcome, client.err)
    assert client.finish().code == 0
    real = decided(batsim4_dir / "w_1000_l0.85.pybatsim_easyBackfill.jobs.csv")
    assert decided(shell.folder / "out" / "out_jobs.csv") == real


@pytest.mark.parametrize(
    ("theirs", "ours"), [("easyBackfill", "easy"), ("schedFcfs", "fcfs"), ("schedFiller", "filler")]
)
def test_shipped_schedulers_decide_as_ours_of_the_same_policy(
    theirs: str, ours: str, batsim: Callable[..., str], own: Callable[..., Any], shell: Any, batsim4_dir: Path
) -> None:
    """On the small workload, where the rule that units lie side by side does not matter."""
    inputs = batsim4_dir / "nonet4.xml", batsim4_dir / "tiny.json"
    batsim(theirs, *inputs)
    got = decided(shell.folder / f"{theirs}_jobs.csv")
    # A run in the native dialect leaves jobs out that are too large for the machine.
    assert {row for row in got if row[2] != "REJECTED"} == own(ours, *inputs)


def test_kills_and_registered_jobs(batsim: Callable[..., str], shell: Any, batsim4_dir: Path) -> None:
    """Progress of killed jobs; registered jobs and profiles; metadata; the end of registration."""
    printed = batsim(
        "busybody.py", batsim4_dir / "nonet4.xml", batsim4_dir / "tiny.json",
        "--enable-dynamic-jobs", "--acknowledge-dynamic-jobs",
    )  # fmt: skip
    assert [line for line in printed.splitlines() if line.startswith("killed")] == [
        "killed w0!1 0.3", "killed w0!2 0.6", "killed w0!3 0.5", "killed w0!4 0.5", "killed w0!6 0.5",
    ]  # fmt: skip
    told = {
        f"{row['workload_name']}!{row['job_id']}": (row["final_state"], row["starting_time"], row["finish_time"])
        for row in rows(shell.folder / "busybody_jobs.csv")
    }
    assert told == {
        "w0!1": ("COMPLETED_KILLED", "10.000000", "40.000000"),
        "w0!2": ("COMPLETED_KILLED", "40.000000", "70.000000"),
        "w0!3": ("COMPLETED_KILLED", "70.000000", "100.000000"),
        "w0!4": ("COMPLETED_KILLED", "70.000000", "100.000000"),
        "own!1": ("COMPLETED_SUCCESSFULLY", "70.000000", "75.000000"),
        "w0!5": ("REJECTED", "", ""),
        "w0!6": ("COMPLETED_KILLED", "500.000000", "530.000000"),
    }
    (mine,) = (row for row in rows(shell.folder / "busybody_jobs.csv") if row["workload_name"] == "own")
    assert (mine["profile"], mine["metadata"]) == ("short", "after w0!1")


def test_machines_fall_asleep_and_wake_up(batsim: Callable[..., str], shell: Any, batsim4_dir: Path) -> None:
    """Switching off takes 6.1 s, on 151.52 s; a job starts when its last machine is on."""
    speeds = f"1Gf,0.5Gf,0.25Gf,1f,{1 / 6.1!r}f,{1 / 151.52!r}f"
    props = f'<prop id="wattage_per_state" value="{WATTS}"/><prop id="sleep_pstates" value="3:4:5"/>'
    platform = shell.write("sleepy.xml", hosts(4, f'speed="{speeds}" pstate="0"', props))
    batsim("sleeper.py", platform, batsim4_dir / "tiny.json", "--energy")
    starts = {row["job_id"]: row["starting_time"] for row in rows(shell.folder / "sleeper_jobs.csv")}
    assert starts == {
        "1": "10.000000", "2": "261.520000", "3": "311.520000", "4": "311.520000", "5": "", "6": "651.520000",
    }  # fmt: skip
    (schedule,) = rows(shell.folder / "sleeper_schedule.csv")
    switches = [row["new_pstate"] for row in rows(shell.folder / "sleeper_pstate_changes.csv")]
    assert switches.count("-2") + switches.count("-1") == int(schedule["nb_machine_switches"])
    assert float(schedule["time_switching_on"]) == pytest.approx(5 * 151.52)
    assert float(schedule["consumed_joules"]) > 0
    joules = [float(row["energy"]) for row in rows(shell.folder / "sleeper_consumed_energy.csv")]
    assert joules == sorted(joules)


def test_jobs_side_by_side(batsim: Callable[..., str], shell: Any, batsim4_dir: Path) -> None:
    """randomSched shares hosts between jobs: each job starts when it is submitted."""
    batsim("randomSched", batsim4_dir / "nonet4.xml", batsim4_dir / "tiny.json", "--enable-compute-sharing")
    ended = [row for row in rows(shell.folder / "randomSched_jobs.csv") if row["final_state"] != "REJECTED"]
    assert [row["job_id"] for row in ended] == ["4", "2", "3", "1", "6"]
    assert {row["waiting_time"] for row in ended} == {"0.000000"}


def test_jobs_split_into_tasks_by_a_scheduler_that_never_says_it_is_done(
    shell: Any, clients: Any, address: str, batsim4_dir: Path
) -> None:
    """It registers tasks and declares its jobs' states; under Batsim 4 it hangs at the end, here the run stalls."""
    (script,) = clients.folder.glob("lib/*/site-packages/schedulers/unMaintained/schedDelayProfilesAsTasks.py")
    shell.spawn(*clients.pybatsim(str(script), address))
    outcome = shell.batsim(
        "-p", batsim4_dir / "nonet4.xml", "-w", batsim4_dir / "tiny.json", "-e", "tasks", "-s", address, "-q",
        "--enable-dynamic-jobs", "--acknowledge-dynamic-jobs",
    )  # fmt: skip
    outcome.failed(5, "registration_finished", "560.0")
    jobs = rows(shell.folder / "tasks_jobs.csv")
    static = {
        row["job_id"]: (row["final_state"], row["starting_time"], row["finish_time"], row["allocated_resources"])
        for row in jobs
        if row["workload_name"] == "w0"
    }
    done = "COMPLETED_SUCCESSFULLY"
    assert static["1"] == (done, "10.000000", "110.000000", "")
    assert static["6"] == (done, "500.000000", "560.000000", "")
    tasks = [row for row in jobs if row["workload_name"] == "w0%1"]
    assert [row["starting_time"] for row in tasks] == [f"{time}.000000" for time in range(10, 110, 5)]


@pytest.fixture(scope="module")
def kth(traces_dir: Path) -> list[tuple[int, ...]]:
    """Return the first 5,000 usable jobs of KTH SP2: id, submit time, run time, size, requested time."""
    jobs: list[tuple[int, ...]] = []
    with gzip.open(traces_dir / "KTH-SP2-1996-2.1-cln.swf.gz", "rt") as file:
        for line in file:
            if line.startswith(";"):
                continue
            job, submit, _, run, used, _, _, size, wanted, *_ = (int(float(word)) for word in line.split())
            size = size if size > 0 else used
            if run > 0 and wanted > 0 and 0 < size <= 100:
                jobs.append((job, submit, run, size, wanted))
            if len(jobs) == 5000:
                break
    return jobs


@pytest.mark.slow
@pytest.mark.parametrize("scheduler", ["easyBackfill", "fillerSched", "fillerSchedWithEvents"])
def test_kth(scheduler: str, batsim: Callable[..., str], shell: Any, kth: Sequence[tuple[int, ...]]) -> None:
    """Bundled schedulers of pybatsim run 5,000 jobs of a converted log; no two jobs share a unit."""
    log = shell.swf("kth.swf", kth, 100)
    assert shell.run("workload", "convert", log, "kth.json").code == 0
    batsim(scheduler, shell.write("kth.xml", hosts(100)), shell.folder / "kth.json")
    ended = rows(shell.folder / f"{scheduler}_jobs.csv")
    assert len(ended) == len(kth)
    steps = []
    for row in ended:
        assert row["final_state"] in ("COMPLETED_SUCCESSFULLY", "COMPLETED_WALLTIME_REACHED")
        units = set()
        for interval in row["allocated_resources"].split(" "):
            low, _, high = interval.partition("-")
            units.update(range(int(low), int(high or low) + 1))
        assert len(units) == int(row["requested_number_of_resources"])
        steps += [(float(row["finish_time"]), 0, units), (float(row["starting_time"]), 1, units)]
    busy: set[int] = set()
    for _, starts, units in sorted(steps, key=lambda step: step[:2]):
        if starts:
            assert busy.isdisjoint(units)
            busy |= units
        else:
            busy -= units


@pytest.mark.slow
def test_kth_under_easy_is_ours_to_the_unit(
    batsim: Callable[..., str], own: Callable[..., Any], shell: Any, kth: Sequence[tuple[int, ...]]
) -> None:
    """pybatsim's EASY by counts starts each of 5,000 jobs when, and where, our `easy` does.

    It decides after each event, we after each instant: times are spread within their second, in steps that doubles
    add without rounding.
    """
    spread = random.Random(1)  # noqa: S311 - nothing secret
    jobs, profiles = [], {}
    for job, submit, run, size, wanted in kth:
        at, takes, asks = (time + spread.randrange(4096) / 4096 for time in (submit, run, wanted))
        profiles[f"d{takes}"] = {"type": "delay", "delay": takes}
        jobs.append({"id": str(job), "subtime": at, "walltime": asks, "res": size, "profile": f"d{takes}"})
    jobs.sort(key=lambda each: each["subtime"])
    workload = shell.write("kth.json", json.dumps({"nb_res": 100, "jobs": jobs, "profiles": profiles}))
    platform = shell.write("kth.xml", hosts(100))
    batsim("notopo.py", platform, workload)
    theirs, ours = decided(shell.folder / "notopo_jobs.csv"), own("easy", platform, workload)
    assert len(ours) == len(kth)
    assert theirs == ours
