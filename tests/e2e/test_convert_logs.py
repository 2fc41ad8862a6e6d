"""``pipistrelle workload convert`` and ``validate`` with the logs of computing centres."""

import csv
import json

import pytest

from pipistrelle.traces.load import load

FIRST = (
    "03/01/2017 23:00:00;Q;7.srv;queue=qprod depend=afterok:6.srv:5.srv\n"
    "03/01/2017 23:00:10;S;7.srv;user=alice group=g project=P-1 jobname=a queue=qprod ctime=1488409200 "
    "start=1488409210 exec_host=n1/0*24+n2/0*24 Resource_List.ncpus=48 Resource_List.nodect=2 "
    "Resource_List.walltime=02:00:00\n"
)
SECOND = (
    "03/02/2017 00:00:10;E;7.srv;user=alice group=g project=P-1 jobname=a queue=qprod ctime=1488409200 "
    "start=1488409210 exec_host=n1/0*24+n2/0*24 Resource_List.ncpus=48 Resource_List.nodect=2 "
    "Resource_List.walltime=02:00:00 end=1488412810 Exit_status=0\n"
)
NODE = (
    "COMPUTENODE {} 1488355200 {} srv 131072 131000 1 24 1 1 1 [NONE] x86_64 {} [qprod:24] [NONE] 1.0 [NONE] [NONE] "
    "[NONE]\n"
)
LEASES = (
    '<?xml version="1.0"?>\n<lease-workload><site><nodes><node-set numnodes="4"/></nodes></site><lease-requests>'
    '<lease-request arrival="00:00:00.00"><lease id="1"><nodes><node-set numnodes="2"/></nodes><start/>'
    '<duration time="01:00:00"/></lease></lease-request></lease-requests></lease-workload>\n'
)


@pytest.fixture
def log(shell):
    """Return the names of the two files of a log of PBS."""
    shell.write("20170301", FIRST)
    shell.write("20170302", SECOND)
    return ["20170301", "20170302"]


def test_a_log_in_several_files(shell, log):
    """Files of several days are one log; a message names what the format does not keep."""
    done = shell.run(
        "workload", "convert", *log, "out.swf", "--units", "processors", "--timezone", "Europe/Prague"
    ).ok()
    lost = "name, account, node_list, dependency (except for the end of one job)"
    lost = f"not kept, because the format cannot hold it: {lost}"
    assert done.out == f"{lost}\n1 job written to out.swf\n"
    workload = load(shell.folder / "out.swf")
    assert (workload.size.tolist(), workload.runtime.tolist()) == ([48], [3600.0])
    assert (workload.timezone, workload.header["Queue"]) == ("Europe/Prague", "1 qprod")


@pytest.mark.parametrize("suffix", ["sacct", "maui.gz", "json.xz", "swf"])
def test_there_and_back(shell, log, suffix):
    """Users, groups and queues survive each format and are read back from it."""
    shell.run("workload", "convert", *log, f"out.{suffix}").ok()
    shell.run("workload", "convert", f"out.{suffix}", "back.sacct").ok()
    labels = load(shell.folder / "back.sacct").labels
    assert (labels["user"], labels["group"], labels["queue"]) == (["alice"], ["g"], ["qprod"])


def test_renumber(shell):
    """New ids are 1, 2, ..., and dependencies follow."""
    rows = "JobID|Submit|ElapsedRaw|NNodes|Dependency\n9_1|10|5|1|\n9_2|20|5|1|afterok:9_1\n"
    shell.write("a.txt", rows)
    assert shell.run("workload", "convert", "a.txt", "out.swf").code == 2
    shell.run("workload", "convert", "a.txt", "out.sacct", "--renumber").ok()
    again = load(shell.folder / "out.sacct")
    assert (again.ids, again.labels["dependency"]) == (["1", "2"], ["", "afterok:1"])


