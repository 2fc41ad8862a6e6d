"""`run --scheduler`: names, programs quoted and unquoted, and programs that cannot be started."""

import sys

import pytest


@pytest.mark.parametrize(
    "arguments",
    [
        ["--out", "out", "--scheduler", "{python}", "{peer}", "{endpoint}", "--out", "elsewhere"],
        ["--scheduler", "'{python}' {peer} {endpoint} --its-own", "--out", "out"],
        ["--scheduler='{python}' {peer} --x={endpoint}", "--out", "out"],
        ["--out", "out", "--scheduler={python}", "{peer}", "{endpoint}"],
        ["--out", "out", "--scheduler", "env", "ENDPOINT={endpoint}", "{python}", "{peer}", "from-environment"],
    ],
    ids=["unquoted", "quoted, options after", "quoted with =", "unquoted with =", "env"],
)
def test_a_program_is_given_quoted_or_not(shell, arguments):
    """Unquoted, it takes the rest of the line; quoted, options may follow."""
    good = shell.peer("good")[1]
    shell.write(
        "peer.py",
        "import os, runpy, sys\n"
        "words = [word.removeprefix('--x=') for word in sys.argv[1:]]\n"
        "given = next((word for word in words if '://' in word), os.environ.get('ENDPOINT'))\n"
        "assert given == os.environ['PIPISTRELLE_ENDPOINT']\n"
        "sys.argv[1:] = [given]\n"
        f"sys.path.insert(0, os.path.dirname({good!r}))\n"
        f"runpy.run_path({good!r}, run_name='__main__')\n",
    )
    words = [word.replace("{python}", sys.executable).replace("{peer}", "peer.py") for word in arguments]
    outcome = shell.run("run", "-p", "tiny", "-w", shell.small(), *words).ok()

    assert "peer ended completed" in outcome.out
    assert len(shell.ended_jobs()) == 4


def test_a_programs_path_may_have_spaces(shell):
    """Words of the command line stay separate."""
    (shell.folder / "my peers").mkdir()
    shell.write("my peers/a peer.sh", '#!/bin/sh\nexec "$@"\n').chmod(0o755)
    outcome = shell.run(
        "run", "-p", "tiny", "-w", shell.small(), "--scheduler", "my peers/a peer.sh", *shell.peer("good")
    )

    assert "peer ended completed" in outcome.ok().out


@pytest.mark.parametrize(
    ("words", "code", "fragments"),
    [
        (["./prog"], 2, ["there is no scheduler './prog'", "write {endpoint} among its arguments"]),
        (["./prog", "--fast"], 2, ["there is no scheduler './prog'", "write {endpoint} among its arguments"]),
        (["./prog --fast"], 2, ["there is no scheduler './prog --fast'", "write {endpoint} among its arguments"]),
        (["./prog 'half {endpoint}"], 2, ["cannot be split into words", "./prog 'half"]),
        (["./missing", "{endpoint}"], 2, ["cannot start the scheduler (No such file or directory)", "./missing"]),
        (["./folder", "{endpoint}"], 2, ["cannot start the scheduler (Permission denied)"]),
        (["./plain.txt", "{endpoint}"], 2, ["cannot start the scheduler"]),
        (["false", "{endpoint}"], 4, ["ended with exit code 1 before the simulation was over", "false '{endpoint}'"]),
        (["true", "{endpoint}"], 4, ["ended with exit code 0 before the simulation was over"]),
        (["sh", "-c", "kill -9 $$", "{endpoint}"], 4, ["was killed by SIGKILL"]),
        (["./prog", "{endpoint}", "--order", "sjf"], 2, ["cannot start the scheduler"]),
    ],
    ids=lambda value: " ".join(value)[:30] if isinstance(value, list) else "",
)
def test_a_program_that_cannot_be_a_scheduler_is_reported_at_once(shell, words, code, fragments):
    """The message says what to do, without waiting for the time limit."""
    (shell.folder / "folder").mkdir()
    shell.write("plain.txt", "not a program\n").chmod(0o755)
    shell.run("run", "-p", "tiny", "-w", shell.small(), "--hello-timeout", "100000", "--scheduler", *words).failed(
        code, *fragments
    )


def test_our_own_parts_do_not_go_with_a_program(shell):
    """Options without effect are refused."""
    outcome = shell.run("run", "--order", "sjf", "--scheduler", "./prog", "{endpoint}")
    outcome.failed(2, "--order applies to built-in schedulers, not to a program")


def test_a_module_may_hold_the_policy(shell):
    """`package.module:OBJECT` is found as Python finds modules."""
    outcome = shell.run(
        "run",
        "-p",
        "tiny",
        "-w",
        shell.small(),
        "--scheduler",
        "pipistrelle.schedulers.catalogue.parts:compose",
        "--out",
        "out",
    )
    outcome.ok()

    assert len(shell.ended_jobs()) == 4


@pytest.mark.parametrize("way", [[], ["--in-process"]], ids=["two processes", "in process"])
def test_a_scheduler_may_be_a_toml_file(shell, way):
    """A preset works in two processes or one; an option replaces one of its parts."""
    shell.write("mine.toml", 'backfill = "conservative"\n')
    shell.run("run", "-w", "seven-jobs", "--scheduler", "./mine.toml", *way, "--out", "out").ok()

    assert len(shell.ended_jobs()) == 7
    assert b'"mine"' in shell.files("out")["out_config.json"]
    outcome = shell.run("run", "-w", "seven-jobs", "--scheduler", "mine.toml", "--backfill", "easy-slices", *way)
    assert "outputs in pipistrelle-out/seven-jobs-mine.toml-easy-slices-1" in outcome.ok().out


def test_a_toml_file_in_a_terminal_of_its_own(shell):
    """`schedule my.toml` works like a bundled name."""
    shell.write("mine.toml", 'backfill = "easy-slices"\n')
    server = shell.start("serve", "-w", "seven-jobs", "--out", "served").until("listening at ")
    shell.run("schedule", "mine.toml", "--connect", "served").ok()
    server.finish().ok()

    assert b'"mine"' in shell.files("served")["out_config.json"]


@pytest.mark.parametrize("command", [["run", "--scheduler"], ["schedule", "--connect", "tcp://127.0.0.1:5"]])
@pytest.mark.parametrize(
    ("text", "fragments"),
    [
        ('backfill = "eazy"', ["mine.toml", "there is no backfill 'eazy'", "Did you mean 'easy'?"]),
        ('beckfill = "easy"', ["mine.toml", "unknown key 'beckfill'", "Did you mean 'backfill'?"]),
        ("easy", ["mine.toml", "this is not TOML"]),
        (None, ["mine.toml", "there is no such file"]),
    ],
)
def test_a_wrong_toml_file_is_wrong_input(shell, command, text, fragments):
    """Exit code 2 at once, with the error and its place."""
    if text is not None:
        shell.write("mine.toml", text)
    shell.run(*command, "mine.toml").failed(2, *fragments)


def test_a_scheduler_s_file_is_not_written_over(shell):
    """A command does not write to a file that it reads."""
    shell.write("mine.toml", "")
    shell.run("run", "--scheduler", "mine.toml", "--timings", "mine.toml").failed(2, "mine.toml is also read by this")
