"""Outputs never replace what the same command reads, and no path is empty."""

import pytest

LOG = "; MaxProcs: 4\n1 0 -1 5 1 -1 -1 1 9 -1 1 -1 -1 -1 -1 -1 -1 -1\n"


@pytest.mark.parametrize(
    "words",
    [
        ["run", "-w", "log.swf", "--in-process", "--out", "o", "--timings", "log.swf"],
        ["run", "-w", "log.swf", "--in-process", "--out", "o", "--timings", "o/out_jobs.csv"],
        ["run", "-w", "o/out_jobs.csv", "--in-process", "--out", "o"],
        ["serve", "-w", "log.swf", "--out", "o", "--timings", "./log.swf", "--hello-timeout", "1"],
        ["workload", "convert", "log.swf", "log.swf"],
        ["workload", "convert", "log.swf", "o/../log.swf"],
    ],
)
def test_no_input_is_written_over(shell, tmp_path, words):
    """The command is refused before it starts, and the file is unchanged."""
    (tmp_path / "o").mkdir()
    for name in ("log.swf", "o/out_jobs.csv"):
        (tmp_path / name).write_text(LOG)
    outcome = shell.run(*words)

    assert outcome.code == 2
    assert "by this command" in outcome.err
    assert (tmp_path / "log.swf").read_text() == LOG
    assert (tmp_path / "o" / "out_jobs.csv").read_text() == LOG


@pytest.mark.parametrize(
    ("words", "fragment"),
    [
        (["run", "--in-process", "--out", ""], "the path is empty"),
        (["run", "--in-process", "--timings", ""], "the path is empty"),
        (["schedule", "easy", "--connect", ""], "neither an endpoint nor a connection file"),
        (["schedule", "easy", "--connect", "127.0.0.1:28000"], "Did you mean tcp://127.0.0.1:28000?"),
    ],
)
def test_an_empty_or_half_address_is_refused_at_once(shell, words, fragment):
    """An empty shell variable or a missing scheme does not lead to waiting."""
    outcome = shell.run(*words)

    assert outcome.code == 2
    assert fragment in outcome.err


@pytest.mark.parametrize("said", ["MaxProcs: 99999999999", "MaxProcs: lots"])
def test_a_header_of_no_use_is_quoted(shell, tmp_path, said):
    """The message names the file and quotes its header's machine size."""
    (tmp_path / "log.swf").write_text(LOG.replace("MaxProcs: 4", said))
    outcome = shell.run("run", "-w", "log.swf", "--in-process")

    assert outcome.code == 2
    assert "log.swf" in outcome.err
    assert said in outcome.err
