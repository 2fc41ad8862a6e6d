"""Unmodified programs in virtual time: they sleep, talk and end, and nothing of them is left."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from loguru import logger

from pipistrelle.runs.slurmctld import private_folder
from pipistrelle.runs.slurmctld.build import BuildError, build_tools
from pipistrelle.runs.slurmctld.conductor import VirtualTimeError
from pipistrelle.runs.slurmctld.virtual_time import NANOSECONDS, VirtualTime

START = 1_767_571_200 * NANOSECONDS  # 2026-01-05T00:00:00Z
ENV = {"PATH": os.environ["PATH"], "TZ": "UTC", "LC_ALL": "C"}
HOUR = 3600 * NANOSECONDS
SERVER = """
import socket, time
s = socket.socket(); s.bind(("127.0.0.1", 6817)); s.listen(); c, a = s.accept()
time.sleep(float(c.recv(9))); c.send(b"%.0f %s" % (time.time(), a[0].encode()))
"""
CLIENT = """
import socket
s = socket.create_connection(("127.0.0.1", 6817)); s.send(b"5000"); print(s.recv(99).decode(), s.getpeername())
"""
#: a program that starts another one in virtual time, and then waits to be killed
KILLED = f"""
import signal, sys
from pipistrelle.runs.slurmctld import private_folder, virtual_time
private_folder._MEMORY = sys.argv[1]
time = virtual_time.VirtualTime({START})
time.start(["setsid", "sleep", "1000"], {ENV})
print(time._conductor.pid, time.environment["PIPISTRELLE_CLOCK"], flush=True)
signal.pause()
"""
THREADS = """
import queue, threading, time
said, box, lock = [], queue.Queue(), threading.Lock()
def work(number):
    for turn in range(3):
        time.sleep(1)
        with lock:
            time.sleep(0.25)  # the others wait for the lock
            said.append(f"{number}@{time.time() % 60:g}")
    box.put(number)
threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
[one.start() for one in threads]
done = [box.get(timeout=60) for _ in threads]
[one.join() for one in threads]
print(*said, done)
"""
PIPES = """
import os, subprocess, sys, time
far = "import sys, time; text = sys.stdin.read(); time.sleep(30); sys.stdout.write(text)"
done = subprocess.run([sys.executable, "-c", far], input="x" * 300_000, capture_output=True, text=True)
print(len(done.stdout), os.system("sleep 20; exit 3") >> 8, time.time() % 3600)
"""
#: reads the clock many times, then until 5 s have passed; then one thread yields until another has slept
READS = """
import os, threading, time
t = time.time()
for _ in range(90_000): time.time()
print(time.time() - t)
while time.time() < t + 5: pass
print(int(time.time() - t))
done = []
def wait():
    while len(done) < 1: os.sched_yield()
    done.append(int(time.time() - t))
one = threading.Thread(target=wait); one.start()
time.sleep(2); done.append(0); one.join(); print(done[1])
"""
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler (cc)")
needs_slurm = pytest.mark.skipif(
    shutil.which("slurmctld") is None or shutil.which("slurmd") is None or os.geteuid() != 0,
    reason="slurmctld and slurmd are not installed, or the tests do not run as root",
)


def left(clock: str) -> list[str]:
    """Return the command lines of processes that live by this clock."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"PIPISTRELLE_CLOCK={clock}\0".encode() in entry.read_bytes():
                found.append((entry.parent / "cmdline").read_text())
        except OSError:
            continue
    return found


@needs_compiler
def test_a_day_of_sleep_takes_no_time() -> None:
    """A shell, its sleeps and its clock follow virtual time to the second."""
    with VirtualTime(START) as time:
        code, text = time.finish(["sh", "-c", "date +%T; sleep 86399; date +%T; exit 3"], ENV, within=48 * HOUR)
        assert (code, text) == (3, "00:00:00\n23:59:59\n")
        assert time.now == START + 86399 * NANOSECONDS