def test_a_machine(shell):
    """A Maui resource trace becomes a platform that can be used."""
    lines = [NODE.format("AVAILABLE", f"n{at}", "[mic]" if at < 2 else "[NONE]") for at in range(5)]
    shell.write("resources", "".join(lines) + NODE.format("DRAINED", "n9", "[NONE]"))
    done = shell.run("workload", "convert", "resources", "machine.toml").ok()
    assert done.out == (
        "down or drained in the trace, but part of the platform: 1 node\n6 nodes in 2 pools written to machine.toml\n"
    )
    assert "6 nodes" in shell.run("validate", "machine.toml").ok().out
    assert "6 nodes" in shell.run("validate", "resources").ok().out
    shell.write("down.csv", "node,down,up\nn9,10,20\nn0,30,40\nn1,30,40\n")
    faults = ("--outages", "down.csv", "--maintenance", "@50 +10 n2 n4 named pumps")
    run = shell.run("run", "--scheduler", "fcfs", "-w", "seven-jobs", "-p", "machine.toml", "-o", "out", *faults)
    assert run.code == 0, run
    nodes = {
        row["node"]: row for row in csv.DictReader((shell.folder / "out" / "out_nodes.csv").read_text().splitlines())
    }
    assert [number for number, row in nodes.items() if row["failures"] == "1"] == ["0", "1", "5"]
    assert [number for number, row in nodes.items() if row["maintenances"] == "1"] == ["2", "4"]
    assert shell.run("workload", "convert", "resources", "machine.toml", "--sort").code == 2
    assert "name a .toml file" in shell.run("workload", "convert", "resources", "out.swf").err


def test_validate(shell, log):
    """The output names the format of each log."""
    shell.write("leases.xml", LEASES)
    out = shell.run("validate", *log, "leases.xml").ok().out
    assert out.count("PBS accounting") == 2
    assert "Haizea leases" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["20170301", "20170302", "out.swf", "--sort"], "--sort needs a single SWF log"),
        (["20170301", "missing", "out.swf"], "missing: no such file"),
        (["20170301", "demo", "out.swf"], "demo: no such file"),
        (["20170301", "out.toml"], "the file's suffix names no format"),
        (["20170301", "out.swf", "--timezone", "Mars"], "unknown time zone 'Mars'"),
        (["20170301", "out.json"], "Batsim's JSON cannot hold a job without run time"),
        (["20170301", "20170301"], "20170301 is also read by this command"),
        (["20170301"], "Missing argument"),
    ],
)
def test_wrong_use(shell, log, words, message):
    """Unsupported combinations are rejected with one message."""
    done = shell.run("workload", "convert", *words)
    assert done.code == 2
    assert message in done.err


def test_a_log_without_a_machine_needs_a_platform(shell, log):
    """`run` and `serve` read a log unchanged; the message says how to name the machine, and to count processors."""
    shell.run("run", "-w", log[0], "--in-process").failed(
        2, "does not give the size of its machine", "PBS accounting never gives it", "--platform", "--units processors"
    )


def test_a_run_records_how_its_log_is_read(shell):
    """`run` counts processors and knows the zone; both are recorded, and `explain` reads the log in the same way."""
    rows = "".join(f"{n}|2024-01-01T08:00:0{n}|100|1|24|00:05:00\n" for n in (1, 2))
    shell.write("jobs.txt", f"JobID|Submit|ElapsedRaw|NNodes|NCPUS|Timelimit\n{rows}")
    shell.write("m.toml", 'name = "m"\n[[pools]]\nname = "p"\nnodes = 1\nunits_per_node = 24\nunit = "core"\n')
    words = ["-w", "jobs.txt", "-p", "m.toml", "--units", "processors", "--timezone", "Europe/Prague"]
    shell.run("run", *words, "--in-process", "--out", "out").ok()

    assert [line[14] for line in shell.ended_jobs()] == ["0-23", "0-23"]
    kept = json.loads((shell.folder / "out" / "out_command.json").read_text())
    assert (kept["units"], kept["timezone"]) == ("processors", "Europe/Prague")
    assert "24 units" in shell.run("explain", "job", "out", "2").ok().out

    server = shell.start("serve", *words, "--out", "served", "--hello-timeout", "600").until("listening at")
    shell.run("schedule", "easy", "--connect", "served").ok()
    server.finish().ok()
    assert shell.files("served")["out_jobs.csv"] == shell.files("out")["out_jobs.csv"]
    assert json.loads((shell.folder / "served" / "out_command.json").read_text())["units"] == "processors"


