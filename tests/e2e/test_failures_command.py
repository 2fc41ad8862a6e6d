"""Failures, maintenance and resilience from the command line, in process and over real sockets; and errors.

A process takes longer to start than these runs take. Runs that need no process of their own share one that runs many
command lines, one after the other.
"""

import csv
import json
import os
import re
import subprocess
import sys

import pytest

MACHINE = 'name = "m"\n[[pools]]\nname = "a"\nnodes = 8\n'
FAILING = ("--failures", "exponential,mtbf=3d", "--repair", "2h", "--seed", "3")
LIVING = ("--checkpoint", "daly", "--dump", "60", "--read", "60", "--checkpoint-walltime", "extended")
RUN = ("run", "-w", "w.swf", "--no-progress")
INSIDE = (*RUN, "--in-process", "-p", "m.toml")
FOUR = ("run", "--no-progress", "--in-process", "-p", "four.toml", "--scheduler", "fcfs")

#: runs in one process, by the name of the outputs
RUNS = {
    "hand": (*FOUR, "-w", "hand.json", "--outages", "hand.csv", "--checkpoint", "100", "--dump", "10", "--read", "5"),
    "own": (*FOUR, "-w", "own.json", "--outages", "own.csv"),
    "living": (*INSIDE, *FAILING, *LIVING),
    "model": (*INSIDE, *FAILING),
    "met": (*INSIDE, "--outages", "model/out_outages.csv"),
    "replayed": (*INSIDE, "--outages", "f.csv"),
    "fcfs": (*INSIDE, *FAILING, "--scheduler", "fcfs"),
    "maui": (*INSIDE, *FAILING, "--scheduler", "maui"),
    "maintained": (*INSIDE, "--maintenance", "@2d +12h all", "--maintenance", "@4d +6h 0-3 named pumps"),
    "ruled": (*RUN, "--in-process", "-p", "failing.toml", "--maintenance", "rules.txt"),
    "harmless": (*RUN, "--in-process", "-p", "failing.toml", "--maintenance", "rules.txt", "--failures", "none"),
    "remarkable": (*INSIDE, *FAILING, "--checkpoint", "1h", "--dump", "10min"),
    "slow": (*INSIDE, "--failures", "exponential,mtbf=1000y", "--repair", "1y"),
    "hosts": (*RUN, "--in-process", "-p", "hosts.xml", "--outages", "hosts.csv"),
    "gone": (*INSIDE, "--outages", "gone.csv"),
    "endless": (*INSIDE, "--failures", "exponential,mtbf=1h", "--repair", "1h"),
    "down": (*INSIDE, "--failures", "exponential,mtbf=20min", "--repair", "1h", "--max-attempts", "1"),
}

