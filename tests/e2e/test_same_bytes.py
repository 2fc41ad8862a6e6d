"""Equal inputs give equal bytes: over each transport, in each repetition, whatever the environment."""

import json

import pytest


def outputs(shell, name, *arguments, policy="easy"):
    """Run the generated workload and return the bytes of all outputs, with how it was called."""
    shell.run("run", "-w", "made.swf", "--scheduler", policy, *arguments, "--out", name).ok()
    files = shell.files(name)
    assert len(files) == 7
    return files | {"command": command(shell, name)}


def command(shell, name):
    """Return the bytes of what tells how a run was called."""
    return (shell.folder / name / "out_command.json").read_bytes()


@pytest.mark.parametrize("policy", ["fcfs", "easy", "easy-sjbf", "filler"])
def test_every_transport_gives_the_same_bytes(shell, policy):
    """ipc, tcp and in process: every file of the outputs' folder is the same."""
    shell.run("workload", "generate", "--jobs", "400", "--machine-size", "32", "--seed", "7", "-o", "made.swf").ok()
    in_process = outputs(shell, "o1", "--in-process", policy=policy)

    assert outputs(shell, "o2", policy=policy) == in_process
    assert outputs(shell, "o3", "--endpoint", "tcp://127.0.0.1:*", policy=policy) == in_process


def test_two_terminals_give_the_same_bytes(shell):
    """`serve` and `schedule` write what `run` writes, except out_command.json."""
    shell.run("workload", "generate", "--jobs", "400", "--machine-size", "32", "--seed", "7", "-o", "made.swf").ok()
    server = shell.start("serve", "-w", "made.swf", "--out", "served")
    shell.run("schedule", "easy", "--connect", "served").ok()
    server.finish().ok()

    ran = outputs(shell, "ran")
    theirs, ours = json.loads(command(shell, "served")), json.loads(ran.pop("command"))
    assert shell.files("served") == ran
    assert {name for name in ours if theirs[name] != ours[name]} == {"scheduler"}


@pytest.mark.slow
def test_repetitions_give_the_same_bytes(shell):
    """With any hash seed, locale, time zone and working folder."""
    shell.run("workload", "generate", "--jobs", "400", "--machine-size", "32", "--seed", "7", "-o", "made.swf").ok()
    first = outputs(shell, "o0")
    for number, environment in enumerate(
        ({"PYTHONHASHSEED": "1"}, {"PYTHONHASHSEED": "2", "TZ": "Asia/Tokyo"}, {"LC_ALL": "C", "PYTHONUTF8": "0"}), 1
    ):
        shell.environment |= environment
        assert outputs(shell, f"o{number}", "--timings", f"t{number}.json") == first


def test_generated_workloads_have_the_same_bytes(shell):
    """Equal seeds give equal files, also compressed; other seeds give other files."""
    for name, seed in (("a.swf", 3), ("b.swf", 3), ("c.swf", 4), ("a.json.gz", 3), ("b.json.gz", 3)):
        shell.run("workload", "generate", "--jobs", "200", "--seed", str(seed), "-o", name).ok()
    files = {path.name: path.read_bytes() for path in shell.folder.iterdir()}

    assert files["a.json.gz"] == files["b.json.gz"]
    assert files["a.swf"] == files["b.swf"]
    assert files["a.swf"] != files["c.swf"]


def test_a_convert_there_and_back_changes_no_result(shell):
    """SWF to JSON to SWF: jobs run at the same times and end alike, except for a rule of Batsim's."""
    shell.run("workload", "generate", "--jobs", "400", "--machine-size", "32", "--seed", "7", "-o", "one.swf").ok()
    shell.run("workload", "convert", "one.swf", "two.json.xz").ok()
    shell.run("workload", "convert", "two.json.xz", "three.swf.gz").ok()
    rows = {}
    for name in ("one.swf", "two.json.xz", "three.swf.gz"):
        shell.run("run", "-w", name, "--in-process", "--out", name[:3]).ok()
        rows[name] = [job[3:6] + job[6:-1] for job in shell.ended_jobs(name[:3])]

    assert rows["one.swf"] == rows["three.swf.gz"]
    # Batsim says of a delay of exactly the walltime that it has reached it.
    columns = (3, 4, 5, 8, 9, 10, 11, 12, 14)
    logged, batsim = (
        [[job[column] for column in columns] for job in shell.ended_jobs(name)] for name in ("one", "two")
    )
    assert logged == batsim
    states = {(mine[7], its[7]) for mine, its in zip(shell.ended_jobs("one"), shell.ended_jobs("two"), strict=True)}
    assert {pair for pair in states if pair[0] != pair[1]} <= {("COMPLETED_SUCCESSFULLY", "COMPLETED_WALLTIME_REACHED")}


@pytest.mark.slow
def test_ten_repetitions_of_the_bundled_workload_give_the_same_bytes(shell):
    """Ten of its 37 days over ipc and tcp in turn equal the run in one process."""
    shell.run("run", "--until", "10d", "--in-process", "--out", "in-process").ok()
    for number in range(10):
        endpoint = ["--endpoint", "tcp://127.0.0.1:*"] if number % 2 else []
        shell.run("run", "--until", "10d", *endpoint, "--out", f"o{number}").ok()
        assert shell.files(f"o{number}") == shell.files("in-process")
        assert command(shell, f"o{number}") == command(shell, "in-process")
