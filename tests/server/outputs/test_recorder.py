"""Files that are written during a run."""

import csv
from pathlib import Path
from typing import Any

import pytest

from pipistrelle.platforms.description import homogeneous
from pipistrelle.protocol.decisions import (
    ExecuteJob,
    ExecuteJobData,
    KillJob,
    KillJobData,
    RejectJob,
    RejectJobData,
)
from pipistrelle.schedulers.catalogue.registry import make_policy
from pipistrelle.schedulers.runtime.runtime import Runtime
from pipistrelle.server.engine.observers import Observer
from pipistrelle.server.errors import OutputFailed
from pipistrelle.server.outputs.recorder import Recorder
from pipistrelle.server.setup.setup import Setup
from pipistrelle.server.simulation.simulate import simulate
from pipistrelle.server.transport.in_process import InProcessTransport
from pipistrelle.traces.generator import generate

#: the first line of every jobs file of Batsim 4
BATSIM_JOBS = (
    "job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,success,final_state,"
    "starting_time,execution_time,finish_time,waiting_time,turnaround_time,stretch,allocated_resources,"
    "consumed_energy,metadata"
)
#: and of its machine states file
BATSIM_STATES = "time,nb_sleeping,nb_switching_on,nb_switching_off,nb_idle,nb_computing"
FULL = Path("/dev/full")


def recorded(play: Any, folder: Path, rows: list[Any], units: int = 4, **options: Any) -> Any:
    """Return a game whose recorder writes into the folder."""
    return play(units, rows, observers=[Recorder(f"{folder}/")], **options)


