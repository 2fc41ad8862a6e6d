"""``pipistrelle slurm check`` and ``slurm record`` on the command line: table, JSON, CSV, page and errors."""

import csv
import json

from tests.runs.recordings.tiny_recording import write_recording


def test_table_json_csv_and_page(shell):
    """All outputs come from one comparison."""
    write_recording(shell.folder / "tiny")
    found = shell.run("slurm", "check", "tiny", "--json", "--csv", "starts.csv", "--page", "check.html")
    assert found.code == 0, found
    told = json.loads(found.out)
    assert told["compared"][0] == {"what": "main passes", "equal": 2, "of": 2}
    assert [run["equal"] for run in told["runs"]] == [3, 3]
    with open(shell.folder / "starts.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["job"], row["time"], row["nodes_delays_modelled"]) for row in rows] == [
        ("1", "128", "n1"),
        ("3", "158", "n2"),
        ("2", "229", "n[1-2]"),
    ]
    page = (shell.folder / "check.html").read_text()
    assert '<td class="text">backfill outcomes</td>' in page
    assert "http" not in page.replace("http-equiv", "")
    table = shell.run("slurm", "check", "tiny")
    assert table.code == 0
    assert "starts of a run, delays modelled" in table.out
    assert "partition batch" in table.out


def test_wrong_folders_end_with_one_message(shell):
    """No folder, another folder, a missing file, and outputs over inputs."""
    write_recording(shell.folder / "tiny")
    (shell.folder / "other").mkdir()
    for words, message in (
        (("nowhere",), "nowhere: there is no such folder"),
        (("tiny/jobs.csv",), "tiny/jobs.csv: not a folder"),
        (("other",), "other: the folder is not a recording of slurmctld"),
        (("tiny", "--csv", "tiny/jobs.csv"), "also read by this command"),
    ):
        found = shell.run("slurm", "check", *words)
        assert found.code == 2
        assert message in found.err
        assert found.err.count("\n") <= 3
    (shell.folder / "tiny" / "starts.csv").unlink()
    found = shell.run("slurm", "check", "tiny")
    assert found.code == 2
    assert "tiny: the recording has no file 'starts.csv'" in found.err


def test_recording_does_not_overwrite_a_folder(shell):
    """The folder is checked before anything starts."""
    write_recording(shell.folder / "tiny")
    found = shell.run("slurm", "record", "--config", "tiny", "-w", "tiny/jobs.events", "-o", "tiny")
    assert found.code == 2
    assert "tiny: the folder exists" in found.err
    found = shell.run("slurm", "record", "--config", "tiny", "-w", "tiny/jobs.events", "--until", "soon", "-o", "new")
    assert found.code == 2
    assert "--until" in found.err