#: options that are rejected, and what the message must contain
WRONG = (
    (["--failures", "exponential,mtbf=0", "--repair", "1h"], ["'mtbf' is not above zero"]),
    (["--failures", "exponential,mtbf=-5h", "--repair", "1h"], ["--failures", "'-5h'"]),
    (["--failures", "exponential,mtbf=5h"], ["the repair time is missing"]),
    (["--failures", "exponential,mtbf=5h,smtbf=1h", "--repair", "1h"], ["expected mtbf, or smtbf"]),
    (["--failures", "lanl-21"], ["Did you mean 'lanl-2"]),
    (["--failures", "absent.toml"], ["there is no file 'absent.toml'"]),
    (["--failures", "m.toml"], ["--failures m.toml", "not a failure model"]),
    (["--failures", "exponential,mtbf=5h,pool=b", "--repair", "1h"], ["no pool 'b'"]),
    (["--failures", "none", *FAILING], ["--failures none cannot be combined with a model"]),
    (["--outages", "overlap.csv"], ["overlap.csv", "lines 2 and 3", "overlap"]),
    (["--outages", "strange.csv"], ["strange.csv, line 2", "unknown node", "8"]),
    (["--outages", "nothing.csv"], ["nothing.csv", "is empty", "node,down,up,cause"]),
    (["--outages", "one.csv", "--outages-start", "60"], ["--outages-start", "end before this time"]),
    (["--outages", "one.csv", "--outages-start", "2017-01-29"], ["--outages-start", "a time cannot be read"]),
    (["--outages", "one.csv", "--repair", "1h"], ["--repair has no effect", "the file says"]),
    (["--outages", "one.csv", "--reliability-factor", "2"], ["--reliability-factor has no effect"]),
    (["--outages-class", "20"], ["--outages FILE"]),
    (["--maintenance", "1990-01-01 08:00 +1h all"], ["begins before time 0"]),
    (["--maintenance", "@1d +1h 0-99"], ["no such nodes", "8-99"]),
    (["--maintenance", "empty.txt"], ["the file has no maintenance rules"]),
    (["--maintenance", "absent.txt"], ["'absent.txt'", "no such file"]),
    (["--maintenance", "@1d +1h all", "--repair", "1h"], ["--repair has no effect"]),
    (["--checkpoint", "10", "--dump", "60"], ["shorter than the checkpoint"]),
    (["--checkpoint", "daly", "--dump", "60"], ["nothing fails"]),
    (["--checkpoint", "hourly"], ["unknown checkpoint interval"]),
    (["--dump", "60"], ["--dump needs --checkpoint"]),
    ([*FAILING, "--spares", "8"], ["no node to work beside its spares"]),
    ([*FAILING, "--spares", "200%"], ["invalid number of spares"]),
    ([*FAILING, "--requeue", "never", "--max-attempts", "2"], ["--max-attempts has no effect"]),
    ([*FAILING, "--max-attempts", "0"], ["--max-attempts"]),
    (["--requeue", "never"], ["--requeue has no effect"]),
    (["--repair", "1h"], ["--repair has no effect"]),
    (["--seed", "7"], ["--seed has no effect"]),
)


def jobs_of(*rows):
    """Return a workload in Batsim's JSON for four units: submit time, size, walltime, run time, resilience."""
    jobs = [
        {"id": str(at), "subtime": submit, "res": size, "walltime": limit, "profile": str(time), **more}
        for at, (submit, size, limit, time, more) in enumerate(rows, 1)
    ]
    profiles = {str(time): {"type": "delay", "delay": time} for _, _, _, time, _ in rows}
    return json.dumps({"nb_res": 4, "jobs": jobs, "profiles": profiles})


DUMPS = {"resilience": {"checkpoint": 100, "dump": 10, "read": 5}}
MOLDABLE = {"resilience": {"resilience": "moldable", "spares": 1}}
FILES = {
    "four.toml": 'name = "four"\n[[pools]]\nname = "a"\nnodes = 4\n',
    "hand.json": jobs_of((0, 2, 2000, 1000, {}), (0, 2, 600, 500, {}), (10, 4, 500, 200, {})),
    "hand.csv": "node,down,up,cause\n0,250,400,fan\n2,500,600,psu\n3,550,560,psu\n1,1400,1500,late\n",
    "own.json": jobs_of((0, 2, 2000, 1000, DUMPS), (0, 2, 5000, 1000, MOLDABLE)),
    "own.csv": "node,down,up,cause\n0,250,400,fan\n2,500,600,psu\n3,1100,1200,psu\n",
    "m.toml": MACHINE,
    "failing.toml": f'{MACHINE}[[failures]]\nmodel = "exponential,mtbf=2d"\nrepair = "1h"\n',
    "rules.txt": "# weekly\n@1d +2h 0-1 weekly 2 times announced 1d\n",
    "overlap.csv": "node,down,up,cause\n1,10,30,x\n1,20,40,x\n",
    "strange.csv": "node,down,up,cause\n8,10,30,x\n",
    "one.csv": "node,down,up,cause\n1,10,30,x\n",
    "hosts.xml": "<platform version='4.1'><zone id='z' routing='Full'>"
    + "".join(f"<host id='{name}' speed='1Gf'/>" for name in ("b", "a", "h", "d", "c", "g", "f", "e"))
    + "</zone></platform>",
    "hosts.csv": "node,down,up,cause\nd,10,30,x\n",
    "gone.csv": "node,down,up,cause\n0-2,10,30,x\n0-7,40,,scrapped\n",
    "nothing.csv": "",
    "empty.txt": "# nothing\n",
}

