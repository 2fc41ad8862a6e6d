"""Failures, maintenance and resilience from the command line, over real sockets; and what can be wrong."""

import csv
import json

import pytest

MACHINE = 'name = "m"\n[[pools]]\nname = "a"\nnodes = 8\n'
FAILING = ("--failures", "exponential,mtbf=3d", "--repair", "2h", "--seed", "3")
LIVING = ("--checkpoint", "daly", "--dump", "60", "--read", "60", "--checkpoint-walltime", "extended")


@pytest.fixture
def centre(shell):
    """Return a shell with a platform of eight nodes and a workload of some hundred jobs on it."""
    shell.write("m.toml", MACHINE)
    size = ("--jobs", "300", "--units", "8", "--load", "0.6")
    shell.run("workload", "generate", *size, "--seed", "1", "-o", "w.swf").ok()
    return shell


def rows(shell, out, name):
    """Return the lines of an output."""
    with (shell.folder / out / f"out_{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def simulate(shell, out, *words):
    """Run the workload with these options."""
    return shell.run("run", "-p", "m.toml", "-w", "w.swf", "--out", out, *words)


def test_a_run_in_which_nodes_fail(centre):
    """Jobs come back and finish; attempts, nodes and figures tell of it, and agree."""
    out = simulate(centre, "out", *FAILING, *LIVING).ok().out
    assert "failures of nodes" in out
    attempts, nodes = rows(centre, "out", "attempts"), rows(centre, "out", "nodes")
    figures = json.loads((centre.folder / "out" / "out_summary.json").read_text())["reliability"]
    again = [row for row in attempts if int(row["attempt"]) > 0]

    assert again
    assert all(row["job_id"] == f"{row['first_job_id']}#{row['attempt']}" for row in again)
    assert {row["cause"] for row in attempts if row["retried"] == "1"} == {"failure"}
    assert sum(int(row["failures"]) for row in nodes) == figures["node_failures"] > 10
    assert figures["interrupted_attempts"] == sum(row["retried"] == "1" for row in attempts)
    assert len(rows(centre, "out", "jobs")) == figures["attempts"] == len(attempts)
    config = json.loads((centre.folder / "out" / "out_config.json").read_text())
    assert config["reliability"]["seed"] == 3


def test_every_transport_gives_the_same_bytes(centre):
    """Over a Unix socket, over TCP and in process, whatever fails."""
    simulate(centre, "ipc", *FAILING, *LIVING).ok()
    simulate(centre, "tcp", *FAILING, *LIVING, "--endpoint", "tcp://127.0.0.1:*").ok()
    simulate(centre, "inside", *FAILING, *LIVING, "--in-process").ok()

    assert centre.files("ipc") == centre.files("tcp") == centre.files("inside")


def test_every_scheduler_meets_the_same_failures(centre):
    """FCFS, EASY, Maui and a foreign program, in either dialect: the same nodes fail, as far as all ran."""
    simulate(centre, "base", *FAILING, "--scheduler", "fcfs").ok()
    peer = centre.peer("good")
    seen = {}
    for name, words in {
        "fcfs": ("--scheduler", "fcfs"),
        "maui": ("--scheduler", "maui"),
        "batsim": ("--scheduler", "easy", "--dialect", "batsim"),
        "foreign": ("--scheduler", *peer),
    }.items():
        simulate(centre, name, *FAILING, *words).ok()
        states = rows(centre, name, "nodes")
        seen[name] = [(row["node"], int(row["failures"])) for row in states]
    shortest = min(sum(count for _, count in nodes) for nodes in seen.values())

    assert shortest > 10
    for nodes in seen.values():
        assert all(abs(mine - other) <= 3 for (_, mine), (_, other) in zip(nodes, seen["fcfs"], strict=True))


def test_a_saved_stream_replays_to_the_same_bytes(centre):
    """What a model makes, written to a file and replayed, leads to the same run, but for its description."""
    centre.run("outages", "generate", *FAILING, "-p", "m.toml", "--horizon", "2y", "-o", "f.csv").ok()
    simulate(centre, "model", *FAILING).ok()
    simulate(centre, "replayed", "--outages", "f.csv").ok()
    model, replayed = centre.files("model"), centre.files("replayed")

    assert {name for name in model if model[name] != replayed[name]} == {"out_config.json"}


def test_maintenance_is_kept_clear(centre):
    """Nothing runs on the nodes then, and nothing is struck: no job was started that would have run into it."""
    simulate(centre, "out", "--maintenance", "@2d +12h all", "--maintenance", "@4d +6h 0-3 named pumps").ok()
    jobs = rows(centre, "out", "jobs")
    begin, end = 2 * 86400.0, 2.5 * 86400.0

    assert all(float(row["finish_time"]) <= begin or float(row["starting_time"]) >= end for row in jobs)
    assert not [row for row in rows(centre, "out", "attempts") if row["cause"]]
    assert {row["maintenances"] for row in rows(centre, "out", "nodes")} == {"1", "2"}


def test_rules_of_a_file_and_failures_of_the_platform(centre):
    """Rules come from a file, failures from the platform's; the command line can say that nothing fails."""
    centre.write("rules.txt", "# weekly\n@1d +2h 0-1 weekly 2 times announced 1d\n")
    centre.write("m.toml", f'{MACHINE}[[failures]]\nmodel = "exponential,mtbf=2d"\nrepair = "1h"\n')
    simulate(centre, "out", "--maintenance", "rules.txt").ok()
    simulate(centre, "none", "--maintenance", "rules.txt", "--failures", "none").ok()

    assert sum(int(row["failures"]) for row in rows(centre, "out", "nodes")) > 10
    assert sum(int(row["failures"]) for row in rows(centre, "none", "nodes")) == 0
    assert [row["maintenances"] for row in rows(centre, "none", "nodes")][:3] == ["2", "2", "0"]


@pytest.mark.parametrize(
    ("words", "fragments"),
    [
        (["--failures", "exponential,mtbf=0", "--repair", "1h"], ["'mtbf' is not above zero"]),
        (["--failures", "exponential,mtbf=-5h", "--repair", "1h"], ["--failures"]),
        (["--failures", "exponential,mtbf=5h"], ["how long a repair takes"]),
        (["--failures", "lanl-21"], ["Did you mean 'lanl-2"]),
        (["--failures", "exponential,mtbf=5h,pool=b", "--repair", "1h"], ["no pool 'b'"]),
        (["--outages", "overlap.csv"], ["overlap.csv", "overlap"]),
        (["--outages", "strange.csv"], ["unknown node", "8"]),
        (["--outages-class", "20"], ["--outages FILE"]),
        (["--maintenance", "1990-01-01 08:00 +1h all"], ["past"]),
        (["--maintenance", "@1d +1h 0-99"], ["no such nodes", "8-99"]),
        (["--maintenance", "empty.txt"], ["no maintenance in the file"]),
        (["--checkpoint", "10", "--dump", "60"], ["shorter than the dump"]),
        (["--checkpoint", "daly", "--dump", "60"], ["nothing fails"]),
        (["--checkpoint", "hourly"], ["an interval cannot be read"]),
        (["--dump", "60"], ["--dump without --checkpoint"]),
        ([*FAILING, "--spares", "8"], ["no node to work beside its spares"]),
        ([*FAILING, "--spares", "200%"], ["spares cannot be read"]),
        (["--requeue", "never"], ["--requeue has no effect"]),
        (["--repair", "1h"], ["--repair has no effect"]),
        ([*FAILING, "--max-attempts", "0"], ["--max-attempts"]),
    ],
)
def test_bad_input_is_refused_before_the_run(centre, words, fragments):
    """One message that says what is wrong, exit code 2, no outputs."""
    centre.write("overlap.csv", "node,down,up,cause\n1,10,30,x\n1,20,40,x\n")
    centre.write("strange.csv", "node,down,up,cause\n8,10,30,x\n")
    centre.write("empty.txt", "# nothing\n")

    simulate(centre, "out", *words).failed(2, *fragments)
    assert not (centre.folder / "out" / "out_jobs.csv").exists()


def test_jobs_that_will_not_go_as_meant_are_reported(centre):
    """Walltimes that end before the first dump, and walltimes that dumps use up, are named before the run."""
    outcome = simulate(centre, "out", *FAILING, "--checkpoint", "1h", "--dump", "10min")
    err = outcome.err

    assert outcome.code == 0
    assert "jobs have walltimes that end before their first dump: w0!" in err
    assert "jobs will reach their walltimes because of dumps" in err
