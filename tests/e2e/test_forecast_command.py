"""``pipistrelle forecast`` on the command line: table, JSON, CSV, page, warnings and errors."""

import csv
import json
from pathlib import Path

LIVE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "live"
CONFIG = ("--config", str(LIVE / "slurm.conf"), "--accounting", str(LIVE / "accounts.txt"))
QUEUE = (
    "--squeue",
    str(LIVE / "squeue.txt"),
    "--scontrol",
    str(LIVE / "nodes.txt"),
    "--sshare",
    str(LIVE / "sshare.txt"),
)


def test_table_json_csv_and_page_have_the_same_starts(shell):
    """All outputs come from one forecast; dates are in the cluster's time zone, texts cannot end the page's data."""
    bad = (LIVE / "squeue.txt").read_text().replace("train|bob", "<script>x|bob") + "oops|batch\n"
    shell.write("queue.txt", bad)
    found = shell.run(
        "forecast", "--squeue", "queue.txt", *QUEUE[2:], *CONFIG, "--timezone", "Europe/Prague", "--replicas", "2",
        "--history", str(LIVE / "history.txt"), "--json", "--csv", "starts.csv", "-o", "starts.html",
    )  # fmt: skip
    assert found.code == 0, found
    told = json.loads(found.out)
    assert told["now"] == "2026-01-05T08:00:00+01:00"
    assert len(told["faults"]) == 1
    assert "1 rows cannot be read and are left out" in found.err
    with open(shell.folder / "starts.csv", newline="") as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    jobs = {job["id"]: job for job in told["jobs"]}
    assert rows.keys() == jobs.keys()
    assert all((jobs[name]["start"] or "")[:19] == row["start"] for name, row in rows.items())
    page = (shell.folder / "starts.html").read_text()
    assert "<script" not in page.replace('<script type="application/json" id="facts">', "")
    assert rows["105"]["start"] in page
    table = shell.run("forecast", *QUEUE, *CONFIG)
    assert table.code == 0
    assert "every job is assumed to use its whole time limit" in table.out
    assert "107_[1-4%2]" in table.out


def test_wrong_arguments_are_named(shell):
    """Missing queue, unknown zone, malformed date and other files end with one message."""
    for more, words in (
        ((), "--squeue"),
        ((*QUEUE, "--timezone", "Mars/Base"), "time zone"),
        ((*QUEUE, "--at", "tomorrow"), "--at"),
        (("--squeue", str(LIVE / "accounts.txt")), "neither a record nor a header"),
        (("--squeue", "missing.txt"), "no such file"),
        ((*QUEUE, "--what-if", "sbatch -C fast -A physics --uid=ada"), "Slurm would refuse the job"),
        ((*QUEUE, "--what-if", "sbatch -N 1 -A physics --uid=ada --bogus"), "--bogus"),
    ):
        found = shell.run("forecast", *CONFIG, *more)
        assert found.code != 0
        assert words in found.err, found.err
        assert "Traceback" not in found.err