#: runs each command line of a JSON list on standard input; prints a JSON list of [exit code, output, complaints]
ONE_AFTER_THE_OTHER = """
import contextlib, io, json, sys
from pipistrelle.cli.main import main

said = []
for words in json.load(sys.stdin):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(words)
        except SystemExit as end:
            said.append([end.code, out.getvalue(), err.getvalue()])
json.dump(said, sys.stdout)
"""


class Centre:
    """A platform of eight nodes, a workload of some hundred jobs on it, and what the command line made of them."""

    def __init__(self, folder):
        self.folder = folder
        for name, text in FILES.items():
            (folder / name).write_text(text, encoding="utf-8")
        size = ("--jobs", "200", "--machine-size", "8", "--load", "0.6")
        lines = [
            ("workload", "generate", *size, "--seed", "1", "-o", "w.swf"),
            ("failures", "generate", *FAILING, "-p", "m.toml", "--horizon", "2y", "-o", "f.csv"),
            *((*words, "--out", name) for name, words in RUNS.items()),
            *((*INSIDE, "--out", "wrong", *words) for words, _ in WRONG),
        ]
        process = subprocess.run(
            [sys.executable, "-c", ONE_AFTER_THE_OTHER],
            input=json.dumps(lines),
            capture_output=True,
            text=True,
            cwd=folder,
            env={**os.environ, "COLUMNS": "200"},
            timeout=600,
            check=True,
        )
        said = json.loads(process.stdout)
        assert [code for code, _, _ in said[:2]] == [0, 0], said[:2]
        self.said = dict(zip(RUNS, said[2:], strict=False))
        self.wrong = said[2 + len(RUNS) :]

    def rows(self, name, table, folder=None):
        """Return the lines of an output of a run that succeeded."""
        path = (folder or self.folder) / name / f"out_{table}.csv"
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    def files(self, name):
        """Return the bytes of a run's results, except the file that tells how it was called."""
        paths = sorted((self.folder / name).iterdir())
        return {path.name: path.read_bytes() for path in paths if path.name != "out_command.json"}


@pytest.fixture(scope="module")
def centre(tmp_path_factory):
    """Return the centre, when all its runs are over."""
    return Centre(tmp_path_factory.mktemp("centre"))


@pytest.fixture
def outside(shell):
    """Return a shell with the same machine and workload for runs with processes of their own."""
    shell.write("m.toml", MACHINE)
    size = ("--jobs", "200", "--machine-size", "8", "--load", "0.6")
    shell.run("workload", "generate", *size, "--seed", "1", "-o", "w.swf").ok()
    return shell


@pytest.mark.slow
def test_a_run_in_which_nodes_fail(centre):
    """Jobs are requeued and finish; attempts, nodes and figures report it and agree."""
    code, out, err = centre.said["living"]
    assert (code, err) == (0, "")
    assert "failures of nodes" in out
    attempts, nodes = centre.rows("living", "attempts"), centre.rows("living", "nodes")
    figures = json.loads((centre.folder / "living" / "out_summary.json").read_text())["reliability"]
    again = [row for row in attempts if int(row["attempt"]) > 0]

    assert again
    assert all(row["job_id"] == f"{row['first_job_id']}#{row['attempt']}" for row in again)
    assert {row["cause"] for row in attempts if row["retried"] == "1"} == {"failure"}
    assert sum(int(row["failures"]) for row in nodes) == figures["node_failures"] > 10
    assert figures["interrupted_attempts"] == sum(row["retried"] == "1" for row in attempts)
    assert len(centre.rows("living", "jobs")) == figures["attempts"] == len(attempts)
    config = json.loads((centre.folder / "living" / "out_config.json").read_text())
    assert config["reliability"]["seed"] == 3


