"""Forks behave like other processes: tests/forks starts them as the operating system would."""

import os
import signal
import subprocess
import sys

import pytest

PROGRAM = """
import atexit, os, signal, sys
atexit.register(print, "at the end")
print(sys.argv, sys.path[0], os.getcwd(), __name__, os.environ.get("MINE"), "TMPDIR" in os.environ)
print(sys.stdin.read(), sys.stdout.isatty(), os.getsid(0) == os.getpid(), sys.stdin.name, sys.stdout.encoding)
print([signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)])
print(sorted(name for name in os.listdir("/proc/self/fd"))[:3], signal.pthread_sigmask(signal.SIG_BLOCK, ()))
print("to the other", file=sys.stderr)
way = sys.argv[1]
if way == "exit":
    sys.exit(7)
if way == "text":
    sys.exit("a text")
if way == "raise":
    raise ValueError("of my own")
if way == "interrupt":
    raise KeyboardInterrupt
if way == "kill":
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGKILL)
if way == "thread":
    import threading
    threading.Timer(0.1, print, ["late"]).start()
"""


@pytest.fixture(scope="module")
def forks(make_forks):
    """Return the starter of forks, or skip."""
    return make_forks() or pytest.skip("the operating system has no pidfd, or no /proc")


@pytest.mark.parametrize("way", ["end", "exit", "text", "raise", "interrupt", "kill", "thread"])
def test_a_fork_is_a_process_like_others(forks, tmp_path, way):
    """Words, folder, environment, streams, signals, session and end are those of a process started from nothing."""
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    words = [sys.executable, str(script), way, "and more", ""]
    environment = {name: value for name, value in os.environ.items() if name != "TMPDIR"} | {"MINE": "\u00e4"}
    told = []
    for name in ("fork", "plain"):
        out, err = tmp_path / f"{name}.out", tmp_path / f"{name}.err"
        with out.open("wb") as to_out, err.open("wb") as to_err:
            if name == "fork":
                assert forks.can(words, environment)
                process = forks.start(words, tmp_path, environment, to_out, to_err)
            else:
                process = subprocess.Popen(
                    words, cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL, stdout=to_out, stderr=to_err,
                    start_new_session=True,
                )  # fmt: skip
            code = process.wait()
        trace = [line for line in err.read_text().splitlines() if not line.startswith(" ")]  # without the places
        told.append((code, out.read_text(), trace))

    assert told[0] == told[1]
    assert told[0][0] == {"exit": 7, "text": 1, "raise": 1, "interrupt": -signal.SIGINT, "kill": -9}.get(way, 0)


def test_another_environment_or_program_is_not_forked(forks, tmp_path):
    """A test that needs another hash seed, time zone or kind of program gets it."""
    environment = dict(os.environ)
    words = [sys.executable, "-m", "pipistrelle.cli", "show"]

    assert forks.can(words, environment)
    assert not forks.can(words, environment | {"PYTHONHASHSEED": "1"})
    assert not forks.can(words, environment | {"TZ": "Asia/Tokyo"})
    assert not forks.can([sys.executable, "-c", "pass"], environment)
    assert not forks.can(["python", "-m", "pipistrelle.cli"], environment)


def test_a_fork_can_be_polled_and_killed(forks, tmp_path):
    """It runs until a signal ends it, and then has the negative signal number as its code."""
    script = tmp_path / "waits.py"
    script.write_text("import time\ntime.sleep(3600)\n")
    with open(os.devnull, "wb") as nothing:
        process = forks.start([sys.executable, str(script)], tmp_path, dict(os.environ), nothing, nothing)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)

    assert process.wait() == -signal.SIGTERM
    assert process.poll() == -signal.SIGTERM
    process.send_signal(signal.SIGTERM)  # the process has ended