def test_a_log_with_a_bad_record(shell, log):
    """Each command says which line was left out; ``--strict`` rejects the log."""
    shell.write("cut", SECOND + FIRST[:12] + "\n")
    said = "1 record of cut left out: cut, line 2: the line is not an accounting record"
    for words in (
        ["validate", "cut"],
        ["workload", "convert", "cut", "out.swf"],
        ["workload", "scale", "cut", "--walltime", "1h", "-o", "x.swf"],
    ):
        assert said in shell.run(*words).ok().out
    done = shell.run("run", "-w", "cut", "-p", "tiny", "--in-process", "--out", "out")
    assert (done.code, said in done.err) == (0, True)
    assert "dropped: record that cannot be read" in done.out
    for words in (["validate", "cut"], ["workload", "convert", "cut", "y.swf"], ["run", "-w", "cut", "-p", "tiny"]):
        shell.run(*words, "--strict").failed(2, "cut, line 2: the line is not an accounting record")


def test_a_log_without_header(shell):
    """Output of sacct without a header is read with given column names, which the run records."""
    shell.write("jobs.txt", "1|2024-01-01T08:00:01|100|1|00:05:00\n")
    columns = ["--columns", "JobID,Submit,ElapsedRaw,NNodes,Timelimit"]
    shell.run("validate", "jobs.txt").failed(2, "--columns JobID,Submit,...")
    assert "Slurm sacct" in shell.run("validate", "jobs.txt", *columns).ok().out
    assert "1 job written" in shell.run("workload", "convert", "jobs.txt", "out.swf", *columns).ok().out
    shell.run("run", "-w", "jobs.txt", "-p", "tiny", *columns, "--in-process", "--out", "out").ok()
    assert json.loads((shell.folder / "out" / "out_command.json").read_text())["columns"] == columns[1]
    assert "1" in shell.run("explain", "job", "out", "1").ok().out
    shell.run("run", *columns, "--in-process").failed(
        2, "--columns applies only to the log of a batch system", "sacct printed"
    )


@pytest.mark.parametrize("command", ["run", "serve"])
def test_options_for_reading_logs_need_a_log(shell, command):
    """Nothing is written for a workload that is not a log."""
    shell.run(command, "--timezone", "Europe/Prague", "--out", "out").failed(
        2, "applies only to the log of a batch system", "SWF"
    )
    assert not (shell.folder / "out").exists()


def test_validate_needs_a_log_for_how_to_read_it(shell, log):
    """One log among the files is enough, also a resource trace; without any, the options are rejected."""
    shell.write("resources", NODE.format("AVAILABLE", "n1", "[NONE]"))
    shell.run("validate", log[0], "demo", "--timezone", "Europe/Prague").ok()
    assert "24 cores" in shell.run("validate", "resources", "--units", "processors").ok().out
    shell.run("validate", "demo", "salomon", "--units", "processors").failed(
        2, "apply only to logs of PBS, Slurm and Maui"
    )


@pytest.mark.parametrize(
    ("platform", "warning"),
    [
        ("tiny", "1 job depends on jobs that are not in the workload, or cannot run, and will not wait for them: w0!7"),
        ("hpc2n", "hpc2n hands out cores: count processors with --units processors"),
    ],
)
def test_a_log_is_described_before_its_run(shell, platform, warning):
    """The warning is printed once, and the run continues."""
    shell.write("log", SECOND.replace("Exit_status=0", "Exit_status=0 depend=afterok:6.srv"))
    done = shell.run("run", "-w", "log", "-p", platform, "--in-process", "--out", "out")

    assert done.code == 0
    assert done.err.count(warning) == 1
    assert len(shell.ended_jobs()) == 1
