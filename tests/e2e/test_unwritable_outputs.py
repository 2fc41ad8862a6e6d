"""Full disks and unwritable folders: exit code 6, the file is named, other outputs are kept."""

import errno
import os
import shutil
import subprocess
import sys

import pytest

from pipistrelle.cli import main

FULL = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
NO_SPACE = "No space left on device"


@pytest.mark.parametrize("command", ["run", "serve"])
def test_a_folder_that_cannot_be_made_is_reported_before_anything_is_begun(shell, command):
    """Exit code 6, without waiting for a scheduler."""
    shell.write("file", "x")
    shell.run(command, "-p", "tiny", "-w", shell.small(), "--out", "file/below").failed(
        6, "file/below", "cannot write to the output folder (Not a directory)", "--out"
    )


def test_a_file_is_no_folder(shell):
    """--out must name a folder."""
    shell.write("file", "x")
    shell.run("run", "-w", shell.small(), "--out", "file").failed(2, "--out", "file")


def test_the_default_folder_may_be_in_the_way(shell):
    """Without --out, the folder is created below pipistrelle-out."""
    shell.write("pipistrelle-out", "x")
    shell.run("run", "-w", shell.small()).failed(6, "pipistrelle-out", "cannot write to the output folder")


@FULL
@pytest.mark.parametrize(
    ("name", "jobs", "mode"),
    [
        ("jobs.csv", 4, []),
        ("jobs.csv", 4, ["--in-process"]),
        ("jobs.csv", 3000, []),
        ("decisions.csv", 4, []),
        ("decisions.csv", 3000, ["--in-process"]),
        ("machine_states.csv", 4, []),
        ("machine_states.csv", 9000, ["--in-process"]),
    ],
)
def test_a_full_disk_ends_the_run(shell, name, jobs, mode):
    """Detected during the run or at its end; all other files are correct."""
    (shell.folder / "out").mkdir()
    (shell.folder / "out" / f"out_{name}").symlink_to("/dev/full")
    workload = shell.small() if jobs == 4 else shell.many(jobs)
    outcome = shell.run("run", "-p", "tiny", "-w", workload, "--out", "out", *mode)
    outcome.failed(6, f"out/out_{name}", NO_SPACE, "--out")

    files = {path.name: path for path in (shell.folder / "out").iterdir()}
    assert {"out_jobs.csv", "out_decisions.csv", "out_machine_states.csv", "out_config.json"} <= files.keys()
    for other, path in files.items():
        if other != f"out_{name}":
            assert path.read_text().endswith("\n")
    if name != "jobs.csv" and jobs == 4:  # noticed at the end only
        assert len(shell.ended_jobs()) == jobs


@FULL
@pytest.mark.parametrize("name", ["config.json", "schedule.csv", "summary.json"])
def test_a_full_disk_for_the_small_files_ends_the_run_too(shell, name):
    """For any file that is written at once; the scheduler learns that the run is over."""
    (shell.folder / "out").mkdir()
    (shell.folder / "out" / f"out_{name}").symlink_to("/dev/full")
    outcome = shell.simulate("good").failed(6, f"out/out_{name}", NO_SPACE)

    assert "peer ended" in outcome.out


@FULL
def test_the_connection_file_needs_room_too(shell):
    """If connection.json cannot be written, the server does not listen."""
    (shell.folder / "out" / "connection.json").mkdir(parents=True)
    shell.run("serve", "-p", "tiny", "-w", shell.small(), "--out", "out").failed(6, "connection.json")


@FULL
def test_timings_that_cannot_be_written_are_reported_after_the_run(shell):
    """All other outputs are complete."""
    shell.write("file", "x")
    for path, reason in (("/dev/full", NO_SPACE), ("file/below", "Not a directory"), ("missing/t", "No such file")):
        outcome = shell.run("run", "-p", "tiny", "-w", shell.small(), "--out", "out", "--timings", path)
        outcome.failed(6, path, reason)
        assert len(shell.ended_jobs()) == 4
        assert "outputs in out" in outcome.out


@FULL
def test_a_failed_run_is_not_hidden_by_its_timings(shell):
    """The exit code is that of the error that ended the run."""
    shell.simulate("stubborn", "nothing", options=["--timings", "/dev/full"]).failed(5, "stalled")


@FULL
@pytest.mark.parametrize("arguments", [["show", "platform"], ["--help"], ["run", "-p", "tiny", "-w", "small.swf"]])
def test_standard_output_may_be_full(shell, arguments):
    """Exit code 6, and no traceback."""
    shell.small()
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*shell.command, *arguments], stdout=full, stderr=subprocess.PIPE, cwd=shell.folder,
            env=shell.environment, check=False,
        )  # fmt: skip

    assert done.returncode == 6
    assert done.stderr.decode().splitlines() == [f"pipistrelle: cannot write to standard output ({NO_SPACE})."]


def test_a_reader_may_leave(shell):
    """`pipistrelle show platform | true` ends silently, like other programs."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [*shell.command, "show", "platform"], stdout=writer, stderr=subprocess.PIPE, cwd=shell.folder,
            env=shell.environment, check=False,
        )  # fmt: skip
    finally:
        os.close(writer)

    assert (done.returncode, done.stderr) == (1, b"")


def test_a_disk_that_fills_up_during_the_run(shell):
    """On a real file system of 64 kB: exit code 6, and the outputs consist of whole lines."""
    disk = shell.folder / "disk"
    disk.mkdir()
    mount = shutil.which("mount")
    if (
        mount is None
        or subprocess.run(
            [mount, "-t", "tmpfs", "-o", "size=64k", "none", disk], capture_output=True, check=False
        ).returncode
    ):
        pytest.skip("a small file system cannot be mounted here (that needs root)")
    try:
        outcome = shell.run("run", "-p", "tiny", "-w", shell.many(3000), "--out", "disk/out")
        outcome.failed(6, "disk/out/out_", NO_SPACE)
        assert (disk / "out" / "out_jobs.csv").stat().st_size > 0
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_full_disk_for_temporary_files_is_named(monkeypatch, capsys):
    """It is not taken for a full standard output."""

    def full(**_):
        raise OSError(errno.ENOSPC, NO_SPACE, "/tmp/x/reservations.txt")  # noqa: S108 - nothing is written

    monkeypatch.setattr(main.cli, "main", full)
    assert main._run([], main.cli) == 6
    said = "pipistrelle: /tmp/x/reservations.txt: cannot be written (No space left on device). Free space there.\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize("size", [3000, 20_000, 70_001])
@pytest.mark.parametrize("mode", [[], ["--in-process"]])
def test_tables_end_in_whole_rows_when_they_may_not_grow(shell, size, mode):
    """Wherever space ends, the last row is whole, and all rows equal those of the complete run."""
    words = ["run", "-p", "tiny", "-w", shell.many(1500), *mode, "--quiet"]
    shell.run(*words, "--out", "whole").ok()
    limit = f"import os, resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size})); "
    limited = [sys.executable, "-c", limit + "os.execv(sys.argv[1], sys.argv[1:])", *shell.command]
    shell.spawn(*limited, *words, "--out", "out").finish().failed(6, "out/", "File too large")

    whole = shell.files("whole")
    for name, content in shell.files("out").items():
        if name.endswith(".csv") and name not in ("out_schedule.csv", "out_labels.csv"):
            assert content.endswith(b"\n") or not content
            assert whole[name].startswith(content)