def test_a_run_computed_by_hand(centre):
    """Dumps every 100 s of work: what each attempt saved and lost, and the state of each node."""
    names = ("job_id", "starting_time", "finish_time", "dumps", "reads", "saved", "unit_seconds_lost", "cause")
    attempts = [tuple(row[name] for name in names) for row in centre.rows("hand", "attempts")]
    nodes = centre.rows("hand", "nodes")

    assert [(job, *map(float, numbers), cause) for job, *numbers, cause in attempts] == [
        ("1", 0, 250, 2, 0, 200, 2 * 30, "fan"),  # dumps at 100 to 110 and 210 to 220
        ("2", 0, 500, 4, 0, 400, 2 * 60, "psu"),
        ("2#1", 600, 600 + 5 + 100, 0, 1, 500, 0, ""),
        ("1#1", 400, 400 + 5 + 800 + 7 * 10, 7, 1, 1000, 0, ""),
        ("3", 1275, 1400, 1, 0, 100, 4 * 15, "late"),
        ("3#1", 1500, 1500 + 5 + 100, 0, 1, 200, 0, ""),
    ]
    assert [float(row["time_down"]) for row in nodes] == [150, 100, 100, 10]
    assert [float(row["time_busy"]) for row in nodes] == [250 + 875 + 125 + 105] * 2 + [500 + 105 + 125 + 105] * 2
    figures = json.loads((centre.folder / "hand" / "out_summary.json").read_text())["reliability"]
    assert figures["availability"] == pytest.approx(1 - 360 / (4 * 1605))
    assert figures["by_size"][0]["mean_time_to_interruption"] == (250 + 500 + 105 + 875) / 2


def test_jobs_with_different_resilience_to_failures(centre):
    """One job dumps and restarts, the other continues on one node until that fails, too."""
    names = ("job_id", "starting_time", "finish_time", "nodes_lost", "failures_survived", "unit_seconds_lost")
    attempts = [tuple(row[name] for name in names) for row in centre.rows("own", "attempts")]

    assert [(job, *map(float, numbers)) for job, *numbers in attempts] == [
        ("1", 0, 250, 1, 0, 2 * 30),
        ("2", 0, 1100, 2, 1, 2 * 500 + 600),
        ("1#1", 400, 1275, 0, 0, 0),
        ("2#1", 1200, 2200, 0, 0, 0),
    ]


def test_every_transport_gives_the_same_bytes(centre, outside):
    """Over a Unix socket, over TCP and in process, whatever fails."""
    words = (*RUN, "-p", "m.toml", *FAILING, *LIVING)
    outside.run(*words, "--out", "ipc").ok()
    outside.run(*words, "--out", "tcp", "--endpoint", "tcp://127.0.0.1:*").ok()

    assert outside.files("ipc") == outside.files("tcp") == centre.files("living")


def test_every_scheduler_meets_the_same_failures(centre, outside):
    """FCFS, EASY, Maui and a foreign program, in either dialect: the models' whole stream until the run ends."""
    words = (*RUN, "-p", "m.toml", *FAILING)
    outside.run(*words, "--out", "batsim", "--scheduler", "easy", "--dialect", "batsim").ok()
    outside.run(*words, "--out", "foreign", "--scheduler", *outside.peer("good")).ok()
    with (centre.folder / "f.csv").open(encoding="utf-8", newline="") as file:
        assert next(file).startswith("# nodes: ")
        outages = [(int(row["node"]), float(row["down"]), float(row["up"])) for row in csv.DictReader(file)]
    seen = {name: centre.rows(name, "nodes") for name in ("model", "fcfs", "maui")}
    seen |= {name: centre.rows(name, "nodes", outside.folder) for name in ("batsim", "foreign")}

    for name, nodes in seen.items():
        end = float(nodes[0]["time_up"]) + float(nodes[0]["time_down"])
        for number, row in enumerate(nodes):
            met = [(down, min(up, end)) for node, down, up in outages if node == number and down <= end]
            assert int(row["failures"]) == len(met), (name, row)
            assert float(row["time_down"]) == pytest.approx(sum(up - down for down, up in met), abs=1e-3), (name, row)
        assert sum(int(row["failures"]) for row in nodes) > 10


def test_a_saved_stream_replays_to_the_same_bytes(centre):
    """A model's stream, written to a file and replayed, gives the same run, except for its description."""
    model, replayed = centre.files("model"), centre.files("replayed")

    assert {name for name in model if model[name] != replayed[name]} == {"out_config.json", "out_summary.json"}
    summaries = [json.loads(files["out_summary.json"]) for files in (model, replayed)]
    assert summaries[0].pop("inputs_sha256") != summaries[1].pop("inputs_sha256")
    assert summaries[0] == summaries[1]


