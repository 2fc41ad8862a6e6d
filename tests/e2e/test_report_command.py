"""``pipistrelle report``: the page, and errors."""

import os

import pytest


@pytest.fixture
def ran(shell):
    """Return a shell with runs of the seven jobs under fcfs and easy."""
    for name in ("fcfs", "easy"):
        shell.run("run", "-w", "seven-jobs", "--scheduler", name, "--in-process", "-o", name, "-q").ok()
    return shell


def test_a_page_of_two_runs(ran):
    """The page has both runs, and the command prints its size."""
    found = ran.run("report", "fcfs", "easy", "-o", "both.html").ok()
    page = (ran.folder / "both.html").read_text()

    assert found.out.startswith("both.html (0.")
    assert page.startswith("<!doctype html>")
    assert "<title>fcfs · easy</title>" in page


def test_explained_in_full(ran):
    """--explain repeats the run, and the page shows what it finds."""
    ran.run("report", "fcfs", "--explain").ok()

    assert '"how":"repeated"' in (ran.folder / "page.html").read_text()
    assert (ran.folder / "fcfs" / "out_explain.index").is_file()


def test_estimates_for_those_who_waited(ran):
    """--estimates repeats the run; a run that cannot be repeated gives one message and no page."""
    ran.run("report", "fcfs", "easy", "--estimates", "3").ok()
    (ran.folder / "fcfs" / "out_command.json").unlink()

    assert (ran.folder / "page.html").read_text().count('"moment":') == 2
    ran.run("report", "fcfs", "-o", "none.html", "--estimates", "3").failed(2, "out_command.json")
    assert not (ran.folder / "none.html").exists()


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ([], 2, "Missing argument"),
        (["nowhere"], 2, "there is no such folder"),
        (["."], 2, "the folder has no out_config.json"),
        (["fcfs", "--trust"], 2, "--trust needs --explain or --estimates"),
        (["fcfs", "--estimates", "0"], 2, "--estimates"),
        (["fcfs", "-o", "fcfs/out_jobs.csv"], 2, "nothing was overwritten"),
        (["fcfs", "-o", "none/page.html"], 6, "cannot write the output"),
    ],
)
def test_what_can_be_wrong(ran, words, code, says):
    """Each error is one message and no page."""
    ran.run("report", *words).failed(code, says)
    assert not (ran.folder / "page.html").exists()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_full_disk(ran):
    """The message and exit code are those of an output that cannot be written."""
    ran.run("report", "fcfs", "-o", "/dev/full").failed(6, "No space left on device")
