"""``explain placement``, ``order`` and ``titan``: reports, other orders, Titan's figures, and errors."""

import csv
import json

import pytest

PLATFORM = """
name = "mesh"
[[pools]]
name = "all"
nodes = 16
[topology]
kind = "mesh"
shape = [4, 2, 2]
names = "n[1-16]"
"""


@pytest.fixture
def ran(shell):
    """Return a shell in whose folder ``out`` is a run on 16 nodes, with failures of nodes by name."""
    (shell.folder / "mesh.toml").write_text(PLATFORM)
    (shell.folder / "nodes.csv").write_text("name,class\n" + "".join(f"n{node},new\n" for node in range(9, 17)))
    (shell.folder / "outages.csv").write_text("node,down,up,cause\nn2,30,40,DBE\n")
    rows = ((1, 0, 100, 8), (2, 0, 100, 4), (3, 0, 100, 2))
    lines = [f"{n} {s} -1 {r} {p} -1 -1 {p} {r} -1 1 1 1 -1 1 -1 -1 -1" for n, s, r, p in rows]
    (shell.folder / "jobs.swf").write_text("\n".join(["; MaxProcs: 16", *lines, ""]))
    words = ("-w", "jobs.swf", "-p", "mesh.toml", "--outages", "outages.csv", "--node-table", "nodes.csv")
    shell.run("run", *words, "--in-process", "-o", "out", "-q").ok()
    return shell


def test_a_report(ran):
    """It has tables, JSON, a CSV line per job and a picture."""
    pytest.importorskip("matplotlib")
    out = ran.run("explain", "placement", "out", "--jobs", "jobs.csv", "--picture", "machine.svg").ok().out
    told = json.loads(ran.run("explain", "placement", "out", "--json").ok().out)

    assert out.startswith("4 jobs on 16 nodes of kind mesh in the order id\n")
    assert "8 stable nodes" in out
    assert told["stable_nodes"] == 8
    assert [row["of_leadership_jobs"] for row in told["months"]] == [1]
    assert told["months"][0]["month"] == "day 0000 to 0029"
    with (ran.folder / "jobs.csv").open() as file:
        rows = {row["job_id"]: row for row in csv.DictReader(file)}
    assert (rows["w0!1"]["failures"], rows["w0!1"]["finish_time"], rows["w0!2"]["stable_nodes"]) == ("1", "30.0", "4")
    assert "4 jobs at" not in (ran.folder / "machine.svg").read_text()
    assert "3 jobs at 0 s" in (ran.folder / "machine.svg").read_text()


def test_another_order(ran):
    """With stable nodes first, node 2 is where the second job ran."""
    told = json.loads(ran.run("explain", "order", "out", "--node-order", "id", "--age-aware", "--json").ok().out)
    out = ran.run("explain", "order", "out", "--node-order", "alps").ok().out

    assert (told["months"][0]["of_leadership_jobs"], told["months"][0]["other_of_leadership_jobs"]) == (1, 1)
    assert told["other_age_aware"] is True
    assert "leadership, alps" in out


def test_titans_arithmetic(shell, traces_dir):
    """Table II to three decimals; the share of leadership jobs at the paper's rates and by GPU records."""
    told = json.loads(shell.run("explain", "titan", "--json").ok().out)
    assert [round(one["hours"], 3) for one in told["table_ii"]] == [11.026, 13.81, 18.477, 27.908, 57.0]
    assert "44.4 %" in shell.run("explain", "titan").ok().out

    lives = next(traces_dir.glob("Titan-GPU-lives*"))
    assert "14.84  41.5 %" in shell.run("explain", "titan", "--lives", lives).ok().out
    shell.run("explain", "titan", "--lives", lives, "--begin", "soon").failed(2, "a time cannot be read")


def test_what_is_wrong(ran):
    """Errors: no run, a picture of an unknown kind, an order that the machine does not support."""
    ran.run("explain", "placement", "nowhere").failed(2, "nowhere: there is no such folder")
    ran.run("explain", "placement", "out", "--picture", "a.pdf").failed(2, "--picture draws SVG or PNG")
    ran.run("explain", "placement", "out", "--at", "5").failed(2, "--at needs --picture or --links")
    ran.run("explain", "placement", "out", "--jobs", "out/out_jobs.csv").failed(2, "out_jobs.csv")
    ran.run("explain", "order", "out").failed(2, "--node-order")
    ran.run("run", "-w", "jobs.swf", "--in-process", "-o", "flat", "-q").ok()
    ran.run("explain", "placement", "flat", "--run-order", "alps").failed(2, "alps needs three dimensions")
    ran.run("explain", "order", "flat", "--node-order", "id", "--age-aware").failed(
        2, "the machine's stable nodes are unknown"
    )


def test_loads_of_links(ran):
    """Loads by job size and at a time; columns per job; two nodes send over one link."""
    out = ran.run("explain", "placement", "out", "--links", "--jobs", "links.csv", "--at", "5").ok().out
    told = json.loads(ran.run("explain", "placement", "out", "--json", "--links", "--at", "40").ok().out)["links"]

    assert "Links by size of jobs, each job alone: all to all" in out
    assert "Links, 3 jobs at 5 s: neighbours" in out
    with (ran.folder / "links.csv").open() as file:
        rows = {row["job_id"]: row for row in csv.DictReader(file)}
    assert rows["w0!3"]["all_to_all_load"] == rows["w0!3"]["neighbours_load"] == "1.0"
    assert rows["w0!3"]["all_to_all_rate"] == ""  # the mesh has no bandwidths
    assert [one["traffic"] for one in told["traffics"]] == ["all_to_all", "neighbours"]
    for one in told["traffics"]:
        assert [each["links"] for each in one["dimensions"]] == [24, 16, 16]
        assert one["busiest_load"] == max(each["busiest_load"] for each in one["dimensions"])
        assert one["rate"] is None
    told = ran.run("explain", "placement", "out", "--at", "40")
    assert "--at needs --picture or --links, which show this simulated time" in told.err


def test_links_of_a_machine_without_places(shell):
    """The error names the machine's kind of network."""
    shell.run("run", "-w", "seven-jobs", "--in-process", "-q", "-o", "flat").ok()
    told = shell.run("explain", "placement", "flat").ok().out
    assert "stable nodes: not known, because the platform gives no class, MTTF or age of nodes" in told
    assert "the links of the network are unknown" in shell.run("explain", "placement", "flat", "--links").err