@needs_compiler
def test_clock_stops_at_the_time_asked_for() -> None:
    """`run` wakes only what is due, and leaves the clock exactly there."""
    with VirtualTime(START) as time:
        program = time.start(["sleep", "100"], ENV)
        time.run(START + 99 * NANOSECONDS)
        assert program.poll() is None
        time.run(START + 101 * NANOSECONDS)
        assert time.now == START + 101 * NANOSECONDS
        assert program.wait(10) == 0


@needs_compiler
def test_held_program_sleeps_longer() -> None:
    """`hold` moves the end of a sleep that has begun, and no later sleep."""
    with VirtualTime(START) as time:
        program = time.start(["sh", "-c", "exec sleep 100"], ENV)
        time.run(START + 50 * NANOSECONDS)
        time.hold(program.pid, 30 * NANOSECONDS)
        time.run(START + 129 * NANOSECONDS)
        assert program.poll() is None
        time.run(START + 131 * NANOSECONDS)
        assert program.wait(10) == 0


@needs_compiler
def test_programs_talk_over_tcp_of_their_own() -> None:
    """Two programs see a TCP connection on the loopback; another run may use the same port at the same time."""
    with VirtualTime(START) as one, VirtualTime(START + HOUR) as other:
        for time, now in ((one, START), (other, START + HOUR)):
            time.start([sys.executable, "-c", SERVER], ENV)
            code, text = time.finish([sys.executable, "-c", CLIENT], ENV, within=2 * HOUR)
            assert (code, text) == (0, f"{now // NANOSECONDS + 5000} 127.0.0.1 ('127.0.0.1', 6817)\n")


@needs_compiler
def test_threads_always_run_in_the_same_order() -> None:
    """Threads that wake up at the same time, or wait for one lock, do so in the order of their creation."""
    for _ in range(3):
        with VirtualTime(START) as time:
            code, text = time.finish([sys.executable, "-c", THREADS], ENV, within=HOUR)
        times = "0@1.25 1@1.5 2@1.75 0@2.5 1@2.75 2@3 0@3.75 1@4 2@4.25"
        assert (code, text) == (0, f"{times} [0, 1, 2]\n")


@needs_compiler
def test_processes_wait_for_children_and_full_pipes() -> None:
    """More data than a pipe holds, a child of vfork(), and a command of system() take the time that they sleep."""
    with VirtualTime(START) as time:
        assert time.finish([sys.executable, "-c", PIPES], ENV, within=HOUR) == (0, "300000 3 50.0\n")
        words = ["sh", "-c", "sleep 5 & sleep 3 & wait; date +%T"]
        assert time.finish(words, ENV, within=HOUR) == (0, "00:00:55\n")


@needs_compiler
def test_clock_moves_while_a_thread_only_polls() -> None:
    """Many looks at the clock take no time, but a loop that waits for a later time ends."""
    with VirtualTime(START) as time:
        code, text = time.finish([sys.executable, "-c", READS], ENV, within=HOUR)
        assert (code, text) == (0, "0.0\n5\n7\n")


@needs_compiler
def test_no_process_and_no_file_is_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The end of the block also ends processes in sessions of their own, and removes files such as core dumps."""
    monkeypatch.chdir(tmp_path)
    with VirtualTime(START) as time:
        clock = time.environment["PIPISTRELLE_CLOCK"]
        time.start(["setsid", "sh", "-c", "echo > core; sleep 1000 & sleep 2000"], ENV)
        assert left(clock)
    assert not list(tmp_path.iterdir())
    assert not left(clock)
    assert not Path(clock).parent.exists()


@needs_compiler
def test_killed_conductor_ends_the_run_with_one_error() -> None:
    """The error is that of virtual time, with exit code 4, and all processes end."""
    with VirtualTime(START) as time:
        clock = time.environment["PIPISTRELLE_CLOCK"]
        time.start(["setsid", "sleep", "1000"], ENV)
        os.kill(time._conductor.pid, signal.SIGKILL)
        with pytest.raises(VirtualTimeError, match="process that controls virtual time ended") as caught:
            time.run(START + HOUR)
    assert caught.value.exit_code == 4
    assert not left(clock)


@needs_compiler
def test_folder_of_a_run_killed_with_its_conductor_is_removed_by_the_next(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A warning names the folder; folders of living runs stay; processes that were left end."""
    monkeypatch.setattr(private_folder, "_MEMORY", str(tmp_path))
    warned: list[str] = []
    number = logger.add(lambda line: warned.append(line.rstrip()), level="WARNING", format="{message}")
    with VirtualTime(START) as living:
        killed = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        assert killed.stdout is not None
        conductor, clock = killed.stdout.readline().split()
        os.kill(int(conductor), signal.SIGSTOP)  # it must not act between the two kills
        for one in (killed.pid, int(conductor)):
            os.kill(one, signal.SIGKILL)
        killed.communicate()
        assert left(clock)
        with VirtualTime(START) as last:
            assert {*tmp_path.iterdir()} == {living.folder, last.folder}
            assert not left(clock)
    logger.remove(number)
    assert warned == [f"removed {Path(clock).parent}, which a killed run had left"]
    assert [*tmp_path.iterdir()] == []