def table(path: Path) -> list[dict[str, str]]:
    """Return a CSV file's rows as a reader by the standard sees them."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_small_run_byte_for_byte(play: Any, tmp_path: Path) -> None:
    """Every kind of end and of decision, with each file compared as a whole."""
    rows = [
        ("1", 0, 2, 10, 20),
        ("2", 0.5, 3, 100, 7.25),
        ("3", 1, 1, 10, float("inf")),
        ("4", 1, 1, 10, 30),
        ("5", 1, 9, 10, 30),
    ]
    game = recorded(play, tmp_path, rows, features=("dynamic_jobs",))
    game.begin()
    game.say(game.execute("1", "3 0"), game.metadata("1", 'a "b", c'))
    game.say()
    game.say(game.execute("3", "1"), game.execute("4", "1"), game.reject("5"), game.register("dyn!x", 1, 2.5))
    game.say(game.execute("4", "2"), game.kill("4", "3", at=4), game.call(6, "tick"), game.cancel("tack"))
    game.say(game.execute("dyn!x", "1"), game.call(1), game.malformed())
    while game.notice.now < 10:
        game.say()
    game.say(game.execute("2", "1-3"))
    assert game.say() is None
    assert game.end() == ["17.25 ends completed"]

    assert (tmp_path / "jobs.csv").read_bytes().decode() == (
        BATSIM_JOBS + "\n"
        '5,w0,p5,1.000000,9,30.000000,0,REJECTED,,,,,,,,,""\n'
        "4,w0,p4,1.000000,1,30.000000,0,COMPLETED_KILLED,1.000000,3.000000,4.000000,0.000000,3.000000,1.000000,2,"
        '-1.000000,""\n'
        "3,w0,p3,1.000000,1,-1.000000,0,COMPLETED_KILLED,1.000000,3.000000,4.000000,0.000000,3.000000,1.000000,1,"
        '-1.000000,""\n'
        "x,dyn,2.5,1.000000,1,-1.000000,1,COMPLETED_SUCCESSFULLY,4.000000,2.500000,6.500000,3.000000,5.500000,2.200000,"
        '1,-1.000000,""\n'
        "1,w0,p1,0.000000,2,20.000000,1,COMPLETED_SUCCESSFULLY,0.000000,10.000000,10.000000,0.000000,10.000000,"
        '1.000000,0 3,-1.000000,"a ""b"", c"\n'
        "2,w0,p2,0.500000,3,7.250000,0,COMPLETED_WALLTIME_REACHED,10.000000,7.250000,17.250000,9.500000,16.750000,"
        '2.310345,1-3,-1.000000,""\n'
    )
    assert (tmp_path / "machine_states.csv").read_bytes().decode() == (
        BATSIM_STATES + "\n"
        "0.000000,0,0,0,2,2\n"
        "1.000000,0,0,0,0,4\n"
        "4.000000,0,0,0,1,3\n"
        "6.500000,0,0,0,2,2\n"
        "10.000000,0,0,0,1,3\n"
        "17.250000,0,0,0,4,0\n"
    )
    assert [line.split(",")[:5] for line in (tmp_path / "decisions.csv").read_text().splitlines()] == [
        ["time", "decision", "job_id", "alloc", "verdict"],
        ["0.0", "EXECUTE_JOB", "w0!1", "3 0", "carried_out"],
        ["0.0", "SET_JOB_METADATA", "w0!1", "", "carried_out"],
        ["1.0", "EXECUTE_JOB", "w0!3", "1", "carried_out"],
        ["1.0", "EXECUTE_JOB", "w0!4", "1", "busy_unit"],
        ["1.0", "REJECT_JOB", "w0!5", "", "carried_out"],
        ["1.0", "REGISTER_JOB", "dyn!x", "", "carried_out"],
        ["1.0", "EXECUTE_JOB", "w0!4", "2", "carried_out"],
        ["1.0", "CALL_ME_LATER", "tick", "", "carried_out"],
        ["1.0", "CANCEL_CALL", "tack", "", "unknown_call"],
        ["4.0", "KILL_JOB", "w0!4 w0!3", "", "carried_out"],
        ["4.0", "EXECUTE_JOB", "dyn!x", "1", "carried_out"],
        ["4.0", "CALL_ME_LATER", "", "", "past_time"],
        ["4.0", "DANCE", "", "", "unknown_type"],
        ["10.0", "EXECUTE_JOB", "w0!2", "1-3", "carried_out"],
    ]


def test_the_reason_of_a_decision_and_of_its_rejection_are_kept(play: Any, tmp_path: Path) -> None:
    """``why`` and the message are in the decisions file, for any characters in them."""
    game = recorded(play, tmp_path, [("1", 0, 1, 5, 5), ("2", 0, 1, 5, 5)])
    game.begin()
    game.say(
        ExecuteJob(0.0, ExecuteJobData("w0!1", "0", 'first, "of" all\nlines')),
        RejectJob(0.0, RejectJobData("w0!2", "")),
        KillJob(0.0, KillJobData(("w0!1",), "enough")),
        ExecuteJob(0.0, ExecuteJobData("w0!2", "x,y", "never")),
    )
    game.end()

    rows = table(tmp_path / "decisions.csv")
    assert [row["why"] for row in rows] == ['first, "of" all\nlines', "", "enough", "never"]
    assert [row["message"] for row in rows] == ["", "", "", "w0!2 has ended already"]
    assert rows[3]["alloc"] == "x,y"


@pytest.mark.parametrize(
    "name", ["a,b", 'say "hi"', "two\nlines", "cr\rlf", "ü→日本", " blank ", "semi;colon", "=1+1", "'"]
)
def test_odd_names_read_back_as_they_were(make_job: Any, tmp_path: Path, name: str) -> None:
    """Names, profiles and texts with commas, quotes, line ends or any script survive a standard CSV reader."""
    recorder = Recorder(f"{tmp_path}/")
    recorder.begins(0.0, 4)
    job = make_job(f"w0!{name}", profile=name)
    job.state, job.metadata = "REJECTED", name
    recorder.ended(3.0, job)
    recorder.ends(3.0, "completed", "")

    row = table(tmp_path / "jobs.csv")[0]
    assert (row["job_id"], row["workload_name"], row["profile"], row["metadata"]) == (name, "w0", name, name)


def test_a_name_may_hold_the_mark_that_parts_prefix_and_name(make_job: Any, tmp_path: Path) -> None:
    """The prefix ends at the first exclamation mark."""
    recorder = Recorder(f"{tmp_path}/")
    recorder.begins(0.0, 4)
    job = make_job("w0!a!b")
    job.state = "REJECTED"
    recorder.ended(3.0, job)
    recorder.ends(3.0, "completed", "")

    row = table(tmp_path / "jobs.csv")[0]
    assert (row["job_id"], row["workload_name"]) == ("a!b", "w0")


def test_the_stretch_of_a_job_of_no_length(play: Any, tmp_path: Path) -> None:
    """It is 1, whether the job had waited or not."""
    game = recorded(play, tmp_path, [("1", 0, 1, 0, 5), ("2", 0, 1, 0, 5), ("3", 9, 1, 1, 5)])
    game.begin()
    game.say(game.execute("1", "0"), game.execute("2", "0", at=4))
    game.end()

    assert [row["stretch"] for row in table(tmp_path / "jobs.csv")] == ["1.000000", "1.000000"]


def test_only_what_an_instant_ends_with_is_a_machine_state(play: Any, tmp_path: Path) -> None:
    """Units that are freed and allocated again at one instant leave no line."""
    game = recorded(play, tmp_path, [("1", 0, 4, 5, 5), ("2", 0, 4, 5, 5)])
    game.begin()
    game.say(game.execute("1", "0-3"))
    game.say(game.execute("2", "0-3"))
    game.say()
    game.end()

    assert [(row["time"], row["nb_idle"]) for row in table(tmp_path / "machine_states.csv")] == [
        ("0.000000", "0"),
        ("10.000000", "4"),
    ]


def test_units_that_go_down_while_as_many_come_free_are_a_new_state(tmp_path: Path) -> None:
    """Only the number of down or idle units changes; an unchanged state writes no line."""
    recorder = Recorder(f"{tmp_path}/", fails=True)
    recorder.begins(0.0, 4)
    for now, idle, down in ((0.0, 3, 0), (5.0, 3, 1), (6.0, 3, 1), (7.0, 2, 1), (8.0, 2, 0)):
        recorder.settled(now, idle, down)
    recorder.ends(9.0, "completed", "")

    lines = (tmp_path / "machine_states.csv").read_text().splitlines()
    assert [line.replace(".000000", "") for line in lines[1:]] == [
        "0,0,0,0,3,1,0",
        "5,0,0,0,3,0,1",
        "7,0,0,0,2,1,1",
        "8,0,0,0,2,2,0",
    ]


@pytest.mark.parametrize("policy", ["fcfs", "easy", "filler"])
def test_machine_states_and_jobs_tell_the_same_story(tmp_path: Path, policy: str) -> None:
    """At every line idle and busy units add up to the machine, and busy ones equal those of the jobs file."""
    setup = Setup.of(homogeneous(16, "small"), generate(jobs=400, units=16, seed=3, load=1.1))
    runtime = Runtime(make_policy(policy))
    simulate(setup, InProcessTransport(runtime), clock=lambda: 0.0, out=tmp_path)
    changes: dict[float, int] = {}
    for row in table(tmp_path / "out_jobs.csv"):
        size = int(row["requested_number_of_resources"])
        for column, sign in (("starting_time", 1), ("finish_time", -1)):
            time = float(row[column])
            changes[time] = changes.get(time, 0) + sign * size
    expected, busy = list[tuple[float, int]](), 0
    for time in sorted(changes):
        busy += changes[time]
        if not expected or busy != expected[-1][1]:
            expected.append((time, busy))
    states = table(tmp_path / "out_machine_states.csv")

    assert all(int(row["nb_idle"]) + int(row["nb_computing"]) == 16 for row in states)
    told = [(float(row["time"]), int(row["nb_computing"])) for row in states]
    assert [state for state in told if state[0] >= expected[0][0]] == expected
    assert all(busy == 0 for time, busy in told if time < expected[0][0])


def test_files_are_opened_when_the_run_begins(play: Any, tmp_path: Path) -> None:
    """Older outputs are left alone until then."""
    (tmp_path / "jobs.csv").write_text("old")
    game = recorded(play, tmp_path, [])

    assert [path.name for path in tmp_path.iterdir()] == ["jobs.csv"]
    assert (tmp_path / "jobs.csv").read_text() == "old"
    game.begin()
    game.end()
    assert (tmp_path / "jobs.csv").read_text() == BATSIM_JOBS + "\n"


@pytest.mark.parametrize("name", ["jobs.csv", "machine_states.csv", "decisions.csv"])
def test_a_file_that_cannot_be_opened_ends_the_run_at_its_beginning(play: Any, tmp_path: Path, name: str) -> None:
    """The error names the file and what to do; opened files are closed by the end."""
    (tmp_path / name).mkdir()
    game = recorded(play, tmp_path, [("1", 0, 1, 5, 5)])
    with pytest.raises(OutputFailed, match=r"cannot write the output \(Is a directory\).*another folder") as caught:
        game.advance()

    assert caught.value.where == str(tmp_path / name)
    game.end()


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("name", ["jobs.csv", "machine_states.csv", "decisions.csv"])
def test_a_full_disk_is_named_and_the_other_files_are_complete(play: Any, tmp_path: Path, name: str) -> None:
    """Closing tries every file; the one that cannot be written is the error."""
    (tmp_path / name).symlink_to(FULL)
    game = recorded(play, tmp_path, [("1", 0, 1, 5, 5)])
    game.begin()
    game.say(game.execute("1", "0"))
    with pytest.raises(OutputFailed, match="No space left on device") as caught:
        game.end()

    assert caught.value.where == str(tmp_path / name)
    others = {"jobs.csv", "machine_states.csv", "decisions.csv"} - {name}
    assert all((tmp_path / other).read_text().count("\n") >= 2 for other in others)


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full here")
def test_a_disk_that_fills_up_ends_the_run_before_its_end(play: Any, tmp_path: Path) -> None:
    """The error comes as soon as the buffer is written out, not only at the end."""
    (tmp_path / "decisions.csv").symlink_to(FULL)
    game = recorded(play, tmp_path, [("1", 0, 1, 5, 5)])
    game.begin()

    def write_much() -> None:
        for _ in range(90):
            game.apply(*[game.malformed()] * 100)

    with pytest.raises(OutputFailed, match=r"decisions\.csv: cannot write the output"):
        write_much()
    with pytest.raises(OutputFailed):
        game.end()


def test_files_resume_from_a_state(play: Any, tmp_path: Path) -> None:
    """A recorder that takes over truncates lines after the state, and writes what the first would have written."""
    rows = [("1", 0, 2, 10, 20), ("2", 0.5, 3, 5, 7.25), ("3", 1, 1, 10, 30)]
    names = ("jobs", "machine_states", "decisions")

    def run(folder: Path, *, resumed: bool) -> list[bytes]:
        folder.mkdir()
        recorders = [Recorder(f"{folder}/")]
        game = play(4, rows, observers=[Relay(recorders)])
        game.begin()
        game.say(game.execute("1", "0-1"))
        game.say(game.reject("3"))
        if resumed:
            state = recorders[0].state()
            recorders[0].decided(9.0, game.reject("9"), None)
            recorders[0].ends(9.0, "error", "")
            recorders[0] = Recorder(f"{folder}/")
            recorders[0].restore(state)
        game.say(game.execute("2", "1-3"))
        game.say()
        game.end()
        return [(folder / f"{name}.csv").read_bytes() for name in names]

    assert run(tmp_path / "resumed", resumed=True) == run(tmp_path / "straight", resumed=False)


class Relay(Observer):
    """Calls the recorder that is current at the time."""

    def __init__(self, recorders: list[Recorder]) -> None:
        self._recorders = recorders

    def begins(self, now: float, units: int) -> None:
        """Pass it on."""
        self._recorders[0].begins(now, units)

    def ended(self, now: float, job: Any) -> None:
        """Pass it on."""
        self._recorders[0].ended(now, job)

    def decided(self, now: float, decision: Any, rejected: Any) -> None:
        """Pass it on."""
        self._recorders[0].decided(now, decision, rejected)

    def settled(self, now: float, idle: int, down: int) -> None:
        """Pass it on."""
        self._recorders[0].settled(now, idle, down)

    def ends(self, now: float, reason: Any, message: str) -> None:
        """Pass it on."""
        self._recorders[0].ends(now, reason, message)
