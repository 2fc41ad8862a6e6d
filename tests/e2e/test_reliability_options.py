"""Partitions by reliability from the command line: runs, descriptions, Haizea leases, and errors."""

import csv
import json
from pathlib import Path

import pytest

from pipistrelle.protocol.units.nodesets import NodeSet

CLASSES = """
name = "c"
machine_size = 14
duration = "50h"
[[classes]]
size = 4
rate = 0.5
service = "1h"
[[classes]]
size = 1
rate = 3
service = "1h"
"""
MACHINE = """
name = "m"
[[pools]]
name = "bad"
nodes = 7
mttf = "100h"
[[pools]]
name = "good"
nodes = 7
mttf = "400h"
"""
LEASE = """<lease-request arrival="00:00:{minute:02}:00"><lease preemptible="true"><nodes><node-set numnodes="{size}">
<res type="CPU" amount="100"/><res type="Reliability" amount="{level}"/></node-set></nodes>
<start></start><duration time="00:01:00:00"/></lease></lease-request>"""
TRACE = """<?xml version="1.0"?>
<lease-workload name="sample"><site><resource-types names="CPU Reliability"/><nodes>
<node-set numnodes="4"><res type="CPU" amount="100"/><res type="Reliability" amount="1"/></node-set>
<node-set numnodes="3"><res type="CPU" amount="100"/><res type="Reliability" amount="2"/></node-set></nodes></site>
<lease-requests>{leases}</lease-requests></lease-workload>"""


@pytest.fixture
def inputs(shell):
    """Return the shell, in whose folder are classes and a machine."""
    (shell.folder / "c.toml").write_text(CLASSES)
    (shell.folder / "m.toml").write_text(MACHINE)
    return shell


def jobs_of(out: Path) -> list[dict[str, str]]:
    """Return the rows of a run's jobs."""
    with open(out / "out_jobs.csv", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("admission", ["queue", "block"])
def test_a_run_and_its_description(inputs, admission):
    """Large jobs get only reliable nodes; the run's description repeats it byte for byte."""
    folder = inputs.folder
    assert inputs.run("workload", "generate", "--classes", "c.toml", "-o", "w.json").code == 0
    told = ["--reliability", "c.toml", "--blocking", "0.1", "--admission", admission, "--strict"]
    done = inputs.run("run", "easy", "-w", "w.json", "-p", "m.toml", *told, "-o", "a")
    assert done.code == 0, done.err
    again = inputs.run("run", "a/out_command.json", "--in-process", "-o", "b")
    assert again.code == 0, again.err

    large = [row for row in jobs_of(folder / "a") if row["requested_number_of_resources"] == "4"]
    placed = [NodeSet.parse(row["allocated_resources"]) for row in large if row["allocated_resources"]]
    assert placed
    assert all(units <= NodeSet.interval(7, 13) for units in placed)
    assert (folder / "a" / "out_jobs.csv").read_bytes() == (folder / "b" / "out_jobs.csv").read_bytes()
    said = json.loads((folder / "a" / "out_command.json").read_text())
    assert (said["reliability"], said["blocking"], said["admission"]) == ("c.toml", 0.1, admission)
    assert "c.toml" in said["files"]


def test_leases_of_haizea_name_their_partition(shell):
    """Haizea's node sets are the partitions; a lease never gets less reliable nodes."""
    wanted = [(2, 2), (2, 2), (1, 1), (3, 1), (1, 2)]
    leases = "".join(LEASE.format(minute=at, size=size, level=level) for at, (size, level) in enumerate(wanted))
    (shell.folder / "t.xml").write_text(TRACE.format(leases=leases))
    done = shell.run("run", "easy", "-w", "t.xml", "--reliability", "auto", "--in-process", "--strict", "-o", "a")
    assert done.code == 0, done.err

    rows = sorted(jobs_of(shell.folder / "a"), key=lambda row: int(row["job_id"]))
    found = [row["allocated_resources"].replace(" ", ",") for row in rows]
    assert found == ["4-5", "0-1", "2", "0-1,3", "6"]
    assert float(rows[3]["starting_time"]) == 3660.0
    assert float(rows[4]["starting_time"]) == 240.0


def test_what_cannot_be_is_refused(inputs):
    """The message names the error before anything runs."""
    for told, said in (
        (["--reliability", "intrepid-classes"], "class 16384: a class is larger than the machine"),
        (["--reliability", "nothing"], "there are no classes 'nothing'"),
        (["--blocking", "0.1"], "--blocking: the scheduler has no partitions by reliability"),
        (["--reliability", "c.toml", "--blocking", "1.5"], "1.5 is not in the range"),
    ):
        done = inputs.run("run", "easy", "-p", "m.toml", *told, "-o", "a")
        assert done.code == 2, told
        assert said in done.err