@needs_compiler
def test_program_that_does_not_end_in_time_is_an_error() -> None:
    """The limit is one of virtual time."""
    with VirtualTime(START) as time, pytest.raises(VirtualTimeError, match=r"within 60 s of virtual time"):
        time.finish(["sleep", "61"], ENV, within=60 * NANOSECONDS)


def test_missing_compiler_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The error says what to install."""
    monkeypatch.setenv("CC", "no-such-compiler")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(BuildError, match=r"needs a C compiler, and there is none.*no-such-compiler"):
        build_tools()


@needs_compiler
def test_failing_compiler_is_quoted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing is cached after a failure."""
    monkeypatch.setenv("CC", "cc --no-such-option")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(BuildError, match=r"the C compiler failed.*no-such-option"):
        build_tools()
    assert not list(tmp_path.glob("pipistrelle/*"))


CONF = """ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=6817
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
MpiDefault=none
StateSaveLocation={0}/state
SlurmdSpoolDir={0}/spool/%n
SlurmctldPidFile={0}/ctld.pid
SlurmdPidFile={0}/%n.pid
SlurmctldLogFile={0}/ctld.log
SlurmdLogFile={0}/%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
SlurmdParameters=config_overrides
SlurmdTimeout=0
SelectType=select/linear
MinJobAge=86400
NodeName=n[1-2] NodeHostname=localhost NodeAddr=127.0.0.1 Port=[6818-6819] CPUs=4 RealMemory=1000
PartitionName=batch Nodes=ALL Default=YES OverSubscribe=EXCLUSIVE
"""


@needs_compiler
@needs_slurm
def test_slurmctld_starts_jobs_and_kills_one_at_its_limit(tmp_path: Path) -> None:
    """The distribution's own daemons start a job, end it as told, and kill the next job at its time limit."""
    for name in ("state", "spool"):
        (tmp_path / name).mkdir()
    (tmp_path / "slurm.conf").write_text(CONF.format(tmp_path))
    env = {**ENV, "SLURM_CONF": str(tmp_path / "slurm.conf")}
    with VirtualTime(START) as time:
        clock = time.environment["PIPISTRELLE_CLOCK"]
        time.start(["slurmctld", "-D", "-c"], env)
        time.run(START + NANOSECONDS // 2)
        for node in ("n1", "n2"):
            time.start(["slurmd", "-D", "-N", node], env)
        time.run(START + 60 * NANOSECONDS)
        for script in ("exec sleep 300", "exec sleep 3000"):
            words = ["sbatch", "-D", "/", "-o", "/dev/null", "-N", "2", "-t", "10", "--wrap", script]
            code, text = time.finish(words, env, within=HOUR)
            assert code == 0, text
        time.run(START + HOUR)
        states = time.finish(["squeue", "-h", "-t", "all", "-o", "%i %T %M"], env, within=HOUR)[1]
        first, second = sorted(states.splitlines())
        assert first.startswith("1 COMPLETED 5:0")
        assert second.startswith("2 TIMEOUT 10:")
    assert not left(clock)