def test_maintenance_is_kept_clear(centre):
    """Nothing runs on the nodes then and no job is killed: no job was started that would have overlapped it."""
    assert centre.said["maintained"][::2] == [0, ""]
    jobs = centre.rows("maintained", "jobs")
    begin, end = 2 * 86400.0, 2.5 * 86400.0

    assert all(float(row["finish_time"]) <= begin or float(row["starting_time"]) >= end for row in jobs)
    assert not [row for row in centre.rows("maintained", "attempts") if row["cause"]]
    assert {row["maintenances"] for row in centre.rows("maintained", "nodes")} == {"1", "2"}


def test_rules_of_a_file_and_failures_of_the_platform(centre):
    """Rules come from a file, failures from the platform; an option can disable failures."""
    assert [centre.said[name][::2] for name in ("ruled", "harmless")] == [[0, ""], [0, ""]]

    assert sum(int(row["failures"]) for row in centre.rows("ruled", "nodes")) > 10
    assert sum(int(row["failures"]) for row in centre.rows("harmless", "nodes")) == 0
    assert [row["maintenances"] for row in centre.rows("harmless", "nodes")][:3] == ["2", "2", "0"]


@pytest.mark.parametrize(("number", "words", "fragments"), [(at, *case) for at, case in enumerate(WRONG)])
def test_bad_input_is_refused_before_the_run(centre, number, words, fragments):
    """One message that says what is wrong, exit code 2, no outputs."""
    code, out, err = centre.wrong[number]

    assert (code, out) == (2, ""), words
    assert [line for line in err.splitlines() if line.startswith("pipistrelle:")] == err.splitlines()[:1], err
    assert "Traceback" not in err
    for fragment in fragments:
        assert fragment in err
    assert not (centre.folder / "wrong" / "out_jobs.csv").exists()


def test_walltimes_too_short_for_dumps_are_reported(centre):
    """Walltimes that end before the first dump, or that dumps use up, are reported before the run."""
    code, _, err = centre.said["remarkable"]

    assert code == 0
    assert "jobs with a walltime that ends before the first dump: w0!" in err
    assert "jobs that will reach the walltime because of dumps" in err
    assert "(--checkpoint-walltime extended avoids it)" in err


def test_outages_name_hosts(centre):
    """A host's name in a file of outages means that host of a SimGrid XML machine, with the number that jobs use."""
    assert centre.said["hosts"][0] == 0, centre.said["hosts"]
    assert [row["node"] for row in centre.rows("hosts", "nodes") if row["failures"] == "1"] == ["3"]


def test_recorded_outages_replay_to_the_same_run(centre):
    """A run that replays them has the same jobs, attempts, decisions, nodes and outages."""
    for name in ("jobs", "attempts", "decisions", "nodes", "outages"):
        assert centre.rows("met", name) == centre.rows("model", name), name
    met = centre.rows("met", "outages")
    assert {row["planned"] for row in met} == {"0"}
    assert {row["planned"] for row in centre.rows("maintained", "outages")} == {"1"}
    assert sum(row["ended"] == "1" for row in met) > len(met) - 8


def test_a_job_that_cannot_finish_is_found_early_and_named(centre):
    """The message says which, how many attempts it lost and may need, and what to do; outputs are kept."""
    code, out, err = centre.said["endless"]

    assert code == 5, err
    assert "ended early: stalled" in out
    found = re.search(r"time ([0-9.]+): w0!\d+ has lost its nodes 10 times, .*; at least 10\^\d+ attempts", err)
    assert found, err
    assert float(found[1]) < 30 * 86400
    assert "give --checkpoint or --max-attempts, or let it continue with --expected-attempts 0." in err
    assert centre.rows("endless", "attempts")


def test_failures_with_which_a_workload_can_hardly_end_are_reported(centre):
    """A repair longer than the workload; a machine that is hardly ever up as a whole; nodes that never return."""
    assert "a repair takes 3.15576e+07 s on average, longer than all jobs of w take" in centre.said["slow"][2]
    assert "2 of 8 units are up on average: job " in centre.said["down"][2]
    assert centre.said["gone"][0] == 5
    assert "199 jobs (2, 3, 4 and others) can never start, because nodes are never repaired" in centre.said["gone"][2]
